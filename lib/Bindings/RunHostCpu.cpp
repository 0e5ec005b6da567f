//===- RunHostCpu.cpp - what LLVM knows about CPUs -*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Bindings/Registration.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/X86TargetParser.h"

namespace nb = nanobind;

namespace tilewright {
namespace {

std::vector<std::string> hostFeatures() {
  std::vector<std::string> features;
  for (const auto &feature : llvm::sys::getHostCPUFeatures())
    if (feature.second)
      features.push_back(feature.first().str());
  llvm::sort(features);
  return features;
}

std::vector<std::string> x86Cpus() {
  llvm::SmallVector<llvm::StringRef> names;
  llvm::X86::fillValidCPUArchList(names, /*Only64Bit=*/true);
  return {names.begin(), names.end()};
}

std::vector<std::string> x86Features(const std::string &cpu) {
  std::vector<std::string> known = x86Cpus();
  if (!llvm::is_contained(known, cpu))
    throw nb::value_error(
        ("LLVM knows no 64-bit x86 CPU named '" + cpu + "'").c_str());
  llvm::SmallVector<llvm::StringRef> listed;
  llvm::X86::getFeaturesForCPU(cpu, listed);
  // The list leaves out what is implied: 64-bit mode always has SSE2.
  listed.append({"64bit", "sse2"});
  llvm::StringMap<bool> all;
  for (llvm::StringRef feature : listed) {
    all[feature] = true;
    llvm::X86::updateImpliedFeatures(feature, true, all);
  }
  std::vector<std::string> sorted;
  for (const auto &entry : all)
    if (entry.second)
      sorted.push_back(entry.first().str());
  llvm::sort(sorted);
  return sorted;
}

ModulePart part([](nb::module_ &m) {
  m.def(
      "host_cpu_name", [] { return llvm::sys::getHostCPUName().str(); },
      "LLVM's name of this machine's CPU.");
  m.def("host_cpu_features", &hostFeatures,
        "Names of LLVM's features that this machine's CPU has, sorted.");
  m.def("x86_cpus", &x86Cpus, "LLVM's names of 64-bit x86 CPUs.");
  m.def("x86_cpu_features", &x86Features, nb::arg("cpu"),
        "Features of an x86 CPU by LLVM's name, sorted. Raises ValueError.");
});

} // namespace
} // namespace tilewright

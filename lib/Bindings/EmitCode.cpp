//===- EmitCode.cpp - machine code from Python -*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Bindings/Registration.h"
#include "lib/Target/MachineCode.h"

#include <nanobind/stl/string.h>

namespace nb = nanobind;

namespace tilewright {
namespace {

using Emitter = llvm::Expected<std::string> (*)(llvm::StringRef,
                                                const MachineOptions &);

/// Text or bytes as bytes: bytecode is not text.
std::string readModule(nb::handle module) {
  if (nb::isinstance<nb::bytes>(module)) {
    auto bytes = nb::cast<nb::bytes>(module);
    return std::string(bytes.c_str(), bytes.size());
  }
  if (nb::isinstance<nb::str>(module))
    return nb::cast<std::string>(module);
  throw nb::type_error("module must be bytes (bytecode or text) or str");
}

std::string emit(Emitter emitter, nb::handle module,
                 const MachineOptions &options) {
  std::string source = readModule(module);
  std::string result, message;
  {
    nb::gil_scoped_release release;
    llvm::Expected<std::string> code = emitter(source, options);
    if (code)
      result = std::move(*code);
    else
      message = llvm::toString(code.takeError());
  }
  if (!message.empty())
    throw nb::value_error(message.c_str());
  return result;
}

nb::bytes objectCode(nb::handle module, const std::string &cpu,
                     const std::string &features, unsigned optLevel) {
  std::string code = emit(emitObject, module, {"", cpu, features, optLevel});
  return nb::bytes(code.data(), code.size());
}

std::string llvmIR(nb::handle module, const std::string &cpu,
                   const std::string &features, unsigned optLevel) {
  return emit(emitLLVMIR, module, {"", cpu, features, optLevel});
}

std::string assembly(nb::handle module, const std::string &cpu,
                     const std::string &features, unsigned optLevel) {
  return emit(emitAssembly, module, {"", cpu, features, optLevel});
}

std::string ptx(nb::handle module, const std::string &chip,
                const std::string &features, unsigned optLevel) {
  return emit(emitAssembly, module,
              {"nvptx64-nvidia-cuda", chip, features, optLevel});
}

ModulePart part([](nb::module_ &m) {
  m.def("emit_object", &objectCode, nb::arg("module"), nb::arg("cpu"),
        nb::arg("features"), nb::arg("opt_level") = 3,
        "An ELF relocatable of a module of the LLVM dialect. Raises "
        "ValueError. LLVM may abort the process on bad input: call this in a "
        "worker process.");
  m.def("to_llvm_ir", &llvmIR, nb::arg("module"), nb::arg("cpu"),
        nb::arg("features"), nb::arg("opt_level") = 3,
        "Optimized LLVM IR as text. Raises ValueError.");
  m.def("emit_assembly", &assembly, nb::arg("module"), nb::arg("cpu"),
        nb::arg("features"), nb::arg("opt_level") = 3,
        "Assembly text of the host's architecture. Raises ValueError.");
  m.def("emit_ptx", &ptx, nb::arg("module"), nb::arg("chip"),
        nb::arg("features") = "", nb::arg("opt_level") = 3,
        "PTX of a module of the LLVM and NVVM dialects, for a chip such as "
        "'sm_90a'. Raises ValueError.");
});

} // namespace
} // namespace tilewright

//===- RunDiagnostics.cpp - diagnostics kept for Python -*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Bindings/RunDiagnostics.h"

#include "lib/Bindings/Registration.h"
#include "mlir/Bindings/Python/NanobindAdaptors.h"
#include "mlir/CAPI/IR.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

namespace nb = nanobind;
using namespace mlir;

namespace tilewright {

static void collectLocations(Location location,
                             SmallVectorImpl<std::string> &parts) {
  llvm::TypeSwitch<Location>(location)
      .Case([&](NameLoc name) { parts.push_back(name.getName().str()); })
      .Case([&](FileLineColLoc file) {
        parts.push_back(file.getFilename().str() + ":" +
                        std::to_string(file.getLine()) + ":" +
                        std::to_string(file.getColumn()));
      })
      .Case([&](FusedLoc fused) {
        for (Location part : fused.getLocations())
          collectLocations(part, parts);
      })
      .Case(
          [&](CallSiteLoc call) { collectLocations(call.getCallee(), parts); });
}

std::string describeLocation(Location location) {
  SmallVector<std::string> parts;
  collectLocations(location, parts);
  parts.erase(llvm::unique(parts), parts.end());
  return llvm::join(parts, ", ");
}

static DiagnosticRecord record(Diagnostic &diagnostic) {
  DiagnosticRecord kept{diagnostic.getSeverity(),
                        diagnostic.str(),
                        describeLocation(diagnostic.getLocation()),
                        {}};
  for (Diagnostic &note : diagnostic.getNotes())
    kept.notes.push_back(record(note));
  return kept;
}

DiagnosticCollector::DiagnosticCollector(MLIRContext *context)
    : ScopedDiagnosticHandler(context) {
  setHandler([this](Diagnostic &diagnostic) {
    DiagnosticRecord kept = record(diagnostic);
    std::lock_guard<std::mutex> lock(mutex);
    records.push_back(std::move(kept));
    return success();
  });
}

static const char *severityName(DiagnosticSeverity severity) {
  switch (severity) {
  case DiagnosticSeverity::Error:
    return "error";
  case DiagnosticSeverity::Warning:
    return "warning";
  case DiagnosticSeverity::Remark:
    return "remark";
  case DiagnosticSeverity::Note:
    return "note";
  }
  llvm_unreachable("unknown severity");
}

static nb::tuple toTuple(const DiagnosticRecord &record) {
  nb::list notes;
  for (const DiagnosticRecord &note : record.notes)
    notes.append(toTuple(note));
  return nb::make_tuple(severityName(record.severity), record.message,
                        record.location, notes);
}

nb::list DiagnosticCollector::toPython() const {
  nb::list all;
  for (const DiagnosticRecord &record : records)
    all.append(toTuple(record));
  return all;
}

/// What a Python pass says of an op, without the op: text of a loop numbers the
/// values of all of the module, once for each remark. A handler on another
/// thread may wait for the GIL while it holds what this one needs.
static void emitRemark(MlirOperation op, const std::string &message) {
  nb::gil_scoped_release release;
  mlir::emitRemark(unwrap(op)->getLoc(), message);
}

static ModulePart part([](nb::module_ &m) {
  m.def("remark", &emitRemark, nb::arg("op"), nb::arg("message"),
        "Emit a remark at an op's location, from a pass that runs.");
});

} // namespace tilewright

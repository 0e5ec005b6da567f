//===- RunDiagnostics.h - diagnostics kept for Python -*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_BINDINGS_RUNDIAGNOSTICS_H
#define TILEWRIGHT_BINDINGS_RUNDIAGNOSTICS_H

#include "mlir/Bindings/Python/Nanobind.h"
#include "mlir/IR/Diagnostics.h"

#include <mutex>
#include <string>
#include <vector>

namespace tilewright {

/// "node name", "file.mlir:3:5" or a list of those; empty where unknown.
std::string describeLocation(mlir::Location location);

struct DiagnosticRecord {
  mlir::DiagnosticSeverity severity;
  std::string message;
  std::string location;
  std::vector<DiagnosticRecord> notes;
};

/// Collects what is diagnosed in a context while it lives. It touches no Python
/// object: a thread that emits may hold the diagnostic engine's lock while
/// another one holds the GIL.
class DiagnosticCollector : public mlir::ScopedDiagnosticHandler {
public:
  explicit DiagnosticCollector(mlir::MLIRContext *context);

  /// A list of (severity, message, location, [note, ...]). Needs the GIL.
  nanobind::list toPython() const;

private:
  std::mutex mutex;
  std::vector<DiagnosticRecord> records;
};

} // namespace tilewright

#endif // TILEWRIGHT_BINDINGS_RUNDIAGNOSTICS_H

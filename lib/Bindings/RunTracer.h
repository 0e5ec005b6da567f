//===- RunTracer.h - times passes and keeps the IR after each -*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_BINDINGS_RUNTRACER_H
#define TILEWRIGHT_BINDINGS_RUNTRACER_H

#include "mlir/Pass/PassInstrumentation.h"

#include <chrono>
#include <string>
#include <vector>

namespace tilewright {

/// What a tracer recorded of one pass at the pipeline's top level; a nest such
/// as `func.func(a,b)` counts as one.
struct TracedPass {
  std::string name;
  double seconds;
};

struct Trace {
  /// Folder that receives `NNN_name.mlir` after each pass; none if empty.
  std::string dumpDir;
  std::vector<TracedPass> passes;
  /// Why a file could not be written; empty if all could.
  std::string dumpError;
};

/// Watches the passes that run directly on one op: no other thread runs then.
class RunTracer : public mlir::PassInstrumentation {
public:
  RunTracer(mlir::Operation *root, Trace &trace) : root(root), trace(trace) {}

  void runBeforePass(mlir::Pass *pass, mlir::Operation *op) override;
  void runAfterPass(mlir::Pass *pass, mlir::Operation *op) override;
  void runAfterPassFailed(mlir::Pass *pass, mlir::Operation *op) override;

private:
  void leave(mlir::Pass *pass, mlir::Operation *op, bool failed);
  void dump(llvm::StringRef passName, bool failed);

  using Clock = std::chrono::steady_clock;
  mlir::Operation *root;
  Trace &trace;
  /// Start times: a pass may run a pipeline of its own on the same op.
  std::vector<Clock::time_point> open;
};

} // namespace tilewright

#endif // TILEWRIGHT_BINDINGS_RUNTRACER_H

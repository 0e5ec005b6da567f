//===- NestFusion.h - two tasks in one loop ----------------------*- C++
//-*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TRANSFORMS_GROUPTOKERNEL_NESTFUSION
#define TILEWRIGHT_TRANSFORMS_GROUPTOKERNEL_NESTFUSION

#include "lib/Transforms/GroupToKernel/TaskNests.h"

#include "mlir/IR/IRMapping.h"

namespace tilewright {

/// An index of one expression of others.
mlir::Value applyIndex(mlir::OpBuilder &b, mlir::Location loc,
                       mlir::AffineExpr expr, mlir::ValueRange values);

/// A loop whose body is empty: the caller ends it.
mlir::scf::ForOp createOpenLoop(mlir::OpBuilder &b, mlir::Location loc,
                                mlir::Value from, mlir::Value to,
                                mlir::Value step, mlir::ValueRange values);

/// What a task of the old grid is in the new one: its values, and its slot in
/// buffers that two tasks have at once.
struct TaskStage {
  mlir::IRMapping map;
  /// Is added to the first offset of accesses to doubled buffers.
  llvm::DenseMap<mlir::Value, mlir::Value> slots;

  /// Copies `op` with all that it holds.
  void clone(mlir::OpBuilder &b, mlir::Operation *op);

  /// Lets accesses in a copy reach this stage's slots.
  void move(mlir::Operation *copy);
};

/// Steps along a row that two nests which walk alike have in common; none where
/// no step of one is some of the other.
int64_t sharedSteps(Nest host, Nest guest);

/// Makes one nest that does the steps of `host` for the stage `now`, and those
/// of `guest` for the stage `before`. They walk alike.
void fuseNests(mlir::OpBuilder &b, Nest host, Nest guest, TaskStage &now,
               TaskStage &before);

} // namespace tilewright

#endif // TILEWRIGHT_TRANSFORMS_GROUPTOKERNEL_NESTFUSION

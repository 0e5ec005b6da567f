//===- TaskLoops.h - loops over register groups in a task -------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An outermost group may hold loops over blocks, whose bodies are register
// groups (`tile-apply-online` makes them). A tensor that a loop carries has one
// place in the task: what a register group makes for the next round is written
// over what it has read of the round before.
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TRANSFORMS_GROUPTOKERNEL_TASKLOOPS_H
#define TILEWRIGHT_TRANSFORMS_GROUPTOKERNEL_TASKLOOPS_H

#include "lib/Transforms/GroupToKernel/NestEmitter.h"

namespace tilewright {

class TaskLoops {
public:
  struct Loop {
    mlir::scf::ForOp op;
    /// The register groups in it, by number.
    unsigned begin, end;
  };

  /// Collects the register groups of `group` in order, and the loops around
  /// them. Emits an error where it holds something else.
  mlir::LogicalResult collect(tile::GroupOp group,
                              std::vector<NestAnalysis> &nests);
  /// Checks that what a loop carries can have one place.
  mlir::LogicalResult verify(llvm::ArrayRef<NestAnalysis> nests) const;

  /// The loop whose first register group is the given one.
  const Loop *startingAt(unsigned nest) const;
  /// The result of a register group that `value` is or is a slice of; null for
  /// tensors from outside of the task.
  mlir::OpResult makerOf(mlir::Value value) const;
  /// The value in whose place `value` lives: of what a loop carries, what it
  /// starts from.
  mlir::Value placeOf(mlir::Value value) const;
  /// Gives carried tensors and slices their places, all others having theirs.
  /// `counter` is the symbol of a loop's variable, `symbolOf` tells those of
  /// numbers that the task computes.
  void place(llvm::DenseMap<mlir::Value, Storage> &storage,
             mlir::AffineExpr counter,
             llvm::function_ref<mlir::AffineExpr(mlir::Value)> symbolOf) const;

  llvm::ArrayRef<Loop> getLoops() const { return loops; }
  llvm::ArrayRef<mlir::Operation *> getSlices() const { return slices; }

private:
  mlir::LogicalResult collect(mlir::Block &body, bool inLoop,
                              std::vector<NestAnalysis> &nests);

  llvm::SmallVector<Loop, 1> loops;
  llvm::SmallVector<mlir::Operation *> slices;
};

/// The tensor that a slice is part of, or `value` itself.
mlir::Value wholeOf(mlir::Value value);

/// Whether a slice takes a part only along a dimension of what it is of.
bool isCut(mlir::tensor::ExtractSliceOp slice, unsigned dim);

/// A number that is the variable of a loop, or follows from it alone, in terms
/// of `counter`, which stands for that; null for others.
mlir::AffineExpr countedBy(mlir::Value number, mlir::AffineExpr counter);

/// The bounds of a loop of a task: those that it has (`valueOf` tells what the
/// kernel has for numbers of the task) or, where `tile.live` of one of its
/// operations says that other blocks change nothing, tighter ones.
mlir::FailureOr<std::pair<mlir::Value, mlir::Value>>
liveBounds(mlir::OpBuilder &builder, const TaskLoops::Loop &loop,
           llvm::ArrayRef<NestAnalysis> nests, llvm::ArrayRef<Box> boxes,
           llvm::ArrayRef<mlir::Value> symbols,
           llvm::function_ref<mlir::Value(mlir::Value)> valueOf);

} // namespace tilewright

#endif // TILEWRIGHT_TRANSFORMS_GROUPTOKERNEL_TASKLOOPS_H

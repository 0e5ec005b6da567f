//===- LoopSchedule.h - the loops of a register group -----------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which loops a register group has and in which steps they run: over the root's
// dimensions in the order and with the sizes of its rtile. Remainders of a loop
// are emitted as one more static tile, so no mask depends on a run-time value;
// rows of a product are shared evenly between its tiles instead, since a short
// tile keeps fewer multiply-adds under way.
// A loop whose extent is known at run time only runs over whole tiles as often
// as there are any, then over ever smaller ones. In a padded nest
// (`tile.padded`; for machines whose tiles are distributed over threads) all
// tiles have one size instead, and loads and stores have bounds where an edge
// is ragged.
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TRANSFORMS_GROUPTOKERNEL_LOOPSCHEDULE_H
#define TILEWRIGHT_TRANSFORMS_GROUPTOKERNEL_LOOPSCHEDULE_H

#include "lib/Transforms/GroupToKernel/MemoryAccess.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace tilewright {

class LoopSchedule {
public:
  LoopSchedule(NestPoint &point, MemoryAccess &memory)
      : point(point), builder(point.builder), nest(point.nest), memory(memory) {
  }

  /// Gives the tile's axes their dimensions, and the loops their order.
  mlir::LogicalResult plan();

  /// Emits the parallel loops from `level` inwards, `body` at each of their
  /// tiles.
  using PointFn = llvm::function_ref<mlir::LogicalResult()>;
  mlir::LogicalResult overParallel(PointFn body, unsigned level = 0);

  /// Emits the reduced loops from `level` to `end`, which carry values: `body`
  /// makes the next ones at each of their tiles. Returns those after them.
  using Carried = llvm::SmallVector<mlir::Value>;
  using StepFn = llvm::function_ref<mlir::FailureOr<Carried>(Carried)>;
  mlir::FailureOr<Carried> overReduced(unsigned level, unsigned end,
                                       Carried carried, StepFn body);

private:
  /// A stretch of a dimension, in tiles of one size: a loop from `lower` to
  /// `upper` over `unroll` of them, or a single tile at `start`.
  struct Stretch {
    int64_t tile, start = 0;
    mlir::Value lower = {}, upper = {};
    int64_t unroll = 1;
    /// What the loop's variable counts.
    int64_t unit = 1;
  };
  /// Whole register tiles first, then what is left of the task.
  llvm::SmallVector<Stretch> stretches(unsigned dim, int64_t unroll = 1);
  void addStretches(llvm::SmallVectorImpl<Stretch> &result, int64_t extent,
                    llvm::ArrayRef<int64_t> tiles, int64_t unroll,
                    unsigned dim);
  void addShares(llvm::SmallVectorImpl<Stretch> &result, int64_t extent,
                 int64_t tile);
  Stretch paddedStretch(unsigned dim);
  uint64_t givenUp(unsigned dim, llvm::ArrayRef<int64_t> tiles);
  mlir::Value lessOne(mlir::Value end, mlir::Value size, int64_t tile,
                      uint64_t given);
  /// Narrows the loop over a window to the steps that meet the image
  /// (NestWindow.cpp).
  mlir::LogicalResult clip(unsigned dim, Stretch &stretch);
  mlir::scf::ForOp openLoop(const Stretch &stretch, mlir::ValueRange carried);

  mlir::LogicalResult findTileDims();
  mlir::LogicalResult findProductDims();

  NestPoint &point;
  mlir::OpBuilder &builder;
  const NestAnalysis &nest;
  MemoryAccess &memory;
};

} // namespace tilewright

#endif // TILEWRIGHT_TRANSFORMS_GROUPTOKERNEL_LOOPSCHEDULE_H

//===- OnlineChain.h - online reductions in one loop ------------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What `tile.online` marks in a task: the register groups that run block by
// block, the accumulators among their operations, and by what an accumulator is
// rescaled when the maximum that its terms are relative to grows. A term
// exp(x - m) becomes one relative to a new maximum n by the factor exp(m - n);
// a sum of such terms, linear in them, by the same one (Milakov and Gimelshein,
// "Online normalizer calculation for softmax", 2018; Dao et al.,
// "FlashAttention", 2022).
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TRANSFORMS_PLAN_ONLINECHAIN_H
#define TILEWRIGHT_TRANSFORMS_PLAN_ONLINECHAIN_H

#include "dialects/Tile/Tile.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace tilewright {

/// An operation of the chain that reduces along the loop that runs in blocks.
struct Accumulator {
  tile::GroupOp nest;
  mlir::linalg::GenericOp op;
  /// The result of `nest` that holds it.
  unsigned number = 0;
  /// What it starts from.
  mlir::TypedAttr start;
  /// The accumulated maximum that its terms are relative to, by number, where
  /// it is read (from the dimensions of this result), and the exponential.
  int maximum = -1;
  mlir::AffineMap factor;
  mlir::Operation *function = nullptr;
  /// Whether others are relative to it.
  bool isMaximum = false;

  mlir::Value result() const { return tile::GroupOp(nest)->getResult(number); }
  /// The map of its result.
  mlir::AffineMap output() const {
    return linalgOp().getIndexingMapsArray().back();
  }
  mlir::linalg::GenericOp linalgOp() const { return op; }
};

class OnlineChain {
public:
  /// Reads the attributes of the operations in `task`. Emits an error where
  /// they describe no chain that can run in blocks.
  static mlir::FailureOr<OnlineChain> get(tile::GroupOp task);

  llvm::SmallVector<tile::GroupOp> nests;
  llvm::SmallVector<Accumulator> accumulators;
  /// Size of the loop (kDynamic where a run brings it), of its blocks, and of
  /// register tiles along it for what is left behind whole blocks (0: as in
  /// blocks).
  int64_t extent = 0, block = 0, rest = 0;

  bool empty() const { return nests.empty(); }
  /// The loop of an operation that runs in blocks; it has one.
  static unsigned loopOf(mlir::linalg::GenericOp op);
  bool isAccumulator(mlir::linalg::GenericOp op) const;
  /// The accumulator that a value of the task's region holds, or -1.
  int accumulatorOf(mlir::Value value) const;

private:
  mlir::LogicalResult add(tile::GroupOp nest);
  mlir::LogicalResult addAccumulator(tile::GroupOp nest,
                                     mlir::linalg::GenericOp op);
  mlir::LogicalResult findFactor(Accumulator &accumulator);
  mlir::LogicalResult trace(mlir::OpOperand &operand, mlir::AffineMap access,
                            Accumulator &accumulator);
  mlir::LogicalResult verifyUses() const;
};

/// Gives `op` register tiles of `size` along a loop, where they are larger.
void shrinkTile(mlir::Operation *op, unsigned loop, int64_t size);
/// States that a loop of `op` has `most` steps at most (`tile.bounds`).
void setBound(mlir::Operation *op, unsigned loop, int64_t most);

} // namespace tilewright

#endif // TILEWRIGHT_TRANSFORMS_PLAN_ONLINECHAIN_H

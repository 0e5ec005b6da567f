//===- OnlineParts.h - parts of a loop in blocks ----------------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a loop that runs in blocks is made of: its whole blocks and what is left
// of it, with sizes that a run may bring, and the operations on what is carried
// from block to block.
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TRANSFORMS_PLAN_ONLINEPARTS_H
#define TILEWRIGHT_TRANSFORMS_PLAN_ONLINEPARTS_H

#include "lib/Transforms/Plan/OnlineChain.h"
#include "mlir/IR/IRMapping.h"

namespace tilewright {

/// A part of the loop: from where, and how far; a size that only a run knows
/// (kDynamic) is a value of the task.
struct OnlinePart {
  mlir::OpFoldResult offset;
  int64_t size;
  mlir::Value length = {};
};

/// An operation over all points of `type`, with the sizes of it that only a run
/// knows. Inputs are read through maps.
mlir::linalg::GenericOp elementwise(
    mlir::OpBuilder &builder, mlir::Location loc, mlir::RankedTensorType type,
    mlir::ValueRange sizes, mlir::ValueRange inputs,
    llvm::ArrayRef<mlir::AffineMap> inputMaps,
    llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::ValueRange)> body);

/// The sizes of what an operation makes that only a run knows, as its register
/// group has them; as a copy of the group has them.
llvm::SmallVector<mlir::Value> openSizes(mlir::linalg::GenericOp op);
llvm::SmallVector<mlir::Value> openSizes(mlir::linalg::GenericOp op,
                                         const mlir::IRMapping &inner);

/// The tile of an operation over the dimensions of an accumulator's result.
tile::RTileAttr tileOfResult(const Accumulator &acc);

/// What an accumulator holds before the first block.
mlir::TypedAttr startOf(const Accumulator &acc);

/// Whether the body of an operation counts the loop that runs in blocks.
bool counts(mlir::linalg::GenericOp op);
/// Lets what a copy of `op` makes for a part count from where the part begins.
void countFrom(mlir::linalg::GenericOp op, mlir::Value made,
               mlir::Value offset);

/// The size of the loop that runs in blocks, where only a run knows it: that of
/// an argument of the task; null where none has it.
mlir::Value sizeOfLoop(mlir::OpBuilder &builder, const OnlineChain &chain);

/// Where whole blocks of a loop of `extent` steps end, and what is left of it.
std::pair<mlir::Value, OnlinePart> cutOpen(mlir::OpBuilder &builder,
                                           mlir::Value extent, int64_t block);

/// The steps of a loop that share an element: 1 where an expression is the loop
/// itself, more where it counts units of it; none for other expressions.
std::optional<int64_t> unitOf(mlir::AffineExpr expr);

} // namespace tilewright

#endif // TILEWRIGHT_TRANSFORMS_PLAN_ONLINEPARTS_H

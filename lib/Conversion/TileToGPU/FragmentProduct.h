//===- FragmentProduct.h - products of fragments ----------------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CONVERSION_TILETOGPU_FRAGMENTPRODUCT_H
#define TILEWRIGHT_CONVERSION_TILETOGPU_FRAGMENTPRODUCT_H

#include "lib/Conversion/TileToGPU/DistributedTiles.h"
#include "lib/Conversion/TileToGPU/Fragments.h"

namespace tilewright {

/// Registers of a product's operand with zeros where they are padding along the
/// depth (dimension `dim`), which takes part in the sums.
mlir::SmallVector<mlir::Value> clearDepth(mlir::OpBuilder &b, tile::MmaOp op,
                                          mlir::Value tile, int64_t dim,
                                          mlir::ValueRange values);

/// A tile.mma whose operands are fragments in registers, as instructions of a
/// matrix unit. `Unit` has the unit's `name`, the `Shape` of its instruction
/// and the layouts of its fragments, and is built (with the registers of the
/// metadata, where there is some) and run for each product.
template <typename Unit>
struct FragmentProductPattern : DistributedPattern<tile::MmaOp> {
  using Base::Base;

  mlir::LogicalResult
  matchAndRewrite(tile::MmaOp op, Adaptor adaptor,
                  mlir::ConversionPatternRewriter &rewriter) const override {
    auto a = LinearLayout::of(op.getA().getType());
    auto rhs = LinearLayout::of(op.getB().getType());
    auto c = LinearLayout::of(op.getC().getType());
    if (!a || !rhs || !c)
      return rewriter.notifyMatchFailure(op, "an operand is in shared memory");
    std::optional<typename Unit::Shape> shape =
        Unit::shapeOf(op, distributed.getArch());
    if (!shape)
      return op.emitOpError("of these elements and layouts is no ")
             << Unit::name;
    auto sizes = [](mlir::Value tile) {
      return mlir::cast<tile::TileType>(tile.getType()).getShape();
    };
    if (!Unit::isResult(*c) ||
        *a != Unit::operandLayout(*c, false, sizes(op.getA()), *shape) ||
        *rhs != Unit::operandLayout(*c, true, sizes(op.getB()), *shape))
      return op.emitOpError(
                 "has operands that are not distributed as fragments of ")
             << Unit::name
             << " that meet the result's; tile-assign-distributed-layouts "
                "makes them";
    if (mlir::Value meta = op.getMeta();
        meta && LinearLayout::of(meta.getType()) != mmaMetaLayout(op, *c))
      return op.emitOpError("has metadata that is not distributed as the words "
                            "of sparse products; "
                            "tile-assign-distributed-layouts makes it so");
    mlir::SmallVector<mlir::Value> left =
        clearDepth(rewriter, op, op.getA(), 1, adaptor.getA());
    mlir::SmallVector<mlir::Value> right =
        clearDepth(rewriter, op, op.getB(), 0, adaptor.getB());
    rewriter.replaceOpWithMultiple(
        op, {Unit(rewriter, op, *shape, adaptor.getMeta())
                 .run(left, right, adaptor.getC())});
    return mlir::success();
  }
};

} // namespace tilewright

#endif // TILEWRIGHT_CONVERSION_TILETOGPU_FRAGMENTPRODUCT_H

//===- DistributedElementwise.cpp - arith, math, select, constants --------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToGPU/DistributedTiles.h"
#include "lib/Conversion/TileToVector/AnyMachine.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace tilewright;

namespace {

/// Any arith or math op on tiles, register by register.
struct ElementwisePattern : ConversionPattern {
  ElementwisePattern(const DistributedConverter &converter,
                     MLIRContext *context)
      : ConversionPattern(converter, MatchAnyOpTypeTag(), /*benefit=*/1,
                          context) {}

  LogicalResult
  matchAndRewrite(Operation *op, ArrayRef<ValueRange> operands,
                  ConversionPatternRewriter &rewriter) const override {
    if (!OpTrait::hasElementwiseMappableTraits(op) ||
        op->getNumResults() != 1 || op->getNumOperands() == 0 ||
        !isa<tile::TileType>(op->getResult(0).getType()))
      return failure();
    for (Value operand : op->getOperands())
      if (!isa<tile::TileType>(operand.getType()))
        return rewriter.notifyMatchFailure(op, "mixes tiles and scalars");
    auto type = cast<tile::TileType>(op->getResult(0).getType());
    ThreadView view(rewriter, op->getLoc(), type);
    SmallVector<Value> results;
    for (int64_t number = 0; number < view.getNumRegisters(); ++number) {
      SmallVector<Value> inputs;
      for (ValueRange range : operands)
        inputs.push_back(range[number]);
      if (dividesIntegers(op) && !view.alwaysExists(number))
        inputs[1] = avoidZero(rewriter, op->getLoc(), view, number, inputs[1]);
      Operation *copy = Operation::create(
          op->getLoc(), op->getName(), type.getElementType(), inputs,
          op->getDiscardableAttrDictionary(), op->getPropertiesStorage(),
          /*successors=*/BlockRange(), /*numRegions=*/0);
      results.push_back(rewriter.insert(copy)->getResult(0));
    }
    rewriter.replaceOpWithMultiple(op, {results});
    return success();
  }

private:
  /// Padding holds anything, and a division by zero is undefined.
  static Value avoidZero(OpBuilder &b, Location loc, ThreadView &view,
                         int64_t number, Value divisor) {
    Value one = arith::ConstantOp::create(
        b, loc, b.getIntegerAttr(divisor.getType(), 1));
    if (view.neverExists(number))
      return one;
    return arith::SelectOp::create(b, loc, view.exists(number), divisor, one);
  }
};

struct ConstantPattern : DistributedPattern<arith::ConstantOp> {
  using Base::Base;

  LogicalResult
  matchAndRewrite(arith::ConstantOp op, Adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto layout = LinearLayout::of(op.getType());
    auto dense = dyn_cast<DenseElementsAttr>(op.getValue());
    if (!layout || !dense)
      return failure();
    if (!dense.isSplat())
      return op.emitOpError("of a tile must be a splat here: run "
                            "tile-kernels-to-gpu, which puts others in memory");
    Value value = arith::ConstantOp::create(
        rewriter, op.getLoc(),
        cast<TypedAttr>(dense.getSplatValue<Attribute>()));
    rewriter.replaceOpWithMultiple(
        op, {SmallVector<Value>(layout->getNumRegisters(), value)});
    return success();
  }
};

struct SelectPattern : DistributedPattern<tile::SelectOp> {
  using Base::Base;

  LogicalResult
  matchAndRewrite(tile::SelectOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    SmallVector<Value> results;
    for (auto [condition, left, right] :
         llvm::zip_equal(adaptor.getCondition(), adaptor.getTrueValue(),
                         adaptor.getFalseValue()))
      results.push_back(arith::SelectOp::create(rewriter, op.getLoc(),
                                                condition, left, right));
    rewriter.replaceOpWithMultiple(op, {results});
    return success();
  }
};

} // namespace

void tilewright::populateDistributedElementwisePatterns(
    const DistributedConverter &converter, RewritePatternSet &patterns) {
  patterns.add<ElementwisePattern, ConstantPattern, SelectPattern>(
      converter, patterns.getContext());
}

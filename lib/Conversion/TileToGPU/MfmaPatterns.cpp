//===- MfmaPatterns.cpp - products on a wave's matrix unit
//-------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToGPU/Fragments.h"
#include "lib/Conversion/TileToGPU/SpreadTiles.h"

using namespace mlir;
using namespace tilewright;

namespace {

/// One tile.mma as many v_mfma.
class Mfma {
public:
  Mfma(OpBuilder &b, tile::MmaOp op, const MfmaShape &shape)
      : b(b), loc(op.getLoc()), shape(shape),
        a(*LinearLayout::of(op.getA().getType())),
        rhs(*LinearLayout::of(op.getB().getType())),
        c(*LinearLayout::of(op.getC().getType())) {}

  SmallVector<Value> run(ValueRange aValues, ValueRange bValues,
                         ValueRange cValues) {
    SmallVector<Value> sums(cValues);
    // k outermost: neighbouring instructions do not wait for each other.
    for (int64_t k = 0; k < a.getSizes()[1]; k += shape.k)
      for (int64_t first = 0; first < c.getNumRegisters(); first += 4) {
        SmallVector<int64_t> at = c.getRegister(first);
        multiply(fragment(a, aValues, {at[0], k}),
                 fragment(rhs, bValues, {k, at[1]}), first, sums);
      }
    return sums;
  }

private:
  /// A lane's elements of an operand from coordinates on, as the instruction
  /// wants them: a number, a vector of halves, or eight bytes as i64.
  Value fragment(const LinearLayout &layout, ValueRange values,
                 ArrayRef<int64_t> at) {
    int64_t first = 0;
    for (auto [index, bit] : llvm::enumerate(layout.getRegisterBits()))
      first |= (at[bit.dim] >> bit.bit & 1) << index;
    if (shape.each == 1)
      return values[first];
    Value vector = pack(values.slice(first, shape.each));
    Type element = values[first].getType();
    if (element.isBF16())
      return LLVM::BitcastOp::create(
          b, loc, VectorType::get(shape.each, b.getI16Type()), vector);
    if (element.isInteger(8))
      return LLVM::BitcastOp::create(b, loc, b.getI64Type(), vector);
    return vector;
  }

  Value pack(ValueRange parts) {
    auto type = VectorType::get(static_cast<int64_t>(parts.size()),
                                parts.front().getType());
    Value vector = LLVM::UndefOp::create(b, loc, type);
    for (auto [index, part] : llvm::enumerate(parts))
      vector = LLVM::InsertElementOp::create(
          b, loc, vector, part,
          constantI32(b, loc, static_cast<int64_t>(index)));
    return vector;
  }

  void multiply(Value left, Value right, int64_t first,
                SmallVectorImpl<Value> &sums) {
    Value sum = pack(ArrayRef(sums).slice(first, 4));
    Value none = LLVM::ConstantOp::create(b, loc, b.getI32IntegerAttr(0));
    Value result = LLVM::CallIntrinsicOp::create(
                       b, loc, sum.getType(), b.getStringAttr(shape.name),
                       {left, right, sum, none, none, none})
                       .getResult(0);
    for (int64_t i = 0; i < 4; ++i)
      sums[first + i] = LLVM::ExtractElementOp::create(b, loc, result,
                                                       constantI32(b, loc, i));
  }

  OpBuilder &b;
  Location loc;
  MfmaShape shape;
  LinearLayout a, rhs, c;
};

struct MfmaPattern : SpreadPattern<tile::MmaOp> {
  using Base::Base;

  LogicalResult
  matchAndRewrite(tile::MmaOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto a = LinearLayout::of(op.getA().getType());
    auto rhs = LinearLayout::of(op.getB().getType());
    auto c = LinearLayout::of(op.getC().getType());
    if (!a || !rhs || !c)
      return rewriter.notifyMatchFailure(op, "an operand is in shared memory");
    std::optional<MfmaShape> shape = MfmaShape::of(op);
    if (!shape)
      return op.emitOpError("of these elements is no v_mfma");
    auto shapeOf = [](Value tile) {
      return cast<tile::TileType>(tile.getType()).getShape();
    };
    if (*a != mfmaOperandLayout(*c, false, shapeOf(op.getA()), *shape) ||
        *rhs != mfmaOperandLayout(*c, true, shapeOf(op.getB()), *shape))
      return op.emitOpError("has operands that are not spread as fragments of "
                            "v_mfma that meet the result's; "
                            "tile-assign-spreads makes them");
    SmallVector<Value> left =
        clearDepth(rewriter, op, op.getA(), 1, adaptor.getA());
    SmallVector<Value> right =
        clearDepth(rewriter, op, op.getB(), 0, adaptor.getB());
    rewriter.replaceOpWithMultiple(
        op, {Mfma(rewriter, op, *shape).run(left, right, adaptor.getC())});
    return success();
  }
};

} // namespace

void tilewright::populateMfmaPatterns(const SpreadConverter &converter,
                                      RewritePatternSet &patterns) {
  patterns.add<MfmaPattern>(converter, patterns.getContext());
}

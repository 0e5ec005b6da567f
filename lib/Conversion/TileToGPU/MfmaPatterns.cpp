//===- MfmaPatterns.cpp - products on a wave's matrix unit ----------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToGPU/FragmentProduct.h"

using namespace mlir;
using namespace tilewright;

namespace {

/// One tile.mma as many v_mfma.
class Mfma {
public:
  using Shape = MfmaShape;
  static constexpr llvm::StringLiteral name = "v_mfma";
  static std::optional<Shape> shapeOf(tile::MmaOp op, int64_t) {
    return MfmaShape::of(op);
  }
  static bool isResult(const LinearLayout &layout) { return true; }
  static LinearLayout operandLayout(const LinearLayout &result, bool isB,
                                    ArrayRef<int64_t> sizes,
                                    const Shape &shape) {
    return mfmaOperandLayout(result, isB, sizes, shape);
  }

  Mfma(OpBuilder &b, tile::MmaOp op, const MfmaShape &shape,
       ValueRange /*meta*/)
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

} // namespace

void tilewright::populateMfmaPatterns(const DistributedConverter &converter,
                                      RewritePatternSet &patterns) {
  patterns.add<FragmentProductPattern<Mfma>>(converter, patterns.getContext());
}

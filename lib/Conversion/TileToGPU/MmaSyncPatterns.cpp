//===- MmaSyncPatterns.cpp - products on a warp's matrix unit -------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToGPU/Fragments.h"
#include "lib/Conversion/TileToGPU/SpreadTiles.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace tilewright;

SmallVector<Value> tilewright::clearDepth(OpBuilder &b, tile::MmaOp op,
                                          Value tile, int64_t dim,
                                          ValueRange values) {
  auto type = cast<tile::TileType>(tile.getType());
  LinearLayout layout = *LinearLayout::of(type);
  SmallVector<int64_t> shape = layout.getSizes();
  shape[dim] = type.getShape()[dim];
  ThreadView view(b, op.getLoc(), layout, shape);
  SmallVector<Value> result(values);
  Value zero;
  for (auto [index, value] : llvm::enumerate(result)) {
    auto number = static_cast<int64_t>(index);
    if (view.alwaysExists(number))
      continue;
    if (!zero)
      zero = arith::ConstantOp::create(b, op.getLoc(),
                                       b.getZeroAttr(value.getType()));
    if (view.neverExists(number))
      value = zero;
    else
      value = arith::SelectOp::create(b, op.getLoc(), view.exists(number),
                                      value, zero);
  }
  return result;
}

namespace {

/// One tile.mma as many mma.sync.
class MmaSync {
public:
  MmaSync(OpBuilder &b, tile::MmaOp op, const MmaShape &shape)
      : b(b), op(op), loc(op.getLoc()), shape(shape),
        a(*LinearLayout::of(op.getA().getType())),
        rhs(*LinearLayout::of(op.getB().getType())),
        c(*LinearLayout::of(op.getC().getType())) {}

  SmallVector<Value> run(ValueRange aValues, ValueRange bValues,
                         ValueRange cValues) {
    SmallVector<Value> sums(cValues);
    int64_t depth = a.getSizes()[1];
    // Blocks of the result by their first register; k outermost, so that
    // neighbouring instructions do not wait for each other.
    for (int64_t k = 0; k < depth; k += shape.k)
      for (int64_t first = 0; first < c.getNumRegisters(); ++first) {
        SmallVector<int64_t> at = c.getRegister(first);
        if (at[0] % shape.m != 0 || at[1] % shape.n != 0)
          continue;
        multiply(fragment(a, aValues, {at[0], k}, 4),
                 fragment(rhs, bValues, {k, at[1]}, 2), fragmentOf(at), sums);
      }
    return sums;
  }

private:
  /// The registers of a fragment that starts at coordinates, in their order.
  static SmallVector<int64_t> registersFrom(const LinearLayout &layout,
                                            ArrayRef<int64_t> at,
                                            int64_t count) {
    int64_t first = 0;
    for (auto [index, bit] : llvm::enumerate(layout.getRegisterBits()))
      first |= (at[bit.dim] >> bit.bit & 1) << index;
    SmallVector<int64_t> numbers;
    for (int64_t i = 0; i < count; ++i)
      numbers.push_back(first + i);
    return numbers;
  }

  SmallVector<int64_t> fragmentOf(ArrayRef<int64_t> at) const {
    return registersFrom(c, at, 4);
  }

  /// Words of 32 bits of an operand.
  SmallVector<Value> fragment(const LinearLayout &layout, ValueRange values,
                              ArrayRef<int64_t> at, int64_t words) {
    SmallVector<int64_t> numbers =
        registersFrom(layout, at, words * shape.packed);
    SmallVector<Value> result;
    for (int64_t word = 0; word < words; ++word) {
      SmallVector<Value> parts;
      for (int64_t i = 0; i < shape.packed; ++i)
        parts.push_back(values[numbers[word * shape.packed + i]]);
      result.push_back(packWord(parts));
    }
    return result;
  }

  Value packWord(ArrayRef<Value> parts) {
    Type i32 = b.getI32Type(), element = parts.front().getType();
    if (shape.tf32) {
      return NVVM::ConvertFloatToTF32Op::create(
          b, loc, i32, parts.front(), NVVM::FPRoundingMode::RNA,
          NVVM::SaturationMode::NONE, /*relu=*/false);
    }
    Type number = element;
    if (element.getIntOrFloatBitWidth() == 8)
      number = b.getI8Type();
    auto type = VectorType::get(static_cast<int64_t>(parts.size()), number);
    Value vector = LLVM::UndefOp::create(b, loc, type);
    for (auto [index, part] : llvm::enumerate(parts)) {
      Value value = part;
      if (number != element)
        value = arith::BitcastOp::create(b, loc, number, value);
      vector = LLVM::InsertElementOp::create(
          b, loc, vector, value,
          constantI32(b, loc, static_cast<int64_t>(index)));
    }
    if (element.isF16())
      return vector; // the intrinsic takes pairs as they are
    return LLVM::BitcastOp::create(b, loc, i32, vector);
  }

  void multiply(ArrayRef<Value> left, ArrayRef<Value> right,
                ArrayRef<int64_t> targets, SmallVectorImpl<Value> &sums) {
    SmallVector<Value> operands(left);
    llvm::append_range(operands, right);
    for (int64_t target : targets)
      operands.push_back(sums[target]);
    Type element = sums.front().getType();
    auto result = LLVM::LLVMStructType::getLiteral(
        b.getContext(), SmallVector<Type>(4, element));
    std::string name =
        ("llvm.nvvm.mma.m16n8k" + Twine(shape.k) + ".row.col." + shape.name)
            .str();
    Value all = LLVM::CallIntrinsicOp::create(b, loc, result,
                                              b.getStringAttr(name), operands)
                    .getResult(0);
    for (auto [index, target] : llvm::enumerate(targets))
      sums[target] = LLVM::ExtractValueOp::create(b, loc, all,
                                                  static_cast<int64_t>(index));
  }

  OpBuilder &b;
  tile::MmaOp op;
  Location loc;
  MmaShape shape;
  LinearLayout a, rhs, c;
};

struct MmaSyncPattern : SpreadPattern<tile::MmaOp> {
  using Base::Base;

  LogicalResult
  matchAndRewrite(tile::MmaOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto a = LinearLayout::of(op.getA().getType());
    auto rhs = LinearLayout::of(op.getB().getType());
    auto c = LinearLayout::of(op.getC().getType());
    if (!a || !rhs || !c)
      return rewriter.notifyMatchFailure(op, "an operand is in shared memory");
    std::optional<MmaShape> shape = MmaShape::of(op, spread.getArch());
    if (!shape)
      return op.emitOpError("of these elements and layouts is no mma.sync");
    auto shapeOf = [](Value tile) {
      return cast<tile::TileType>(tile.getType()).getShape();
    };
    if (!isMmaResult(*c) ||
        *a != mmaOperandLayout(*c, false, shapeOf(op.getA()), *shape) ||
        *rhs != mmaOperandLayout(*c, true, shapeOf(op.getB()), *shape))
      return op.emitOpError("has operands that are not spread as fragments of "
                            "mma.sync that meet the result's; "
                            "tile-assign-spreads makes them");
    SmallVector<Value> left =
        clearDepth(rewriter, op, op.getA(), 1, adaptor.getA());
    SmallVector<Value> right =
        clearDepth(rewriter, op, op.getB(), 0, adaptor.getB());
    rewriter.replaceOpWithMultiple(
        op, {MmaSync(rewriter, op, *shape).run(left, right, adaptor.getC())});
    return success();
  }
};

} // namespace

void tilewright::populateMmaSyncPatterns(const SpreadConverter &converter,
                                         RewritePatternSet &patterns) {
  patterns.add<MmaSyncPattern>(converter, patterns.getContext());
}

//===- MmaSyncPatterns.cpp - products on a warp's matrix unit -------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToGPU/FragmentProduct.h"
#include "lib/Conversion/TileToGPU/MmaMeta.h"

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

/// One tile.mma as many mma.sync, or mma.sp where its `a` is 2:4 sparse.
class MmaSync {
public:
  using Shape = MmaShape;
  static constexpr llvm::StringLiteral name = "mma.sync";
  static std::optional<Shape> shapeOf(tile::MmaOp op, int64_t arch) {
    return MmaShape::of(op, arch);
  }
  static bool isResult(const LinearLayout &layout) {
    return isMmaResult(layout);
  }
  static LinearLayout operandLayout(const LinearLayout &result, bool isB,
                                    ArrayRef<int64_t> sizes,
                                    const Shape &shape) {
    return mmaOperandLayout(result, isB, sizes, shape);
  }

  MmaSync(OpBuilder &b, tile::MmaOp op, const MmaShape &shape, ValueRange meta)
      : b(b), op(op), loc(op.getLoc()), shape(shape),
        a(*LinearLayout::of(op.getA().getType())),
        rhs(*LinearLayout::of(op.getB().getType())),
        c(*LinearLayout::of(op.getC().getType())) {
    if (shape.sparse)
      words.emplace(b, op, meta);
  }

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
        SmallVector<Value> operands = fragment(a, aValues, {at[0], k}, 4);
        int64_t row = k / shape.k * shape.depth();
        llvm::append_range(operands, fragment(rhs, bValues, {row, at[1]},
                                              2 * shape.depth() / shape.k));
        multiply(operands, registersFrom(c, at, 4), {at[0], k}, sums);
      }
    return sums;
  }

private:
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

  /// `operands`: fragments of `a` and `b`, the former from `at` on.
  void multiply(SmallVector<Value> operands, ArrayRef<int64_t> targets,
                ArrayRef<int64_t> at, SmallVectorImpl<Value> &sums) {
    for (int64_t target : targets)
      operands.push_back(sums[target]);
    if (words) {
      operands.push_back(words->at(at[0], at[1]));
      operands.push_back(constantI32(b, loc, selectorOf(at[1])));
    }
    Type element = sums.front().getType();
    auto result = LLVM::LLVMStructType::getLiteral(
        b.getContext(), SmallVector<Type>(4, element));
    Value all = LLVM::CallIntrinsicOp::create(
                    b, loc, result, b.getStringAttr(intrinsic()), operands)
                    .getResult(0);
    for (auto [index, target] : llvm::enumerate(targets))
      sums[target] = LLVM::ExtractValueOp::create(b, loc, all,
                                                  static_cast<int64_t>(index));
  }

  /// Which lanes of four have an instruction's metadata: a word has that of
  /// two instructions of 16 bits in turn, and that of one of bytes.
  int64_t selectorOf(int64_t k) const { return k % kMetaColumns / shape.k; }

  std::string intrinsic() const {
    StringRef kind = !shape.sparse    ? ""
                     : !shape.ordered ? "sp."
                                      : "sp.ordered.metadata.";
    return ("llvm.nvvm.mma." + kind + "m16n8k" + Twine(shape.depth()) +
            ".row.col." + shape.name)
        .str();
  }

  OpBuilder &b;
  tile::MmaOp op;
  Location loc;
  MmaShape shape;
  LinearLayout a, rhs, c;
  std::optional<MetaWords> words;
};

} // namespace

void tilewright::populateMmaSyncPatterns(const DistributedConverter &converter,
                                         RewritePatternSet &patterns) {
  patterns.add<FragmentProductPattern<MmaSync>>(converter,
                                                patterns.getContext());
}

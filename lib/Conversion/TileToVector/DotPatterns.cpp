//===- DotPatterns.cpp - tile.mma as dot products of groups ---------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// vdpbf16ps adds the products of two pairs of bf16 to each f32 lane, vpdpbusd
// those of four unsigned and four signed bytes to each i32 lane (exactly: its
// intermediate sums do not saturate). b holds the groups of a column side by
// side; a group of a is one word that is broadcast.
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToVector/TileParts.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace tilewright;

namespace {

class DotEmitter {
public:
  DotEmitter(OpBuilder &b, tile::MmaOp op, DotUnits units, const TileParts &lhs,
             const TileParts &rhs, const TileParts &acc)
      : b(b), op(op), loc(op.getLoc()), units(units), lhs(lhs), rhs(rhs),
        acc(acc), group(op.getB().getType().getInterleave()) {}

  TileParts emit() {
    TileParts result = acc;
    const PartLayout &layout = acc.getLayout();
    for (int64_t k = 0; k < rhs.getLayout().getRows(); ++k)
      for (int64_t m = 0; m < layout.getRows(); ++m) {
        Value x = groupOf(m, k);
        for (auto [c, chunk] : llvm::enumerate(layout.getChunks())) {
          Value &sum = result.getMutableParts()[layout.getPart(m, c)];
          sum = dot(x, rhs.getPart(k, c), sum, chunk);
        }
      }
    return result;
  }

private:
  Type element() const { return lhs.getLayout().getElementType(); }

  /// The k-th group of a row of a; what lies beyond the tile is zero.
  Value groupOf(int64_t m, int64_t k) {
    int64_t valid = std::min(group, lhs.getLayout().getWidth() - k * group);
    auto type = VectorType::get(group, element());
    Value none =
        constantPart(b, loc, type, cast<TypedAttr>(b.getZeroAttr(element())));
    if (lhs.getLayout().isScalar())
      return vector::InsertOp::create(b, loc, lhs.getPart(m, 0), none,
                                      int64_t(0));
    Value lanes = lhs.getLanes(b, loc, m, k * group, {k * group, group, valid},
                               /*scalar=*/false);
    if (valid == group)
      return lanes;
    return arith::SelectOp::create(
        b, loc, raggedMask(b, loc, {0, group, valid}), lanes, none);
  }

  Value dot(Value x, Value y, Value sum, const Chunk &chunk) {
    auto type = dyn_cast<VectorType>(sum.getType());
    StringRef name = type && chunk.lanes >= 4 ? instruction() : StringRef();
    if (name.empty())
      return widened(x, y, sum);
    auto words = VectorType::get(chunk.lanes, b.getI32Type());
    Value word = vector::BitCastOp::create(
        b, loc, VectorType::get(1, b.getI32Type()), x);
    word = vector::ExtractOp::create(b, loc, word, int64_t(0));
    Value all = vector::BroadcastOp::create(b, loc, words, word);
    all = vector::BitCastOp::create(b, loc, y.getType(), all);
    // The unsigned operand comes first.
    if (op.getBUnsigned())
      std::swap(all, y);
    auto full = (name + "." + Twine(chunk.lanes * 32)).str();
    return LLVM::CallIntrinsicOp::create(b, loc, type, b.getStringAttr(full),
                                         ValueRange{sum, all, y})
        ->getResult(0);
  }

  /// The intrinsic for these types, without the width; empty where the
  /// processor has none.
  StringRef instruction() {
    Type wide = acc.getLayout().getElementType();
    if (element() != rhs.getLayout().getElementType())
      return {};
    if (units.bf16 && group == 2 && element().isBF16() && wide.isF32())
      return "llvm.x86.avx512bf16.dpbf16ps";
    if (units.i8 && group == 4 && element().isInteger(8) &&
        wide.isInteger(32) && op.getAUnsigned() != op.getBUnsigned())
      return "llvm.x86.avx512.vpdpbusd";
    return {};
  }

  /// One product after the other in the accumulator's type.
  Value widened(Value x, Value y, Value sum) {
    Type wide = acc.getLayout().getElementType();
    int64_t lanes = cast<VectorType>(y.getType()).getNumElements() / group;
    for (int64_t j = 0; j < group; ++j) {
      Value left = vector::ExtractOp::create(b, loc, x, j);
      left = splatTo(b, loc, sum.getType(),
                     widenTo(b, loc, wide, left, op.getAUnsigned()));
      Value right;
      if (isa<VectorType>(sum.getType())) {
        SmallVector<int64_t> picked;
        for (int64_t lane = 0; lane < lanes; ++lane)
          picked.push_back(lane * group + j);
        right = vector::ShuffleOp::create(b, loc, y, y, picked);
      } else {
        right = vector::ExtractOp::create(b, loc, y, j);
      }
      sum = multiplyAdd(b, loc, left,
                        widenTo(b, loc, wide, right, op.getBUnsigned()), sum);
    }
    return sum;
  }

  OpBuilder &b;
  tile::MmaOp op;
  Location loc;
  DotUnits units;
  const TileParts &lhs, &rhs, &acc;
  int64_t group;
};

} // namespace

TileParts tilewright::emitDotProducts(OpBuilder &b, tile::MmaOp op,
                                      DotUnits units, const TileParts &lhs,
                                      const TileParts &rhs,
                                      const TileParts &acc) {
  return DotEmitter(b, op, units, lhs, rhs, acc).emit();
}

//===- MmaMeta.cpp - words of sparsity metadata ---------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToGPU/MmaMeta.h"
#include "lib/Conversion/TileToGPU/Fragments.h"

using namespace mlir;
using namespace tilewright;

/// Positions 0 and 1 of four groups: what padding says, since units refuse two
/// equal positions.
static constexpr int64_t kPaddedCodes = 0x4444;

SmallVector<int64_t> tilewright::registersFrom(const LinearLayout &layout,
                                               ArrayRef<int64_t> at,
                                               int64_t count) {
  int64_t first = 0;
  for (auto [index, bit] : llvm::enumerate(layout.getRegisterBits()))
    first |= (at[bit.dim] >> bit.bit & 1) << index;
  return llvm::to_vector(llvm::seq<int64_t>(first, first + count));
}

MetaWords::MetaWords(OpBuilder &b, tile::MmaOp op, ValueRange values)
    : b(b), loc(op.getLoc()), packed(isPackedMeta(op)),
      layout(*LinearLayout::of(op.getMeta().getType())),
      shape(cast<tile::TileType>(op.getMeta().getType()).getShape()),
      values(values) {}

/// The value where the tile has one, else one that no unit stumbles on.
Value MetaWords::clear(Value value, int64_t number) {
  ThreadView view(b, loc, layout, shape);
  if (view.alwaysExists(number))
    return value;
  int64_t code = packed ? kPaddedCodes : layout.getRegister(number)[1] & 1;
  Value padded = arith::ConstantOp::create(
      b, loc, b.getIntegerAttr(value.getType(), code));
  if (view.neverExists(number))
    return padded;
  return arith::SelectOp::create(b, loc, view.exists(number), value, padded);
}

Value MetaWords::pack(ArrayRef<Value> parts) {
  Type i32 = b.getI32Type();
  Value word;
  int64_t bits = 32 / static_cast<int64_t>(parts.size());
  for (auto [index, part] : llvm::enumerate(parts)) {
    Value value = part;
    if (value.getType().isIndex())
      value = arith::IndexCastOp::create(b, loc, i32, value);
    else if (value.getType().getIntOrFloatBitWidth() > 32)
      value = arith::TruncIOp::create(b, loc, i32, value);
    else if (value.getType() != i32)
      value = arith::ExtUIOp::create(b, loc, i32, value);
    if (index > 0)
      value = arith::ShLIOp::create(
          b, loc, value,
          constantI32(b, loc, bits * static_cast<int64_t>(index)));
    word = word ? arith::OrIOp::create(b, loc, word, value) : value;
  }
  return word;
}

Value MetaWords::at(int64_t row, int64_t column) {
  column -= column % kMetaColumns;
  SmallVector<int64_t> numbers = registersFrom(
      layout, {row, packed ? column / 8 : column}, packed ? 2 : 16);
  Value &word = words[numbers.front()];
  if (word)
    return word;
  SmallVector<Value> parts;
  for (int64_t number : numbers)
    parts.push_back(clear(values[number], number));
  return word = pack(parts);
}

//===- MfmaFragments.cpp - layouts of v_mfma -----------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToGPU/Fragments.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tilewright;

static int64_t bitsFor(int64_t size) { return llvm::Log2_64_Ceil(size); }

std::optional<MfmaShape> MfmaShape::of(tile::MmaOp op) {
  auto elementOf = [](Value tile) {
    return cast<tile::TileType>(tile.getType()).getElementType();
  };
  Type a = elementOf(op.getA()), c = elementOf(op.getC());
  if (op.getMeta() || a != elementOf(op.getB()))
    return std::nullopt;
  if (a.isF16() && c.isF32())
    return MfmaShape{16, 4, "llvm.amdgcn.mfma.f32.16x16x16f16"};
  if (a.isBF16() && c.isF32())
    return MfmaShape{16, 4, "llvm.amdgcn.mfma.f32.16x16x16bf16.1k"};
  if (a.isF32() && c.isF32())
    return MfmaShape{4, 1, "llvm.amdgcn.mfma.f32.16x16x4f32"};
  if (a.isInteger(8) && c.isInteger(32) && !op.getAUnsigned() &&
      !op.getBUnsigned())
    return MfmaShape{32, 8, "llvm.amdgcn.mfma.i32.16x16x32.i8"};
  return std::nullopt;
}

static void addRegisters(LinearLayout &layout, int64_t dim, int64_t first,
                         int64_t last) {
  for (int64_t bit = first; bit < last; ++bit)
    layout.addRegister(dim, bit);
}

/// Lane l holds column l mod 16, rows 4 (l / 16) to 4 (l / 16) + 3.
LinearLayout tilewright::mfmaResultLayout(ArrayRef<int64_t> shape,
                                          WarpGrid waves) {
  LinearLayout layout(2);
  int64_t rows = std::max<int64_t>(4, bitsFor(shape[0]));
  int64_t columns = std::max<int64_t>(4, bitsFor(shape[1]));
  int64_t rowWaves = std::min(bitsFor(waves.rows), rows - 4);
  int64_t columnWaves = std::min(bitsFor(waves.columns), columns - 4);
  addRegisters(layout, 0, 0, 2);
  addRegisters(layout, 1, 4, columns - columnWaves);
  addRegisters(layout, 0, 4, rows - rowWaves);
  for (int64_t bit : {0, 1, 2, 3})
    layout.addThread(1, bit);
  for (int64_t bit : {2, 3})
    layout.addThread(0, bit);
  for (int64_t bit = rows - rowWaves; bit < rows; ++bit)
    layout.addThread(0, bit);
  for (int64_t bit = columns - columnWaves; bit < columns; ++bit)
    layout.addThread(1, bit);
  int64_t all = bitsFor(waves.rows * waves.columns * waves.copies);
  for (int64_t bit = rowWaves + columnWaves; bit < all; ++bit)
    layout.addReplica();
  return layout;
}

/// Lane l holds row (of b: column) l mod 16, and of the depth `each` elements
/// from each (l / 16) on.
LinearLayout tilewright::mfmaOperandLayout(const LinearLayout &result, bool isB,
                                           ArrayRef<int64_t> shape,
                                           const MfmaShape &mfma) {
  int64_t outer = isB ? 1 : 0, k = 1 - outer;
  int64_t each = bitsFor(mfma.each), block = bitsFor(mfma.k);
  LinearLayout layout(2);
  addRegisters(layout, k, 0, each);
  addRegisters(layout, k, block, std::max(block, bitsFor(shape[k])));
  for (CoordinateBit bit : result.getRegisterBits())
    if (bit.dim == outer && bit.bit >= 4)
      layout.addRegister(outer, bit.bit);
  for (int64_t bit : {0, 1, 2, 3})
    layout.addThread(outer, bit);
  for (int64_t bit : {each, each + 1})
    layout.addThread(k, bit);
  for (CoordinateBit bit :
       result.getThreadBits().drop_front(LinearLayout::laneBits + 1)) {
    if (!bit.isNone() && bit.dim == outer)
      layout.addThread(bit.dim, bit.bit);
    else
      layout.addReplica();
  }
  return layout;
}

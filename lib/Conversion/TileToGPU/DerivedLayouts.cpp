//===- DerivedLayouts.cpp - layouts that follow from others ---------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToGPU/DerivedLayouts.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tilewright;

static ArrayRef<int64_t> shapeOf(Value tile) {
  return cast<tile::TileType>(tile.getType()).getShape();
}

std::optional<LinearLayout>
tilewright::getResultLayout(tile::TransposeOp op, const LinearLayout &source) {
  return source.permute(op.getPermutation());
}

std::optional<LinearLayout>
tilewright::getSourceLayout(tile::TransposeOp op, const LinearLayout &result) {
  SmallVector<int64_t> inverse(op.getPermutation().size());
  for (auto [index, dim] : llvm::enumerate(op.getPermutation()))
    inverse[dim] = static_cast<int64_t>(index);
  return result.permute(inverse);
}

std::optional<LinearLayout>
tilewright::getResultLayout(tile::ReshapeOp op, const LinearLayout &source) {
  return reshapeLayout(source, shapeOf(op.getSource()),
                       shapeOf(op.getResult()));
}

std::optional<LinearLayout>
tilewright::getSourceLayout(tile::ReshapeOp op, const LinearLayout &result) {
  return reshapeLayout(result, shapeOf(op.getResult()),
                       shapeOf(op.getSource()));
}

std::optional<LinearLayout>
tilewright::getExtractLayout(tile::ExtractOp op, const LinearLayout &source) {
  auto result = dyn_cast<tile::TileType>(op.getResult().getType());
  if (!result)
    return std::nullopt;
  SmallVector<int64_t> kept; // sizes of the bits that stay
  for (auto [offset, size, whole] : llvm::zip_equal(
           op.getOffsets(), result.getShape(), shapeOf(op.getSource()))) {
    if (size == whole) {
      kept.push_back(std::numeric_limits<int64_t>::max());
      continue;
    }
    if (!llvm::isPowerOf2_64(size) || offset % size != 0)
      return std::nullopt;
    kept.push_back(size);
  }
  LinearLayout layout(source.getRank());
  for (CoordinateBit bit : source.getRegisterBits())
    if (bit.getValue() < kept[bit.dim])
      layout.addRegister(bit.dim, bit.bit);
  for (CoordinateBit bit : source.getThreadBits()) {
    if (bit.isNone())
      layout.addReplica();
    else if (bit.getValue() < kept[bit.dim])
      layout.addThread(bit.dim, bit.bit);
    else
      return std::nullopt;
  }
  return layout;
}

LinearLayout tilewright::getBroadcastSource(tile::BroadcastOp op,
                                            const LinearLayout &result) {
  ArrayRef<int64_t> source = shapeOf(op.getSource());
  ArrayRef<int64_t> shape = shapeOf(op.getResult());
  auto leading = static_cast<int64_t>(shape.size() - source.size());
  SmallVector<int64_t> dims;
  for (int64_t dim = 0; dim < static_cast<int64_t>(shape.size()); ++dim)
    if (dim < leading || source[dim - leading] != shape[dim])
      dims.push_back(dim);
  return result.slice(dims).dropLeading(leading);
}

LinearLayout tilewright::getIndexLayout(const LinearLayout &tile, int64_t dim) {
  SmallVector<int64_t> others;
  for (int64_t other = 0; other < tile.getRank(); ++other)
    if (other != dim)
      others.push_back(other);
  return *tile.slice(others).rename(
      1, [](CoordinateBit bit) -> std::optional<CoordinateBit> {
        return CoordinateBit{0, bit.bit};
      });
}

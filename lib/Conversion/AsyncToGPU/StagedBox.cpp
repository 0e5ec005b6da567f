//===- StagedBox.cpp - parts of a tile that TMA stores -===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/AsyncToGPU/StagedBox.h"

using namespace mlir;

namespace tilewright {

namespace {

/// Bytes of a row in shared memory at most, and of a chunk; elements of a box
/// along a dimension at most (CUDA driver API, cuTensorMapEncodeTiled).
constexpr int64_t kSpan = 128, kChunk = 16, kMostElements = 256;

/// Bits of an address that the swizzle takes the chunk's number from.
constexpr int64_t kFirstSwizzleBit = 7;

} // namespace

std::optional<StagedBox> StagedBox::of(const LinearLayout &layout,
                                       int64_t bytes) {
  if (layout.getReplicas() != 0 || layout.getRank() == 0)
    return std::nullopt;
  StagedBox box;
  box.elementBytes = bytes;
  for (int64_t dim = 0; dim < layout.getRank(); ++dim) {
    bool isRow = dim + 1 == layout.getRank();
    int64_t most = isRow ? kSpan / bytes : kMostElements, size = 1;
    for (int64_t bit = 0; size < most; ++bit, size *= 2) {
      std::optional<int64_t> thread = layout.findThread({dim, bit});
      bool inWarp = thread ? *thread < LinearLayout::laneBits
                           : layout.findRegister({dim, bit}).has_value();
      if (!inWarp)
        break;
    }
    box.sizes.push_back(size);
  }
  if (box.getSpan() < kChunk)
    return std::nullopt;
  return box;
}

int64_t StagedBox::getBytes() const {
  int64_t bytes = elementBytes;
  for (int64_t size : sizes)
    bytes *= size;
  return bytes;
}

bool StagedBox::holds(CoordinateBit bit) const {
  return !bit.isNone() && bit.getValue() < sizes[bit.dim];
}

SmallVector<SmallVector<int64_t>> StagedBox::getOffsets() const {
  SmallVector<SmallVector<int64_t>> offsets(sizes.size());
  int64_t offset = elementBytes;
  for (auto dim = static_cast<int64_t>(sizes.size()) - 1; dim >= 0; --dim)
    for (int64_t size = 1; size < sizes[dim]; size *= 2, offset *= 2) {
      // Rows of 128 bytes exchange eight chunks, of 64 four, of 32 two: bit 7
      // of an address and those above it choose among them.
      int64_t chunk = kChunk * (offset >> kFirstSwizzleBit);
      bool swizzled = offset >= getSpan() && chunk < getSwizzle();
      offsets[dim].push_back(offset | (swizzled ? chunk : 0));
    }
  return offsets;
}

} // namespace tilewright

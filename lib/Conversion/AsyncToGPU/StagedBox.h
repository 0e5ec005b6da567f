//===- StagedBox.h - parts of a tile that TMA stores -===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CONVERSION_ASYNCTOGPU_STAGEDBOX_H
#define TILEWRIGHT_CONVERSION_ASYNCTOGPU_STAGEDBOX_H

#include "lib/Analysis/LinearLayout.h"

namespace tilewright {

/// A box of a tile that one warp holds: the warp puts it into shared memory,
/// row by row with the chunks of a row swizzled, and the tensor memory
/// accelerator (TMA) stores it. A warp holds one or more of them, all alike.
class StagedBox {
public:
  /// The largest box of a layout over all threads, of elements of `bytes` bytes
  /// with rows along the last dimension. None where a warp holds no box: where
  /// several threads hold the same element, or rows of less than 16 bytes.
  static std::optional<StagedBox> of(const LinearLayout &layout, int64_t bytes);

  /// Elements along each dimension of the tile.
  mlir::ArrayRef<int64_t> getSizes() const { return sizes; }
  /// Bytes of a row, and of the swizzle (0 without).
  int64_t getSpan() const { return sizes.back() * elementBytes; }
  int64_t getSwizzle() const { return getSpan() >= 32 ? getSpan() : 0; }
  int64_t getBytes() const;
  /// Whether a coordinate bit is inside of a box: others number the boxes.
  bool holds(CoordinateBit bit) const;
  /// Byte offset of each bit of each coordinate in the box; several bits are
  /// combined by exclusive or. Bits outside have none.
  mlir::SmallVector<mlir::SmallVector<int64_t>> getOffsets() const;

private:
  mlir::SmallVector<int64_t> sizes;
  int64_t elementBytes = 0;
};

} // namespace tilewright

#endif // TILEWRIGHT_CONVERSION_ASYNCTOGPU_STAGEDBOX_H

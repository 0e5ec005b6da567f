//===- SharedPlaces.h - places in shared memory -===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CONVERSION_ASYNCTOGPU_SHAREDPLACES_H
#define TILEWRIGHT_CONVERSION_ASYNCTOGPU_SHAREDPLACES_H

#include "dialects/Tile/Tile.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Builders.h"

namespace tilewright {

/// A part of a buffer in shared memory, as a place in the whole.
///
/// The last dimension of a buffer is its rows. They are cut into panels of
/// `getSpan()` bytes (a panel has all rows of a slot, the first dimension), and
/// 16-byte chunks are exchanged by the swizzle.
struct SharedPlace {
  /// The `tile.alloc` or `memref.view`, and its layout, null for none.
  mlir::Value base;
  tile::LayoutAttr layout;
  /// Where the part begins, per dimension of the base.
  llvm::SmallVector<mlir::OpFoldResult> offsets;
  /// The base's dimension that each of the part's runs along.
  llvm::SmallVector<int64_t> dims;

  mlir::MemRefType getType() const;
  int64_t getElementBytes() const;
  int64_t getSwizzle() const { return layout ? layout.getSwizzle() : 0; }
  int64_t getRowBytes() const;
  /// Bytes of a row in one panel.
  int64_t getSpan() const;
  /// Rows of one slot, and its bytes.
  int64_t getSlotRows() const;
  int64_t getSlotBytes() const { return getSlotRows() * getRowBytes(); }
  int64_t getPanelBytes() const { return getSlotRows() * getSpan(); }
  /// Whether the part is one whole slot.
  bool isSlot(mlir::MemRefType part) const;
};

/// The place of a view; nothing where it is none of shared memory, or has steps
/// or a layout that is neither a swizzle nor panels of its span.
std::optional<SharedPlace> findSharedPlace(mlir::OpBuilder &b,
                                           mlir::Value memref);

/// The address of a buffer's first element.
mlir::Value sharedPointer(mlir::OpBuilder &b, mlir::Location loc,
                          mlir::Value memref);

/// `pointer` + `bytes` (i32 or i64, or a constant).
mlir::Value offsetPointer(mlir::OpBuilder &b, mlir::Location loc,
                          mlir::Value pointer, mlir::Value bytes);
mlir::Value offsetPointer(mlir::OpBuilder &b, mlir::Location loc,
                          mlir::Value pointer, int64_t bytes);

/// Whether a memref lies in shared memory.
bool isShared(mlir::Type type);

mlir::Value makeI32(mlir::OpBuilder &b, mlir::Location loc, int64_t value);

} // namespace tilewright

#endif // TILEWRIGHT_CONVERSION_ASYNCTOGPU_SHAREDPLACES_H

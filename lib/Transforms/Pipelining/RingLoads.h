//===- RingLoads.h - loads that may go through a ring -----------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TRANSFORMS_PIPELINING_RINGLOADS_H
#define TILEWRIGHT_TRANSFORMS_PIPELINING_RINGLOADS_H

#include "dialects/Tile/Tile.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

#include <string>

namespace tilewright {

/// A load of a loop's body, as a ring of slots sees it.
struct RingLoad {
  tile::LoadOp load;
  /// The memref dimensions that the tile covers, as memory orders them.
  llvm::SmallVector<int64_t> dims;
  /// Sizes of what is loaded along `dims`.
  llvm::SmallVector<int64_t> shape;
  /// What alone reads a tile of several dimensions of places, as rows: a slot
  /// then has rows and columns, as matrix units want it. Null for none.
  tile::ReshapeOp rows;
  /// Span in bytes of the slot's swizzle, 0 for none.
  int64_t swizzle;

  int64_t elementBytes() const;
  /// Sizes of a slot, and the type of the tile that is loaded from it.
  llvm::SmallVector<int64_t> slotShape() const;
  tile::TileType tileType() const;
  /// The type and layout of a ring of `stages` slots.
  mlir::MemRefType ringType(int64_t stages) const;
  tile::LayoutAttr ringLayout() const;
  /// Bytes that a ring must be aligned to, for its swizzle.
  int64_t alignment() const;
  /// The dimension of the slot that tile dimension `dim` runs along.
  int64_t slotDim(int64_t dim) const;
};

/// How `load` would fill a slot by a copy of its own, which may be under way
/// before the kernel stores anything; else why it cannot, in `reason`.
std::optional<RingLoad> analyzeOnceLoad(tile::LoadOp load, std::string &reason);

/// How `load` would go through a ring; else why it cannot, in `reason`.
std::optional<RingLoad> analyzeRingLoad(mlir::scf::ForOp loop,
                                        tile::LoadOp load, std::string &reason);

/// Clones what `value` needs of the loop's body, other values of the loop as
/// `map` has them.
mlir::Value cloneAddress(mlir::OpBuilder &b, mlir::scf::ForOp loop,
                         mlir::Value value, mlir::IRMapping &map);

/// Makes a ring of `stages` slots at the start of the load's kernel.
mlir::Value createRing(const RingLoad &ring, int64_t stages);

/// The whole of slot `slot` of the ring `buffer`, in memory's dimensions.
mlir::Value viewSlot(mlir::OpBuilder &b, const RingLoad &ring,
                     mlir::Value buffer, mlir::OpFoldResult slot);

/// What the load reads, in the order of memory; `here` gives its operands as
/// they are where `b` stands. Where the load may reach out of the buffer, the
/// view is as large as the tile, and the copy knows.
mlir::Value viewSource(mlir::OpBuilder &b, const RingLoad &ring,
                       llvm::function_ref<mlir::Value(mlir::Value)> here);

/// Copies what `viewSource` gave into what `viewSlot` gave.
void createCopy(mlir::OpBuilder &b, const RingLoad &ring, mlir::Value source,
                mlir::Value target);

/// The load, from slot `slot` of the ring `buffer`.
mlir::Value loadSlot(mlir::OpBuilder &b, const RingLoad &ring,
                     mlir::Value buffer, mlir::Value slot);

/// Before a load: a copy in the background of what it reads into a buffer of
/// its own, which is waited for there. Gives the buffer, a ring of one slot.
mlir::Value copyOnce(const RingLoad &ring);

} // namespace tilewright

#endif // TILEWRIGHT_TRANSFORMS_PIPELINING_RINGLOADS_H

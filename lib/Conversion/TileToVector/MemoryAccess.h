//===- MemoryAccess.h - what tile.load and tile.store share -----*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CONVERSION_TILETOVECTOR_MEMORYACCESS_H
#define TILEWRIGHT_CONVERSION_TILETOVECTOR_MEMORYACCESS_H

#include "lib/Conversion/TileToVector/Addressing.h"

namespace tilewright {

/// The zero of a float, integer or index type.
mlir::Value zero(mlir::OpBuilder &b, mlir::Location loc, mlir::Type type);

/// i1 lives in memory as a byte: i8 -> i1 and back; other types are unchanged.
mlir::Value fromStorage(mlir::OpBuilder &b, mlir::Location loc,
                        mlir::Type element, mlir::Value value);
mlir::Value toStorage(mlir::OpBuilder &b, mlir::Location loc,
                      mlir::Type storageElement, mlir::Value value);

/// Fails with an error for elements that are no whole number of bytes.
mlir::LogicalResult checkStorable(mlir::Operation *op, mlir::Type element);

/// The parts of a tile in memory; `pad` stands for what is not accessed.
TileParts readTile(mlir::OpBuilder &b, mlir::Location loc,
                   VectorAddress &address, const PartLayout &layout,
                   mlir::Value pad);

/// The tile dimension that runs along memory when the last one does not, as a
/// permutation that swaps the two (its own inverse); nothing if a plain access
/// is better.
std::optional<mlir::SmallVector<int64_t>>
contiguousFirst(mlir::OpBuilder &b, mlir::Location loc, const AccessDesc &desc,
                const PartLayout &layout);

AccessDesc permute(const AccessDesc &desc, mlir::ArrayRef<int64_t> perm);

/// Base class of the patterns of tile.load and tile.store.
template <typename AccessOp>
class AccessPattern : public TilePattern<AccessOp> {
public:
  using Base = AccessPattern<AccessOp>;
  using Adaptor = typename TilePattern<AccessOp>::Adaptor;
  using TilePattern<AccessOp>::TilePattern;

protected:
  /// The access with its converted operands; dims and steps are filled in.
  AccessDesc describe(AccessOp op, Adaptor adaptor) const {
    AccessDesc desc;
    desc.memref = adaptor.getMemref().front();
    desc.offsets = singleValues(adaptor.getOffsets());
    desc.valid = singleValues(adaptor.getValid());
    desc.dims = op.getTileDims();
    desc.steps = op.getTileSteps();
    if (op.getIndices()) {
      desc.indices =
          this->getParts(op.getIndices().getType(), adaptor.getIndices());
      desc.along = *op.getAlong();
    }
    return desc;
  }

  PartLayout permuteLayout(const PartLayout &layout,
                           mlir::ArrayRef<int64_t> perm) const {
    mlir::SmallVector<int64_t> shape(layout.getShape());
    for (auto [dim, from] : llvm::enumerate(perm))
      shape[dim] = layout.getShape()[from];
    return PartLayout(shape, layout.getElementType(),
                      this->parts.getNativeLanes());
  }
};

void populateLoadPatterns(const TilePartsConverter &converter,
                          mlir::RewritePatternSet &patterns);
/// Gathers from tables that a register holds; x86 with vectors of 256 bits.
void populateTablePatterns(const TilePartsConverter &converter,
                           mlir::RewritePatternSet &patterns);
void populateStorePatterns(const TilePartsConverter &converter,
                           mlir::RewritePatternSet &patterns);
/// Copies that put rows side by side, group by group.
void populateInterleavePatterns(const TilePartsConverter &converter,
                                mlir::RewritePatternSet &patterns);

} // namespace tilewright

#endif // TILEWRIGHT_CONVERSION_TILETOVECTOR_MEMORYACCESS_H

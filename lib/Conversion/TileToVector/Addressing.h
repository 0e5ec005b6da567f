//===- Addressing.h - where the elements of a tile are ----------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A memref is seen as one flat buffer; the position of a tile element is
//   origin + sum over tile dims t of p_t * stride_t,
// so that every choice of `dims` and `steps` is the same case, and constant
// distances stay constants.
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CONVERSION_TILETOVECTOR_ADDRESSING_H
#define TILEWRIGHT_CONVERSION_TILETOVECTOR_ADDRESSING_H

#include "lib/Conversion/TileToVector/TileParts.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace tilewright {

/// A number that is a constant where possible.
mlir::Value indexValue(mlir::OpBuilder &b, mlir::Location loc,
                       mlir::OpFoldResult value);
mlir::OpFoldResult addIndex(mlir::OpBuilder &b, mlir::Location loc,
                            mlir::OpFoldResult x, mlir::OpFoldResult y);
mlir::OpFoldResult mulIndex(mlir::OpBuilder &b, mlir::Location loc,
                            mlir::OpFoldResult x, mlir::OpFoldResult y);

/// What a tile.load or tile.store says about memory, with converted operands.
struct AccessDesc {
  mlir::Value memref;
  mlir::SmallVector<mlir::Value> offsets;
  mlir::SmallVector<int64_t> dims;      // memref dimension per tile dimension
  mlir::SmallVector<int64_t> steps;     // step per tile dimension
  mlir::SmallVector<mlir::Value> valid; // empty or one per tile dimension
  int64_t along = -1;                   // tile dimension with an index list
  std::optional<TileParts> indices;     // the index list (rank 1)
};

/// Which positions of a chunk are accessed.
struct Mask {
  enum Kind { All, None, Some } kind;
  mlir::Value value; // Some: vector of i1, or i1 for a scalar
};

/// Addresses and masks of one access.
class VectorAddress {
public:
  VectorAddress(mlir::OpBuilder &b, mlir::Location loc, const AccessDesc &desc,
                const PartLayout &layout);

  /// The flat buffer; i1 elements appear as the bytes that hold them.
  mlir::Value getBuffer() const { return buffer; }
  mlir::Type getStorageType() const;

  /// Neighbouring positions along tile dimension `dim` are neighbours in
  /// memory.
  bool isContiguous(int64_t dim) const;
  bool hasIndicesAlong(int64_t dim) const { return desc.along == dim; }
  /// Constant distance along a tile dimension, if it is one.
  std::optional<int64_t> getStaticStride(int64_t dim) const;

  /// Flat index of position (row, lane) where the lane is a constant.
  mlir::Value getIndex(int64_t row, int64_t lane);
  /// Flat index of (row, 0), without the lane dimension's index list.
  mlir::Value getRowStart(int64_t row);
  /// Distances of a chunk's lanes from the row start, a vector of index (or of
  /// i32 where they are small constants).
  mlir::Value getLaneOffsets(const Chunk &chunk);
  /// Positions of a chunk that exist and are valid.
  Mask getMask(int64_t row, const Chunk &chunk);
  /// The same for one element.
  Mask getElementMask(int64_t row, int64_t lane);

private:
  Mask getRowMask(int64_t row);
  mlir::OpFoldResult getValid(int64_t dim) const;
  void flatten();
  int64_t getLaneDim() const {
    return static_cast<int64_t>(desc.dims.size()) - 1;
  }

  mlir::OpBuilder &b;
  mlir::Location loc;
  const AccessDesc &desc;
  const PartLayout &layout;
  mlir::Value buffer;
  mlir::OpFoldResult origin;
  int64_t displacement = 0; // constant part of the offsets, in elements
  mlir::SmallVector<mlir::OpFoldResult> strides;      // per tile dimension
  mlir::SmallVector<mlir::OpFoldResult> memrefStride; // before steps
};

} // namespace tilewright

#endif // TILEWRIGHT_CONVERSION_TILETOVECTOR_ADDRESSING_H

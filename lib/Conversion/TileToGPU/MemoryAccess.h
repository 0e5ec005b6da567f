//===- MemoryAccess.h - elements of a tile in memory ------------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CONVERSION_TILETOGPU_MEMORYACCESS_H
#define TILEWRIGHT_CONVERSION_TILETOGPU_MEMORYACCESS_H

#include "dialects/Tile/Elements.h"
#include "dialects/Tile/TileDecisions.h"
#include "lib/Conversion/TileToGPU/DistributedTiles.h"

namespace tilewright {

/// The type that is loaded and stored for an element (of `bytesOfElement`).
mlir::Type getMemoryType(mlir::Type element);
/// A number as it lies in memory, and back.
mlir::Value toMemory(mlir::OpBuilder &b, mlir::Location loc, mlir::Value value);
mlir::Value fromMemory(mlir::OpBuilder &b, mlir::Location loc,
                       mlir::Value value, mlir::Type element);

/// A power of two of elements that the place of the memref's first element is
/// a multiple of, as far as is known.
int64_t getBaseDivisor(mlir::Value memref);
/// How the elements of a shared buffer lie where that is not row-major: by the
/// `tile.layouts` of what made it.
struct Arrangement {
  int64_t swizzle = 0;           // bytes; 0 without
  int64_t panel = 0;             // columns of a panel; 0 without
  int64_t rows = 1, columns = 1; // of one slot

  /// Of the buffer behind a view; none where it is row-major.
  static std::optional<Arrangement> of(mlir::Value memref);
  /// Byte offset (i32) of an element from its row-major number (i32).
  mlir::Value place(mlir::OpBuilder &b, mlir::Location loc, mlir::Value number,
                    int64_t bytes) const;
};

/// What of a `tile.load` or `tile.store` decides how wide it can be.
struct AccessShape {
  mlir::Value memref;
  mlir::SmallVector<mlir::Value> offsets, valid;
  mlir::SmallVector<int64_t> dims, steps, tileShape;
  int64_t along = -1; // the gathered dimension of the tile
  int64_t vector = 0; // its vector size where that has been noted

  template <typename AccessOp> static AccessShape of(AccessOp op) {
    AccessShape shape{op.getMemref(),
                      llvm::to_vector(op.getOffsets()),
                      llvm::to_vector(op.getValid()),
                      op.getTileDims(),
                      op.getTileSteps(),
                      llvm::to_vector(op.getTileType().getShape())};
    if (op.getIndices())
      shape.along = static_cast<int64_t>(*op.getAlong());
    if (auto noted = tile::decisions::kVector.get(op))
      shape.vector = noted.getInt();
    return shape;
  }

  mlir::MemRefType getType() const {
    return mlir::cast<mlir::MemRefType>(memref.getType());
  }
  /// The tile's dimension that is contiguous in memory, -1 where none is.
  int64_t getContiguousDim() const;
  /// Elements of the contiguous dimension that one instruction may move, from
  /// each multiple of that number on: at most 16 bytes.
  int64_t getVectorSize() const;
};

/// Pointers to the elements that a thread holds.
class TileAddress {
public:
  /// `offsets` in elements of each memref dimension; `indices` by register of
  /// the index tile, where the access gathers.
  TileAddress(mlir::OpBuilder &b, mlir::Location loc, const AccessShape &access,
              mlir::Value memref, ThreadView &view, mlir::ValueRange offsets,
              mlir::ValueRange indices);

  /// The pointer to the element of a register.
  mlir::Value getPointer(int64_t number);

private:
  std::optional<int64_t> staticStride(int64_t dim) const;
  mlir::Value distance(int64_t dim, mlir::Value coordinate, int64_t step);
  void add(mlir::Value distance);

  mlir::OpBuilder &b;
  mlir::Location loc;
  const AccessShape &access;
  ThreadView &view;
  mlir::SmallVector<mlir::Value> indices;
  mlir::SmallVector<int64_t> strides;
  mlir::SmallVector<mlir::Value> dynamicStrides;
  int64_t bytes;
  std::optional<Arrangement> arrangement;
  /// A pointer; with an arrangement, to the buffer's start, and `number` is
  /// the row-major number so far.
  mlir::Value base, number;
};

/// A pointer to the memref's first element: `!llvm.ptr` of its memory space.
mlir::Value getPointerTo(mlir::OpBuilder &b, mlir::Location loc,
                         mlir::Value memref);
/// The same to the start of its buffer, and the element's number in it.
mlir::Value getBufferStart(mlir::OpBuilder &b, mlir::Location loc,
                           mlir::Value memref);
mlir::Value getBufferOffset(mlir::OpBuilder &b, mlir::Location loc,
                            mlir::Value memref);
/// `pointer` moved by bytes (i32 or i64).
mlir::Value movePointer(mlir::OpBuilder &b, mlir::Location loc,
                        mlir::Value pointer, mlir::Value bytes);
mlir::Value movePointer(mlir::OpBuilder &b, mlir::Location loc,
                        mlir::Value pointer, int64_t bytes);

/// Loads `count` elements side by side with one instruction: a scalar, or a
/// vector, of the memory type.
mlir::Value loadRaw(mlir::OpBuilder &b, mlir::Location loc, mlir::Value pointer,
                    mlir::Type element, int64_t count);
void storeRaw(mlir::OpBuilder &b, mlir::Location loc, mlir::Value pointer,
              mlir::Value raw);
/// Numbers as one scalar or vector of the memory type, and back.
mlir::Value packRaw(mlir::OpBuilder &b, mlir::Location loc,
                    mlir::ValueRange values);
mlir::SmallVector<mlir::Value> unpackRaw(mlir::OpBuilder &b, mlir::Location loc,
                                         mlir::Value raw, mlir::Type element);

/// The registers of a layout in groups of `count` that lie side by side along
/// `dim`; groups of one where `dim` is negative.
mlir::SmallVector<mlir::SmallVector<int64_t>>
groupRegisters(const LinearLayout &layout, int64_t dim, int64_t count);

/// Makes `scf.if when { body }`, or the body alone where `when` is null.
void guarded(mlir::OpBuilder &b, mlir::Location loc, mlir::Value when,
             llvm::function_ref<void(mlir::OpBuilder &)> body);
/// The same with values: `otherwise` where the condition is false.
mlir::SmallVector<mlir::Value> guarded(
    mlir::OpBuilder &b, mlir::Location loc, mlir::Value when,
    mlir::ValueRange otherwise,
    llvm::function_ref<mlir::SmallVector<mlir::Value>(mlir::OpBuilder &)> body);

/// All elements of a tile to memory, once each; padding is left out.
void storeTile(mlir::OpBuilder &b, mlir::Location loc,
               const AccessShape &access, ThreadView &view,
               mlir::ValueRange values);
/// All elements of a tile from memory, `access.offsets` added; registers of
/// padding are zero.
mlir::SmallVector<mlir::Value> loadTile(mlir::OpBuilder &b, mlir::Location loc,
                                        const AccessShape &access,
                                        ThreadView &view, mlir::Type element);

} // namespace tilewright

#endif // TILEWRIGHT_CONVERSION_TILETOGPU_MEMORYACCESS_H

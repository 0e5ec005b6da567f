//===- TileParts.h - how a tile is cut into native vectors ------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tile is a list of parts, row-major: `rows x chunks`. A row is one index of
// all dimensions but the last; a chunk is a native vector along the last one.
// A tile in which g rows alternate is held as what it is in memory: rows of
// groups, a chunk having g times the lanes.
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CONVERSION_TILETOVECTOR_TILEPARTS_H
#define TILEWRIGHT_CONVERSION_TILETOVECTOR_TILEPARTS_H

#include "dialects/Tile/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/DialectConversion.h"

namespace tilewright {

/// A native vector of a row: its first lane, its lanes, and how many of them
/// belong to the tile.
struct Chunk {
  int64_t start;
  int64_t lanes;
  int64_t valid;
  bool isRagged() const { return valid != lanes; }
};

/// How a tile type is cut into parts.
class PartLayout {
public:
  PartLayout(mlir::ArrayRef<int64_t> shape, mlir::Type element,
             int64_t nativeLanes);

  mlir::ArrayRef<int64_t> getShape() const { return shape; }
  mlir::Type getElementType() const { return element; }
  /// Product of all sizes but the last.
  int64_t getRows() const { return rows; }
  /// Size of the last dimension (1 for a tile of rank 0).
  int64_t getWidth() const { return width; }
  /// A width of 1 is held as scalars.
  bool isScalar() const { return width == 1; }
  mlir::ArrayRef<Chunk> getChunks() const { return chunks; }
  int64_t getNumParts() const { return rows * chunks.size(); }
  int64_t getPart(int64_t row, int64_t chunk) const {
    return row * static_cast<int64_t>(chunks.size()) + chunk;
  }
  const Chunk &getChunkOfPart(int64_t part) const {
    return chunks[part % chunks.size()];
  }
  mlir::Type getPartType(const Chunk &chunk) const;
  void getPartTypes(mlir::SmallVectorImpl<mlir::Type> &types) const;

  /// Index over all dimensions but the last, and back.
  mlir::SmallVector<int64_t> getRowIndex(int64_t row) const;
  int64_t getRow(mlir::ArrayRef<int64_t> index) const;

private:
  mlir::SmallVector<int64_t> shape;
  mlir::Type element;
  int64_t rows = 1, width = 1;
  mlir::SmallVector<Chunk> chunks;
};

/// Instructions of a processor that multiply groups of small numbers and add
/// each group's products to an accumulator of 32 bits.
struct DotUnits {
  bool bf16 = false; // pairs of bf16
  bool i8 = false;   // fours of unsigned and signed bytes
};

/// How a tile is held in registers of a matrix unit (x86's AMX): blocks of
/// rows, row-major. Where rows alternate, a register's row holds a group of
/// them.
class MatrixBlocks {
public:
  /// Nothing for tiles that are held in vectors.
  static std::optional<MatrixBlocks> of(mlir::Type type);

  int64_t rowBlocks() const { return llvm::divideCeil(shape[0], size[0]); }
  int64_t columnBlocks() const { return llvm::divideCeil(shape[1], size[1]); }
  int64_t count() const { return rowBlocks() * columnBlocks(); }
  /// First row and column of a block, in the tile.
  int64_t rowAt(int64_t block) const { return block * size[0]; }
  int64_t columnAt(int64_t block) const { return block * size[1]; }
  /// Rows of a register, and bytes of each.
  int64_t rows(int64_t block) const {
    return llvm::divideCeil(std::min(size[0], shape[0] - rowAt(block)), group);
  }
  int64_t bytes(int64_t block) const {
    return std::min(size[1], shape[1] - columnAt(block)) * group * elementBytes;
  }
  int64_t getGroup() const { return group; }
  int64_t getElementBytes() const { return elementBytes; }

private:
  mlir::SmallVector<int64_t, 2> shape, size;
  int64_t group = 1, elementBytes = 1;
};

/// Converts tile types 1:N; knows the number of lanes.
class TilePartsConverter : public mlir::TypeConverter {
public:
  explicit TilePartsConverter(int64_t nativeLanes);
  PartLayout getLayout(mlir::Type tileType) const;
  int64_t getNativeLanes() const { return nativeLanes; }

private:
  int64_t nativeLanes;
};

/// A tile as parts, with element access that hides the cutting.
class TileParts {
public:
  TileParts(PartLayout layout, mlir::ValueRange parts)
      : layout(std::move(layout)), parts(parts.begin(), parts.end()) {}
  explicit TileParts(PartLayout layout) : layout(std::move(layout)) {}

  const PartLayout &getLayout() const { return layout; }
  mlir::ArrayRef<mlir::Value> getParts() const { return parts; }
  mlir::SmallVectorImpl<mlir::Value> &getMutableParts() { return parts; }
  mlir::Value getPart(int64_t row, int64_t chunk) const {
    return parts[layout.getPart(row, chunk)];
  }
  /// One element as a scalar.
  mlir::Value getElement(mlir::OpBuilder &b, mlir::Location loc, int64_t row,
                         int64_t lane) const;
  /// Lanes [start, start + valid) of a row as a vector of `lanes` (or a scalar
  /// when `lanes` is 1 and the result is a scalar tile).
  mlir::Value getLanes(mlir::OpBuilder &b, mlir::Location loc, int64_t row,
                       int64_t start, const Chunk &chunk, bool scalar) const;

private:
  PartLayout layout;
  mlir::SmallVector<mlir::Value> parts;
};

/// Makes a part from `chunk.valid` scalars; lanes beyond repeat the last one.
mlir::Value packElements(mlir::OpBuilder &b, mlir::Location loc,
                         const PartLayout &layout, const Chunk &chunk,
                         mlir::ArrayRef<mlir::Value> elements);

/// A scalar as a part of the given type.
mlir::Value splatTo(mlir::OpBuilder &b, mlir::Location loc, mlir::Type type,
                    mlir::Value scalar);

/// A constant number as a part (scalar or vector) of the given type.
mlir::Value constantPart(mlir::OpBuilder &b, mlir::Location loc,
                         mlir::Type type, mlir::TypedAttr scalar);

/// The constant mask of a ragged chunk.
mlir::Value raggedMask(mlir::OpBuilder &b, mlir::Location loc,
                       const Chunk &chunk);

/// Transposes square blocks held in `rows` (each a vector of `n` lanes, `n` a
/// power of two and equal to rows.size()) with two-operand shuffles.
void transposeSquare(mlir::OpBuilder &b, mlir::Location loc,
                     mlir::SmallVectorImpl<mlir::Value> &rows);

/// The tile with dimensions permuted: result dim `i` is source dim `perm[i]`.
TileParts transposeParts(mlir::OpBuilder &b, mlir::Location loc,
                         const TileParts &source, const PartLayout &result,
                         mlir::ArrayRef<int64_t> perm);

/// Base class of the patterns of one tile op.
template <typename SourceOp>
class TilePattern : public mlir::OpConversionPattern<SourceOp> {
public:
  using Base = TilePattern<SourceOp>;
  using Adaptor = typename mlir::OpConversionPattern<SourceOp>::OneToNOpAdaptor;
  TilePattern(const TilePartsConverter &converter, mlir::MLIRContext *context,
              mlir::PatternBenefit benefit = 1)
      : mlir::OpConversionPattern<SourceOp>(converter, context, benefit),
        parts(converter) {}

protected:
  PartLayout getLayout(mlir::Type type) const { return parts.getLayout(type); }
  TileParts getParts(mlir::Type type, mlir::ValueRange values) const {
    return TileParts(parts.getLayout(type), values);
  }
  const TilePartsConverter &parts;
};

/// The values of a variadic operand whose types convert one to one.
mlir::SmallVector<mlir::Value>
singleValues(mlir::ArrayRef<mlir::ValueRange> operands);

void populateCopyPatterns(const TilePartsConverter &converter,
                          mlir::RewritePatternSet &patterns);
void populateElementwisePatterns(const TilePartsConverter &converter,
                                 mlir::RewritePatternSet &patterns);
void populateMemoryPatterns(const TilePartsConverter &converter,
                            mlir::RewritePatternSet &patterns);
/// Tiles that are held in blocks.
void populateMatrixPatterns(const TilePartsConverter &converter,
                            mlir::RewritePatternSet &patterns);
void populateMmaPatterns(const TilePartsConverter &converter, DotUnits units,
                         mlir::RewritePatternSet &patterns);

/// a @ b + c where rows of b alternate in its registers.
TileParts emitDotProducts(mlir::OpBuilder &b, tile::MmaOp op, DotUnits units,
                          const TileParts &lhs, const TileParts &rhs,
                          const TileParts &acc);

/// A number as wide as `element`; integers by sign unless `isUnsigned`.
mlir::Value widenTo(mlir::OpBuilder &b, mlir::Location loc, mlir::Type element,
                    mlir::Value value, bool isUnsigned);

/// A number (scalar or vector) of another type, as `tile.convert` says.
mlir::Value convertNumber(mlir::OpBuilder &b, mlir::Location loc,
                          mlir::Value value, mlir::Type element,
                          bool isUnsigned);

/// x * y + sum.
mlir::Value multiplyAdd(mlir::OpBuilder &b, mlir::Location loc, mlir::Value x,
                        mlir::Value y, mlir::Value sum);
void populateReducePatterns(const TilePartsConverter &converter,
                            mlir::RewritePatternSet &patterns);
void populateShapePatterns(const TilePartsConverter &converter,
                           mlir::RewritePatternSet &patterns);

} // namespace tilewright

#endif // TILEWRIGHT_CONVERSION_TILETOVECTOR_TILEPARTS_H

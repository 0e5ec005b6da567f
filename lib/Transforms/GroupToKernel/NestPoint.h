//===- NestPoint.h - the register tile that is being emitted ----*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where the emission of a register group is: the part of the nest that its task
// covers, the loops that are open and the current tile, and what follows from
// these. The parts of an emitter share one point: the schedule moves it, the
// others read it.
//
// All tiles have rank two, (row, lane): the lanes are the last nest dimension
// whose register tile exceeds one, the rows all others, one after the other
// (two lines of an image, say). A missing one has size 1. The reduced
// dimension that the rtile's level `mma` tiles is the depth: a third one, which
// the operands of a product have and accumulators do not.
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TRANSFORMS_GROUPTOKERNEL_NESTPOINT_H
#define TILEWRIGHT_TRANSFORMS_GROUPTOKERNEL_NESTPOINT_H

#include "lib/Transforms/GroupToKernel/NestAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"

namespace tilewright {

/// Where a tensor lives while a task runs. `origin` is subtracted from an
/// access: a buffer of the task holds a region only. Its expressions have the
/// symbols of the task. A number that the task computes is a value (`memref`).
struct Storage {
  mlir::Value memref;
  Access origin;
};

/// The part of the nest's domain that a task covers, in terms of the symbols
/// of the task: the grid's ids, then sizes known at run time only.
struct Box {
  llvm::SmallVector<mlir::AffineExpr> offsets, sizes;
  /// Extents of the loops, which the last tasks of a padded grid may exceed.
  llvm::SmallVector<mlir::AffineExpr> extents;
};

/// A size that is known at compile time.
inline std::optional<int64_t> staticSize(mlir::AffineExpr size) {
  if (auto constant = mlir::dyn_cast<mlir::AffineConstantExpr>(size))
    return constant.getValue();
  return std::nullopt;
}

inline llvm::ArrayRef<int64_t> shapeOf(mlir::Value tile) {
  return mlir::cast<tile::TileType>(tile.getType()).getShape();
}

struct NestPoint {
  NestPoint(mlir::OpBuilder &builder, const NestAnalysis &nest, Box box,
            const llvm::DenseMap<mlir::Value, Storage> &storage,
            mlir::ArrayRef<mlir::Value> symbols)
      : builder(builder), nest(nest), box(std::move(box)), storage(storage),
        symbols(symbols) {}

  mlir::OpBuilder &builder;
  const NestAnalysis &nest;
  Box box;
  const llvm::DenseMap<mlir::Value, Storage> &storage;
  mlir::ArrayRef<mlir::Value> symbols;

  /// The nest dimensions of a tile's two axes: several parallel ones or one
  /// for the rows, at most one for the lanes.
  std::array<llvm::SmallVector<int>, 2> tileDims;
  /// The reduced dimension that products take several elements of at once.
  int depthDim = -1;
  /// Which operand of a tile product has the rows.
  unsigned rowOperand = 0;
  llvm::SmallVector<unsigned> parallelOrder, reductionOrder;
  /// The current tile: its absolute position and size per nest dimension. The
  /// dims of a position are the loops' variables in `loops`, its symbols those
  /// of the task: what a buffer's origin subtracts then cancels.
  llvm::SmallVector<mlir::AffineExpr> position;
  llvm::SmallVector<mlir::Value> loops;
  llvm::SmallVector<int64_t> sizes;

  void setDim(unsigned dim, mlir::Value iv, int64_t start, int64_t size,
              int64_t unit = 1);
  llvm::SmallVector<int64_t> tileSizes(unsigned dim) const;
  /// Step of the loop over a dimension: its register tile, inside the task.
  int64_t stepOf(unsigned dim) const { return tileSizes(dim).front(); }

  /// Size of the current tile along an axis: 0 for rows, 1 for lanes.
  int64_t axisSize(unsigned axis) const {
    int64_t size = 1;
    for (int dim : tileDims[axis])
      size *= sizes[dim];
    return size;
  }
  llvm::SmallVector<int64_t> tileShape() const {
    return {axisSize(0), axisSize(1)};
  }
  /// The reduced dimension that an axis runs along, or -1.
  int reducedDim(unsigned axis) const;
  bool hasBlocks() const;
  bool isShared(unsigned dim) const;
  /// Rows or lanes that a block of the matrix unit has along a dimension.
  int64_t blockOf(unsigned dim) const;
  bool dependsOnReduction(const Access &access) const;

  mlir::Value index(mlir::Location loc, mlir::AffineExpr expr) const;
  mlir::Value least(mlir::Location loc,
                    llvm::ArrayRef<mlir::AffineExpr> exprs) const;
  bool isRagged(unsigned dim) const;
  mlir::Value validAlong(mlir::Location loc, unsigned dim) const;

  static tile::TileType tileType(llvm::ArrayRef<int64_t> shape,
                                 mlir::Type element) {
    return tile::TileType::get(shape, element);
  }
  mlir::Value broadcast(mlir::Value tile, llvm::ArrayRef<int64_t> shape) const;
  /// A tile of one element.
  mlir::Value constant(mlir::Location loc, mlir::TypedAttr value) const;
};

/// The product in `combiner(accumulator, product)`; null where there is none.
mlir::Operation *productOf(mlir::linalg::GenericOp op);

} // namespace tilewright

#endif // TILEWRIGHT_TRANSFORMS_GROUPTOKERNEL_NESTPOINT_H

//===- NestEmitter.h - a register group as loops over tiles -----*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Emits the loop nest of one register group: loops over the root's dimensions
// in the order and with the sizes of its rtile, tile loads, the bodies of the
// group's operations on whole tiles, and tile stores. Remainders of a loop are
// emitted as one more static tile, so no mask depends on a run-time value. A
// loop whose extent is known at run time only runs over whole tiles as often as
// there are any, then over ever smaller ones. In a padded nest (`tile.padded`;
// for machines whose tiles are distributed over threads) all tiles have one
// size instead, and loads and stores have bounds where an edge is ragged.
//
// All tiles have rank two, (row, lane): the lanes are the last nest dimension
// whose register tile exceeds one, the rows all others, one after the other
// (two lines of an image, say). A missing one has size 1. The reduced
// dimension that the rtile's level `mma` tiles is the depth: a third one, which
// the operands of a product have and accumulators do not.
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TRANSFORMS_GROUPTOKERNEL_NESTEMITTER_H
#define TILEWRIGHT_TRANSFORMS_GROUPTOKERNEL_NESTEMITTER_H

#include "lib/Transforms/GroupToKernel/NestAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
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

/// An operation with the name and attributes of `op` on other operands.
mlir::Value createLike(mlir::OpBuilder &builder, mlir::Operation *op,
                       mlir::ValueRange operands, mlir::Type type);

/// What a reduction's combiner makes of an accumulator and a term.
mlir::Value combine(mlir::OpBuilder &builder, mlir::Operation *combiner,
                    mlir::Value acc, mlir::Value term);

/// acc + a * b on tiles, which `widen` brings to the shape of `acc`.
mlir::Value multiplyAdd(mlir::OpBuilder &b, mlir::Location loc, mlir::Value a,
                        mlir::Value c, mlir::Value acc,
                        llvm::function_ref<mlir::Value(mlir::Value)> widen);

/// Whether a scalar of a body depends on a loop of the nest.
bool dependsOn(mlir::linalg::GenericOp op, mlir::Value value,
               const Access &binding, int dim);

class NestEmitter {
public:
  NestEmitter(mlir::OpBuilder &builder, const NestAnalysis &nest, Box box,
              const llvm::DenseMap<mlir::Value, Storage> &storage,
              mlir::ArrayRef<mlir::Value> symbols)
      : builder(builder), nest(nest), box(std::move(box)), storage(storage),
        symbols(symbols) {}

  /// What of a nest to emit: all of it or, where its reduction runs in blocks,
  /// the values that the sum starts from, or one block that adds to the result.
  enum class Part { All, Init, Block };
  void emitOnly(Part wanted) { part = wanted; }

  /// Emits the whole nest at the builder's insertion point.
  mlir::LogicalResult emit();

private:
  struct Reduction; // NestReduction.cpp

  // Loops (NestEmitter.cpp).
  using PointFn = llvm::function_ref<mlir::LogicalResult()>;
  mlir::LogicalResult findTileDims();
  mlir::LogicalResult emitParallel(unsigned level);
  mlir::LogicalResult emitPoint();
  mlir::LogicalResult storeResults(bool inReduction);
  /// A stretch of a dimension, in tiles of one size: a loop from `lower` to
  /// `upper` over `unroll` of them, or a single tile at `start`.
  struct Stretch {
    int64_t tile, start = 0;
    mlir::Value lower = {}, upper = {};
    int64_t unroll = 1;
    /// What the loop's variable counts.
    int64_t unit = 1;
  };
  /// Whole register tiles first, then what is left of the task.
  llvm::SmallVector<Stretch> stretches(unsigned dim, int64_t unroll = 1);
  void addStretches(llvm::SmallVectorImpl<Stretch> &result, int64_t extent,
                    llvm::ArrayRef<int64_t> tiles, int64_t unroll,
                    unsigned dim);
  /// Narrows the loop over a window to the steps that meet the image
  /// (NestWindow.cpp).
  mlir::LogicalResult clip(unsigned dim, Stretch &stretch);
  mlir::scf::ForOp openLoop(const Stretch &stretch, mlir::ValueRange carried);
  llvm::SmallVector<int64_t> tileSizes(unsigned dim) const;
  mlir::LogicalResult findProductDims();

  // Edges of padded nests (NestEdges.cpp).
  Stretch paddedStretch(unsigned dim);
  bool isRagged(unsigned dim) const;
  mlir::Value least(mlir::Location loc, llvm::ArrayRef<mlir::AffineExpr> exprs);
  mlir::Value validAlong(mlir::Location loc, unsigned dim);
  bool endsInTile() const;
  mlir::Value maskAxis(mlir::Value tile, unsigned axis, unsigned dim,
                       mlir::TypedAttr filler);
  mlir::Value maskReduced(mlir::Value tile, mlir::TypedAttr filler);

  /// Step of the loop over a dimension: its register tile, inside the task.
  int64_t stepOf(unsigned dim) const { return tileSizes(dim).front(); }
  void setDim(unsigned dim, mlir::Value iv, int64_t start, int64_t size,
              int64_t unit = 1);

  // Reductions (NestReduction.cpp).
  mlir::LogicalResult emitReductions();
  mlir::FailureOr<llvm::SmallVector<mlir::Value>>
  emitReductionLoops(llvm::MutableArrayRef<Reduction> reductions,
                     unsigned level, llvm::SmallVector<mlir::Value> accs);
  mlir::LogicalResult accumulate(Reduction &reduction,
                                 llvm::MutableArrayRef<mlir::Value> accs);
  mlir::FailureOr<mlir::Value> evaluateInit(mlir::linalg::GenericOp op);
  mlir::FailureOr<mlir::Value> startOf(Reduction &reduction);
  mlir::LogicalResult storeInit();
  mlir::FailureOr<mlir::Value> finish(Reduction &reduction,
                                      mlir::ArrayRef<mlir::Value> accs);
  mlir::LogicalResult initialize(Reduction &reduction,
                                 llvm::SmallVectorImpl<mlir::Value> &accs);

  // Sums of blocks that share a scale (NestBlockSums.cpp).
  /// A product of `other` and (`element` - `shift`) * `scales`, where these
  /// (but for the first two) stay the same in the reduced loops from `level`
  /// on; there may be no shift.
  struct BlockSums {
    unsigned level;
    mlir::Value other, element, shift;
    llvm::SmallVector<mlir::Value> scales;
  };
  mlir::LogicalResult findBlockSums(mlir::linalg::GenericOp op,
                                    mlir::Operation *combiner,
                                    mlir::Value term);
  mlir::FailureOr<llvm::SmallVector<mlir::Value>>
  emitBlockSums(llvm::MutableArrayRef<Reduction> reductions,
                llvm::SmallVector<mlir::Value> accs);
  mlir::LogicalResult addToBlock(llvm::MutableArrayRef<mlir::Value> sums);

  // Products of several elements of the depth (NestDepth.cpp).
  mlir::FailureOr<mlir::Value> depthProduct(mlir::linalg::GenericOp op,
                                            mlir::Operation *combiner,
                                            mlir::Value term, mlir::Value acc);
  mlir::FailureOr<mlir::Value>
  loadFactor(mlir::Location loc, mlir::Value tensor, const Access &access);
  mlir::FailureOr<mlir::Value> loadInterleaved(mlir::Location loc,
                                               mlir::Value tensor,
                                               const Access &access,
                                               int64_t group);
  bool hasBlocks() const;
  int64_t blockOf(unsigned dim) const;
  tile::TileType blocked(llvm::ArrayRef<int64_t> shape, mlir::Type element,
                         llvm::ArrayRef<int64_t> blocks, int64_t group = 0);
  mlir::Value zeroBlocks(mlir::linalg::GenericOp op,
                         llvm::ArrayRef<int64_t> shape);
  mlir::FailureOr<mlir::Value> finishBlocks(mlir::linalg::GenericOp op,
                                            mlir::Operation *combiner,
                                            mlir::Value sum);

  // Products of tiles with a depth, in padded nests (NestProduct.cpp).
  mlir::FailureOr<mlir::Value> tileProduct(mlir::linalg::GenericOp op,
                                           mlir::Operation *combiner,
                                           mlir::Value term, mlir::Value acc);
  mlir::FailureOr<mlir::Value> productFactor(mlir::linalg::GenericOp op,
                                             mlir::Value factor, unsigned axis);

  // Prefetches (NestPrefetch.cpp).
  void prefetch(unsigned inner, int64_t body);
  void prefetch(mlir::OpOperand &operand, unsigned inner, int64_t body);
  mlir::AffineExpr flatOffset(mlir::MemRefType type, const Access &access);

  // Values (NestBody.cpp).
  using Scope = llvm::DenseMap<mlir::Value, mlir::Value>;
  mlir::FailureOr<mlir::Value> evaluate(mlir::Value tensor,
                                        const Access &access);
  mlir::FailureOr<mlir::Value> evaluateProducer(mlir::OpResult result,
                                                const Access &binding);
  mlir::FailureOr<mlir::Value> evaluateBody(mlir::linalg::GenericOp op,
                                            const Access &binding,
                                            mlir::Value value, Scope &scope);
  mlir::FailureOr<mlir::Value> evaluateOp(mlir::linalg::GenericOp op,
                                          const Access &binding,
                                          mlir::OpResult value, Scope &scope);
  mlir::FailureOr<mlir::Value> gather(mlir::linalg::GenericOp op,
                                      const Access &binding,
                                      mlir::tensor::ExtractOp extract,
                                      Scope &scope);
  mlir::FailureOr<mlir::Value> iota(mlir::Location loc, mlir::AffineExpr at);
  mlir::Value constant(mlir::Location loc, mlir::TypedAttr value);
  mlir::Value broadcast(mlir::Value tile, llvm::ArrayRef<int64_t> shape);
  mlir::LogicalResult preload();

  // Memory (NestMemory.cpp).
  struct Window {
    llvm::SmallVector<mlir::Value> offsets;
    llvm::SmallVector<int64_t> shape, dims, steps;
    /// Size per row dimension: 1 where the access does not depend on it.
    llvm::SmallVector<int64_t> rows;
    int64_t lanes = 1;
    /// Bound per tile dimension, null where all of the tile exists.
    llvm::SmallVector<mlir::Value> valid;
  };
  llvm::SmallVector<mlir::Value> bounds(mlir::Location loc, const Window &at,
                                        bool asRow = false);
  mlir::FailureOr<Window> window(mlir::Location loc, const Storage &place,
                                 const Access &access);
  mlir::FailureOr<int64_t> coefficient(mlir::AffineExpr expr, int tileDim);
  mlir::FailureOr<int> ownerOf(int tileDim, const Access &access,
                               int64_t &step);
  mlir::Value gatherRows(mlir::Value tile, const Window &at);
  /// The element of a buffer without dimensions, as a tile of one.
  mlir::Value loadScalar(mlir::Location loc, mlir::Value memref);
  mlir::FailureOr<mlir::Value> load(mlir::Location loc, mlir::Value tensor,
                                    const Access &access);
  mlir::Value inBlocks(mlir::Value tile, const Window &at) const;
  mlir::LogicalResult store(mlir::Location loc, mlir::Value tile,
                            const Storage &place, const Access &access,
                            bool streamed = false);
  bool mayStream(const Storage &place) const;
  mlir::Value index(mlir::Location loc, mlir::AffineExpr expr);
  bool dependsOnReduction(const Access &access) const;

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
  tile::TileType tileType(llvm::ArrayRef<int64_t> shape, mlir::Type element) {
    return tile::TileType::get(shape, element);
  }

  mlir::OpBuilder &builder;
  const NestAnalysis &nest;
  Box box;
  const llvm::DenseMap<mlir::Value, Storage> &storage;
  mlir::ArrayRef<mlir::Value> symbols;
  Part part = Part::All;

  /// The nest dimensions of a tile's two axes: several parallel ones or one
  /// for the rows, at most one for the lanes.
  std::array<llvm::SmallVector<int>, 2> tileDims;
  /// The reduced dimension that products take several elements of at once.
  int depthDim = -1;
  /// How the sums of the only reduction are taken apart; whether the loops
  /// that are emitted are those of a block.
  std::optional<BlockSums> blockSums;
  bool inBlock = false;
  /// Which operand of a tile product has the rows.
  unsigned rowFactor = 0;
  llvm::SmallVector<unsigned> parallelOrder, reductionOrder;
  /// The current tile: its absolute position and size per nest dimension. The
  /// dims of a position are the loops' variables in `loops`, its symbols those
  /// of the task: what a buffer's origin subtracts then cancels.
  llvm::SmallVector<mlir::AffineExpr> position;
  llvm::SmallVector<mlir::Value> loops;
  llvm::SmallVector<int64_t> sizes;

  /// Tiles at hand at the current point, innermost scope last. The key is the
  /// tensor value and the access.
  struct Known {
    mlir::Value tensor;
    Access access;
    mlir::Value tile;
  };
  llvm::SmallVector<llvm::SmallVector<Known>> known;
  mlir::Value lookup(mlir::Value tensor, const Access &access) const;
  void remember(mlir::Value tensor, const Access &access, mlir::Value tile) {
    known.back().push_back({tensor, access, tile});
  }
};

} // namespace tilewright

#endif // TILEWRIGHT_TRANSFORMS_GROUPTOKERNEL_NESTEMITTER_H

//===- ReductionStrategy.h - how the sums of a nest are formed --*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An accumulator is a whole tile, carried by the loops: lanes of a reduced
// dimension are only combined after them. Where the reduced dimension has a
// remainder, the remainder has an accumulator of its own shape. The order of
// the combinations thus depends on the rtile only, never on threads.
//
// What a step adds is a strategy: a term (ReductionStrategy.cpp), a product of
// several elements of the depth (NestDepth.cpp) or of tiles with a depth
// (NestProduct.cpp), or sums of blocks that share a scale (NestBlockSums.cpp).
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TRANSFORMS_GROUPTOKERNEL_REDUCTIONSTRATEGY_H
#define TILEWRIGHT_TRANSFORMS_GROUPTOKERNEL_REDUCTIONSTRATEGY_H

#include "lib/Transforms/GroupToKernel/BodyEvaluator.h"
#include "lib/Transforms/GroupToKernel/LoopSchedule.h"

namespace tilewright {

/// What a reduction's combiner makes of an accumulator and a term.
mlir::Value combine(mlir::OpBuilder &builder, mlir::Operation *combiner,
                    mlir::Value acc, mlir::Value term);

/// acc + a * b on tiles, which `widen` brings to the shape of `acc`.
mlir::Value multiplyAdd(mlir::OpBuilder &b, mlir::Location loc, mlir::Value a,
                        mlir::Value c, mlir::Value acc,
                        llvm::function_ref<mlir::Value(mlir::Value)> widen);

class ReductionStrategy {
public:
  ReductionStrategy(NestPoint &point, LoopSchedule &schedule,
                    MemoryAccess &memory, BodyEvaluator &bodies)
      : point(point), builder(point.builder), nest(point.nest),
        schedule(schedule), memory(memory), bodies(bodies) {}

  /// Emits the reductions of the current point, and `perStep` in the innermost
  /// of their loops. Where the reduction runs in blocks (`continues`), it adds
  /// to what the result holds since the block before.
  mlir::LogicalResult emit(bool continues,
                           llvm::function_ref<mlir::LogicalResult()> perStep);
  mlir::LogicalResult storeInit();

private:
  /// One reducing operation of the nest.
  struct Reduction {
    mlir::linalg::GenericOp op;
    mlir::Operation *combiner = nullptr;
    /// The body's value that is combined into the accumulator.
    mlir::Value term;
    tile::ReduceKind kind;
    /// Shape of each accumulator and its number among all of the nest's.
    llvm::SmallVector<std::pair<llvm::SmallVector<int64_t>, unsigned>> variants;
  };
  mlir::FailureOr<Reduction> analyze(mlir::linalg::GenericOp op);
  mlir::LogicalResult initialize(Reduction &reduction, bool continues,
                                 llvm::SmallVectorImpl<mlir::Value> &accs);
  mlir::LogicalResult accumulate(Reduction &reduction,
                                 llvm::MutableArrayRef<mlir::Value> accs);
  mlir::FailureOr<mlir::Value> finish(Reduction &reduction,
                                      mlir::ArrayRef<mlir::Value> accs);
  mlir::FailureOr<mlir::Value> evaluateInit(mlir::linalg::GenericOp op);
  mlir::FailureOr<mlir::Value> startOf(Reduction &reduction, bool continues);

  // Sums of blocks that share a scale (NestBlockSums.cpp).
  /// A product of `other` and (`element` - `shift`) * `scales`, where these
  /// (but for the first two) stay the same in the reduced loops from `level`
  /// on; there may be no shift.
  struct BlockSums {
    unsigned level;
    mlir::Value other, element, shift;
    llvm::SmallVector<mlir::Value> scales;
  };
  mlir::LogicalResult findBlockSums(const Reduction &reduction);
  mlir::FailureOr<llvm::SmallVector<mlir::Value>>
  emitBlockSums(llvm::SmallVector<mlir::Value> accs);
  mlir::LogicalResult addToBlock(llvm::MutableArrayRef<mlir::Value> sums);

  // Products of several elements of the depth (NestDepth.cpp).
  mlir::FailureOr<mlir::Value> depthProduct(mlir::linalg::GenericOp op,
                                            mlir::Operation *combiner,
                                            mlir::Value term, mlir::Value acc);
  mlir::FailureOr<mlir::Value>
  loadOperand(mlir::Location loc, mlir::Value tensor, const Access &access);
  mlir::FailureOr<mlir::Value> loadInterleaved(mlir::Location loc,
                                               mlir::Value tensor,
                                               const Access &access,
                                               int64_t group);
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
  mlir::FailureOr<mlir::Value> productOperand(mlir::linalg::GenericOp op,
                                              mlir::Value operand,
                                              unsigned axis);

  // Ragged edges of padded nests (NestEdges.cpp).
  bool endsInTile() const;
  mlir::Value maskAxis(mlir::Value tile, unsigned axis, unsigned dim,
                       mlir::TypedAttr filler);
  mlir::Value maskReduced(mlir::Value tile, mlir::TypedAttr filler);

  NestPoint &point;
  mlir::OpBuilder &builder;
  const NestAnalysis &nest;
  LoopSchedule &schedule;
  MemoryAccess &memory;
  BodyEvaluator &bodies;
  /// How the sums of the only reduction are taken apart.
  std::optional<BlockSums> blockSums;
};

} // namespace tilewright

#endif // TILEWRIGHT_TRANSFORMS_GROUPTOKERNEL_REDUCTIONSTRATEGY_H

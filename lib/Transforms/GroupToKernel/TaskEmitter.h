//===- TaskEmitter.h - an outermost group as a kernel -----------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An outermost group is cut into tasks along the parallel dimensions of its
// *anchor*, the last register group: the grid. What a task covers of the
// earlier register groups follows backwards through the indexing maps, as in
// Welder (section 3.1, tile propagation); what they make and no later launch
// reads lives in a buffer of the task.
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TRANSFORMS_GROUPTOKERNEL_TASKEMITTER_H
#define TILEWRIGHT_TRANSFORMS_GROUPTOKERNEL_TASKEMITTER_H

#include "lib/Transforms/GroupToKernel/NestEmitter.h"

namespace tilewright {

class TaskEmitter {
public:
  explicit TaskEmitter(tile::GroupOp group) : group(group) {}

  /// Finds the nests and the grid.
  mlir::LogicalResult analyze();
  /// Makes the kernel named `name` at the builder's insertion point.
  /// `operands` gets the numbers of the group's operands that it reads, in
  /// the order of its first arguments; the results follow.
  mlir::FailureOr<tile::KernelOp>
  emitKernel(mlir::OpBuilder &builder, llvm::StringRef name,
             llvm::SmallVectorImpl<unsigned> &operands);
  /// Number of tasks along each dimension of the grid.
  llvm::SmallVector<int64_t> gridBounds() const;

private:
  struct GridDim {
    unsigned dim; // of the anchor
    int64_t tile, extent;
    bool ragged() const { return extent % tile; }
  };

  /// One block of the reduction that is cut into blocks: its number, where it
  /// starts, and how long it is.
  struct SumBlock {
    mlir::Value number;
    mlir::AffineExpr offset;
    int64_t size = 0;
  };
  /// The nest whose reduction is cut into blocks.
  struct SumBlocks {
    unsigned nest;
    GridDim cut;
  };

  mlir::LogicalResult findGrid();
  mlir::LogicalResult findBlocks();
  /// Symbols of the expressions: ids of the grid, number of the block.
  unsigned numSymbols() const { return grid.size() + 1; }
  llvm::SmallVector<GridDim> cutDims(const NestAnalysis &nest) const;
  mlir::FailureOr<Box> boxOfEnd(const NestAnalysis &nest,
                                llvm::ArrayRef<int64_t> tileSizes) const;
  llvm::SmallVector<unsigned> usedOperands();
  mlir::MemRefType memrefType(mlir::Value value) const;
  mlir::LogicalResult emitVariants(mlir::OpBuilder &builder, unsigned number,
                                   llvm::SmallVector<int64_t> tileSizes);
  mlir::LogicalResult emitVariant(mlir::OpBuilder &builder,
                                  llvm::ArrayRef<int64_t> tileSizes);
  mlir::LogicalResult emitInit(mlir::OpBuilder &builder,
                               llvm::ArrayRef<int64_t> tileSizes);
  mlir::LogicalResult emitNests(mlir::OpBuilder &builder,
                                llvm::ArrayRef<int64_t> tileSizes,
                                unsigned begin, unsigned end,
                                const SumBlock &block);
  mlir::FailureOr<llvm::SmallVector<Box>>
  propagate(llvm::ArrayRef<int64_t> tileSizes, const SumBlock &block);
  mlir::LogicalResult require(const NestAnalysis &consumer, const Box &box,
                              llvm::MutableArrayRef<Box> boxes);
  void placeBuffers(mlir::OpBuilder &builder, llvm::ArrayRef<Box> boxes);

  tile::GroupOp group;
  std::vector<NestAnalysis> nests;
  llvm::SmallVector<GridDim> grid;
  std::optional<SumBlocks> blocks;
  mlir::ValueRange gridIds;
  mlir::Block *entry = nullptr;
  /// Buffers of the task, allocated once for all variants.
  llvm::DenseMap<mlir::Value, mlir::Value> buffers;
  llvm::DenseMap<mlir::Value, Storage> storage;
};

/// The destination a group's result is written into: the operand that the
/// destination-style operation behind it names, or null for a fresh tensor.
mlir::Value destinationOf(tile::GroupOp group, unsigned result);

} // namespace tilewright

#endif // TILEWRIGHT_TRANSFORMS_GROUPTOKERNEL_TASKEMITTER_H

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
#include "lib/Transforms/GroupToKernel/TaskLoops.h"
#include "lib/Transforms/GroupToKernel/TaskSizes.h"

namespace tilewright {

class TaskEmitter {
public:
  /// `room`: bytes of buffers that a task may have.
  TaskEmitter(tile::GroupOp group, int64_t room) : group(group), room(room) {}

  /// Finds the nests and the grid.
  mlir::LogicalResult analyze();
  /// Makes the kernel named `name` at the builder's insertion point.
  /// `operands` gets the numbers of the group's operands that it reads, in
  /// the order of its first arguments; the results follow.
  mlir::FailureOr<tile::KernelOp>
  emitKernel(mlir::OpBuilder &builder, llvm::StringRef name,
             llvm::SmallVectorImpl<unsigned> &operands);
  /// A dimension of the grid: the tile of its tasks, and the size that they
  /// cut, a constant or the size of a dimension of a tensor of the group.
  struct GridBound {
    int64_t tile, extent;
    mlir::Value tensor;
    unsigned dim;
  };
  llvm::SmallVector<GridBound> gridBounds() const;
  /// Sizes, as dimensions of what register groups make, that the kernel takes
  /// as arguments between its operands and its results.
  llvm::ArrayRef<TaskSizes::Source> sizeArguments() const { return passed; }
  /// Results of register groups that need a buffer outside of the tasks, since
  /// the part that one task makes has no bound or no room. Their arguments come
  /// last.
  llvm::ArrayRef<mlir::OpResult> spilled() const { return spills; }

private:
  struct GridDim {
    unsigned dim; // of the anchor
    int64_t tile, extent;
    bool dynamic() const { return mlir::ShapedType::isDynamic(extent); }
    bool ragged() const { return !dynamic() && extent % tile; }
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

  bool isPadded() const { return nests.back().isPadded(); }
  mlir::LogicalResult findGrid();
  mlir::LogicalResult findBlocks();
  /// Symbols of the expressions: those of the task, the number of the block.
  unsigned numSymbols() const { return sizes.numSymbols() + 1; }
  llvm::SmallVector<GridDim> cutDims(const NestAnalysis &nest) const;
  mlir::FailureOr<Box>
  boxOfEnd(const NestAnalysis &nest,
           llvm::ArrayRef<mlir::AffineExpr> tileSizes) const;
  llvm::SmallVector<unsigned> usedOperands();
  mlir::MemRefType memrefType(mlir::Value value) const;
  mlir::LogicalResult emitVariants(mlir::OpBuilder &builder, unsigned number,
                                   llvm::SmallVector<mlir::AffineExpr> sizes);
  mlir::LogicalResult emitVariant(mlir::OpBuilder &builder,
                                  llvm::ArrayRef<mlir::AffineExpr> tileSizes);
  mlir::LogicalResult emitInit(mlir::OpBuilder &builder,
                               llvm::ArrayRef<mlir::AffineExpr> tileSizes);
  mlir::LogicalResult emitNests(mlir::OpBuilder &builder,
                                llvm::ArrayRef<mlir::AffineExpr> tileSizes,
                                unsigned begin, unsigned end,
                                const SumBlock &block);
  mlir::LogicalResult emitLoop(mlir::OpBuilder &builder,
                               const TaskLoops::Loop &loop,
                               llvm::ArrayRef<Box> boxes);
  mlir::FailureOr<mlir::Value> emitLiveTest(mlir::OpBuilder &builder,
                                            const TaskLoops::Loop &loop,
                                            llvm::ArrayRef<Box> boxes,
                                            mlir::ValueRange ids) const;
  mlir::FailureOr<llvm::SmallVector<Box>>
  propagate(llvm::ArrayRef<mlir::AffineExpr> tileSizes, const SumBlock &block);
  std::pair<mlir::AffineExpr, mlir::AffineExpr> regionOf(mlir::AffineExpr expr,
                                                         const Box &box) const;
  Box wholeBox(const NestAnalysis &nest) const;
  std::optional<int64_t> boundOf(mlir::AffineExpr size) const;
  llvm::SmallVector<mlir::AffineExpr> wholeTasks();
  bool isOneTile(mlir::OpResult result, llvm::ArrayRef<Box> boxes) const;
  mlir::LogicalResult findSpills();
  mlir::LogicalResult setCluster(tile::KernelOp kernel) const;
  void setEqualSizes(tile::KernelOp kernel, llvm::ArrayRef<unsigned> operands);
  void makeSymbols(mlir::OpBuilder &builder, mlir::ValueRange passedSizes);
  mlir::Value makeNumber(mlir::OpBuilder &builder, mlir::Value number);
  mlir::LogicalResult require(const NestAnalysis &consumer, const Box &box,
                              llvm::MutableArrayRef<Box> boxes);
  void placeBuffers(mlir::OpBuilder &builder, llvm::ArrayRef<Box> boxes);
  void placeBuffer(mlir::OpBuilder &builder, mlir::OpResult result,
                   const NestAnalysis &nest, const Box &box);

  tile::GroupOp group;
  int64_t room;
  std::vector<NestAnalysis> nests;
  TaskLoops loops;
  llvm::SmallVector<GridDim> grid;
  std::optional<SumBlocks> blocks;
  TaskSizes sizes;
  llvm::SmallVector<mlir::OpResult> spills;
  llvm::SmallVector<TaskSizes::Source> sources, passed;
  /// Values of the task's symbols.
  llvm::SmallVector<mlir::Value> symbols;
  /// What the kernel has for numbers that the task computes.
  llvm::DenseMap<mlir::Value, mlir::Value> numbers;
  mlir::Block *entry = nullptr;
  /// Buffers of the task, allocated once for all variants.
  llvm::DenseMap<mlir::Value, mlir::Value> buffers;
  llvm::DenseMap<mlir::Value, Storage> storage;
};

/// The destination a group's result is written into: the operand that the
/// destination-style operation behind it names, or null for a fresh tensor.
mlir::Value destinationOf(tile::GroupOp group, unsigned result);

/// The run-time sizes of what a register group of `group` makes, outside of the
/// group: those of the tensor that it is made in.
llvm::SmallVector<mlir::Value>
outerSizes(mlir::OpBuilder &builder, tile::GroupOp group, mlir::OpResult made);

} // namespace tilewright

#endif // TILEWRIGHT_TRANSFORMS_GROUPTOKERNEL_TASKEMITTER_H

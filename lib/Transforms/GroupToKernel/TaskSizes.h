//===- TaskSizes.h - sizes of a task known at run time only -----*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The symbols of a task: the ids of the grid, then a symbol for each size that
// is known at run time only, then one per dimension of the grid for the size of
// a task there. Dimensions of tensors and loops that index each other alone
// have the same size, hence the same symbol; its value is the size of a buffer
// that the kernel gets. Numbers that the task computes from these (where a loop
// over blocks ends, how long what is left is) are symbols, too.
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TRANSFORMS_GROUPTOKERNEL_TASKSIZES_H
#define TILEWRIGHT_TRANSFORMS_GROUPTOKERNEL_TASKSIZES_H

#include "lib/Transforms/GroupToKernel/TaskLoops.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/SetVector.h"

namespace tilewright {

class TaskSizes {
public:
  /// Finds which sizes are equal, in a task with `gridRank` dimensions.
  void analyze(llvm::ArrayRef<NestAnalysis> nests, const TaskLoops &loops,
               unsigned gridRank);

  /// Extent of a loop: a constant or a symbol.
  mlir::AffineExpr extentOf(const NestAnalysis &nest, unsigned dim) const;
  /// The symbol of a number that the task computes.
  mlir::AffineExpr symbolOf(mlir::Value number) const;
  /// All extents of a nest.
  llvm::SmallVector<mlir::AffineExpr> extents(const NestAnalysis &nest) const;
  /// The symbol for the size of a task along a dimension of the grid.
  mlir::AffineExpr taskSize(mlir::MLIRContext *context, unsigned number) const;
  unsigned numSymbols() const { return 2 * gridRank + leaders.size(); }

  /// An upper bound of a size; `tiles` holds those of the grid's dimensions.
  std::optional<int64_t> bound(mlir::AffineExpr size,
                               llvm::ArrayRef<int64_t> tiles) const;
  /// A dimension of an operand or result of the task with the extent of a loop.
  std::pair<mlir::Value, unsigned> tensorOf(const NestAnalysis &nest,
                                            unsigned dim) const;
  /// Whether a tensor is one of the task's operands, and not what a loop
  /// carries.
  static bool isArgument(mlir::Value tensor);
  /// Whether a size is the same in all tasks: of what a task starts at, it
  /// depends on nothing.
  bool isUniform(mlir::AffineExpr size) const;
  /// Number of the first symbol of a task's size.
  unsigned firstTaskSize() const { return gridRank + leaders.size(); }

  /// A dimension of a tensor for each run-time size, of one that `isBuffer`
  /// says the kernel has as a buffer wherever there is one; a number that the
  /// task computes (dimension kNumber).
  using Source = std::pair<mlir::Value, unsigned>;
  static constexpr unsigned kNumber = ~0u;
  llvm::SmallVector<Source>
  sources(llvm::function_ref<bool(mlir::Value)> isBuffer) const;

  /// The sizes that are the same, each as dimensions of tensors.
  llvm::SmallVector<llvm::SmallVector<Source>> equalSizes() const;

private:
  /// A dimension of a tensor of the task, or of a nest (named by its group);
  /// what is cut at the places of a number.
  static constexpr unsigned kCut = ~0u - 2;
  using Place = std::pair<const void *, unsigned>;
  static Place place(mlir::Value tensor, unsigned dim) {
    return {tensor.getAsOpaquePointer(), dim};
  }
  static Place place(const NestAnalysis &nest, unsigned dim) {
    tile::GroupOp group = nest.group;
    return {group.getAsOpaquePointer(), dim};
  }
  void unite(const NestAnalysis &nest, mlir::Value tensor,
             const Access &access);
  void unite(mlir::Value tensor, mlir::Value other);
  void uniteSlice(mlir::tensor::ExtractSliceOp slice);
  void uniteLoops(const TaskLoops &loops);
  void addNumber(mlir::Value number);

  llvm::EquivalenceClasses<Place> classes;
  llvm::SmallSetVector<Place, 4> leaders; // of the classes of run-time sizes
  llvm::SmallVector<std::pair<mlir::Value, unsigned>> tensors;
  /// The largest value of each of them, kDynamic where none is known.
  llvm::SmallVector<int64_t> most;
  unsigned gridRank = 0;
};

} // namespace tilewright

#endif // TILEWRIGHT_TRANSFORMS_GROUPTOKERNEL_TASKSIZES_H

//===- KernelGrid.h - which task a block is ---------------------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CONVERSION_TILETOGPU_KERNELGRID_H
#define TILEWRIGHT_CONVERSION_TILETOGPU_KERNELGRID_H

#include "dialects/Tile/Tile.h"
#include "lib/Conversion/TileToGPU/Passes.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace tilewright {

/// The grid of a kernel: one-dimensional on the device, a task's number is its
/// block's.
class KernelGrid {
public:
  /// `called`: by another kernel, whose blocks share the tasks.
  explicit KernelGrid(tile::KernelOp kernel, bool called = false);

  /// Coordinates whose bounds are not known: parameters of the function, in
  /// this order. The first one's is needed only where blocks run several tasks.
  mlir::SmallVector<int64_t> getOpenBounds() const;
  /// Whether a block runs several tasks (`tile.persistent`).
  bool isPersistent() const;
  /// Makes the loop over the tasks of the running block, with `tile.tasks`.
  mlir::scf::ForOp makeTasks(mlir::OpBuilder &b,
                             mlir::ArrayRef<mlir::BlockArgument> open);
  /// Appends the coordinates of a task to `values`: number `task` (index), or
  /// that of the running block where it is null.
  mlir::LogicalResult append(mlir::OpBuilder &b, mlir::Value task,
                             mlir::ArrayRef<mlir::BlockArgument> open,
                             mlir::SmallVectorImpl<mlir::Value> &values);

private:
  /// Whether clusters are whole: bounds along them are known multiples, or
  /// rounded up to such.
  mlir::LogicalResult verify();
  void readLaunches();
  bool needsAllBounds() const { return called || isPersistent(); }
  /// What the bound of a coordinate is rounded up to a multiple of
  /// (`tile.rounded`).
  int64_t getMultiple(int64_t dim) const;
  /// The bounds as i32 values, rounded up; null for what no block needs to
  /// know.
  mlir::SmallVector<mlir::Value>
  getSizes(mlir::OpBuilder &b, mlir::ArrayRef<mlir::BlockArgument> open);

  tile::KernelOp kernel;
  bool called;
  mlir::SmallVector<int64_t> bounds;
};

} // namespace tilewright

#endif // TILEWRIGHT_CONVERSION_TILETOGPU_KERNELGRID_H

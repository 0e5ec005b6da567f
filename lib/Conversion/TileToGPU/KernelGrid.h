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

namespace tilewright {

/// The grid of a kernel: one-dimensional on the device, a task's number is its
/// block's.
class KernelGrid {
public:
  explicit KernelGrid(tile::KernelOp kernel);

  /// Coordinates after the first whose bounds are not known: parameters of the
  /// function, in this order.
  mlir::SmallVector<int64_t> getOpenBounds() const;
  /// Appends the coordinates of the running block to `values`.
  mlir::LogicalResult append(mlir::OpBuilder &b, mlir::gpu::GPUFuncOp function,
                             mlir::ArrayRef<mlir::BlockArgument> open,
                             mlir::SmallVectorImpl<mlir::Value> &values);

private:
  void readLaunches();

  tile::KernelOp kernel;
  mlir::SmallVector<int64_t> bounds;
};

} // namespace tilewright

#endif // TILEWRIGHT_CONVERSION_TILETOGPU_KERNELGRID_H

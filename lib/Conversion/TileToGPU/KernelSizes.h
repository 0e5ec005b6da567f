//===- KernelSizes.h - open sizes of a kernel's arguments -------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CONVERSION_TILETOGPU_KERNELSIZES_H
#define TILEWRIGHT_CONVERSION_TILETOGPU_KERNELSIZES_H

#include "dialects/Tile/Tile.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace tilewright {

/// The number of the class in `tile.equal_sizes` that a dimension of an
/// argument is in: all of a class are of one size in any run.
std::optional<size_t> findEqualSizes(tile::KernelOp kernel, int64_t argument,
                                     int64_t dim);

/// Sizes of arguments are the parameters that tell them: what compares sizes
/// then sees which are one value.
void foldSizes(mlir::gpu::GPUFuncOp function);

} // namespace tilewright

#endif // TILEWRIGHT_CONVERSION_TILETOGPU_KERNELSIZES_H

//===- KernelGlobals.h - memory that a kernel's module has ------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CONVERSION_TILETOGPU_KERNELGLOBALS_H
#define TILEWRIGHT_CONVERSION_TILETOGPU_KERNELGLOBALS_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace tilewright {

/// Makes a global of the module, before the function, and its address where
/// `at` inserts.
mlir::Value makeGlobal(mlir::OpBuilder &at, mlir::gpu::GPUFuncOp function,
                       const llvm::Twine &name, mlir::DenseElementsAttr data,
                       bool constant);

/// Constants of many values are read from memory: no thread holds a tile of
/// known numbers at a place that is known before layouts are.
void placeConstants(mlir::gpu::GPUFuncOp function);

/// Counts of `tile.semaphores` are memory of the module: the driver makes it
/// zero when it loads it, and each launch leaves it zero. `tile.waits` tells
/// the host that blocks of the kernel wait for others.
void placeSemaphores(mlir::gpu::GPUFuncOp function);

} // namespace tilewright

#endif // TILEWRIGHT_CONVERSION_TILETOGPU_KERNELGLOBALS_H

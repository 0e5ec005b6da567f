//===- LaunchedFunction.h - kernels that are launched often -----*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_LIB_CONVERSION_TILETOGPU_LAUNCHEDFUNCTION_H
#define TILEWRIGHT_LIB_CONVERSION_TILETOGPU_LAUNCHEDFUNCTION_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace tilewright {

/// Makes a function that is called of one that stands for its calls: it is no
/// kernel, and is not inlined. A buffer is passed as a pointer to where its
/// memory begins, its offset, sizes and strides as numbers, but for those that
/// its type says.
mlir::func::FuncOp makeCalled(mlir::gpu::GPUFuncOp body, int64_t threads);

/// Calls it with the arguments that the function has which it was made of.
void callWith(mlir::OpBuilder &b, mlir::Location loc,
              mlir::func::FuncOp function, mlir::ValueRange arguments);

} // namespace tilewright

#endif // TILEWRIGHT_LIB_CONVERSION_TILETOGPU_LAUNCHEDFUNCTION_H

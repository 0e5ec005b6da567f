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

/// How a function goes through tasks: the number of the argument that is the
/// first one, and what is done behind each.
struct TaskLoop {
  unsigned argument;
  llvm::function_ref<void(mlir::OpBuilder &, mlir::Location)> behind;
};

/// Makes a function that is called of one that stands for its calls: it is no
/// kernel, and is not inlined. A buffer is passed as a pointer to where its
/// memory begins, its offset, sizes and strides as numbers, but for those that
/// its type says. With `tasks` it does all tasks of a block: it also takes
/// where they end, and how far they are from each other.
mlir::func::FuncOp
makeCalled(mlir::gpu::GPUFuncOp body, int64_t threads,
           const std::optional<TaskLoop> &tasks = std::nullopt);

/// Calls it with the arguments that the function has which it was made of.
void callWith(mlir::OpBuilder &b, mlir::Location loc,
              mlir::func::FuncOp function, mlir::ValueRange arguments);

} // namespace tilewright

#endif // TILEWRIGHT_LIB_CONVERSION_TILETOGPU_LAUNCHEDFUNCTION_H

//===- TaskWaits.h - tasks that wait for others of their grid ---*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CONVERSION_TILETOGPU_TASKWAITS_H
#define TILEWRIGHT_CONVERSION_TILETOGPU_TASKWAITS_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace tilewright {

/// Turns waits of tasks for others of their grid into accesses of one thread,
/// and barriers of all.
void lowerTaskWaits(mlir::gpu::GPUFuncOp function);

} // namespace tilewright

#endif // TILEWRIGHT_CONVERSION_TILETOGPU_TASKWAITS_H

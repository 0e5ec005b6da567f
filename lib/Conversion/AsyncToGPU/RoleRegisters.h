//===- RoleRegisters.h - registers of warps by what they do -----*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CONVERSION_ASYNCTOGPU_ROLEREGISTERS_H
#define TILEWRIGHT_CONVERSION_ASYNCTOGPU_ROLEREGISTERS_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace tilewright {

/// Threads of a warpgroup: of one that moves data, or of one of the groups that
/// compute.
constexpr int64_t kWarpgroup = 128;

/// Where the builder stands, a warpgroup gives up the registers that it does
/// not need to start copies, beside `groups` that compute.
void dropRegisters(mlir::OpBuilder &b, mlir::Location loc, int64_t groups);

/// Where the builder stands, each of `groups` warpgroups takes its part of the
/// registers that are free then, in a kernel of `tile.occupancy`.
void takeRegisters(mlir::OpBuilder &b, mlir::Location loc, int64_t groups,
                   mlir::gpu::GPUFuncOp kernel);

} // namespace tilewright

#endif // TILEWRIGHT_CONVERSION_ASYNCTOGPU_ROLEREGISTERS_H

//===- ScopeBarriers.h - barriers of the warps that compute -----*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CONVERSION_ASYNCTOGPU_SCOPEBARRIERS_H
#define TILEWRIGHT_CONVERSION_ASYNCTOGPU_SCOPEBARRIERS_H

#include "mlir/IR/Builders.h"

namespace tilewright {

/// The `threads` that compute meet, without those that move data.
void meetConsumers(mlir::OpBuilder &b, mlir::Location loc, int64_t threads);

/// Barriers of all threads in a block become those of the ones that compute.
void scopeBarriers(mlir::Block &block, int64_t threads);

} // namespace tilewright

#endif // TILEWRIGHT_CONVERSION_ASYNCTOGPU_SCOPEBARRIERS_H

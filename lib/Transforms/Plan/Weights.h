//===- Weights.h - what is known at compile time -------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TRANSFORMS_PLAN_WEIGHTS_H
#define TILEWRIGHT_TRANSFORMS_PLAN_WEIGHTS_H

#include "mlir/IR/Value.h"

namespace tilewright {

/// True when `value` follows from weights and constants alone.
bool dependsOnWeightsOnly(mlir::Value value);

} // namespace tilewright

#endif // TILEWRIGHT_TRANSFORMS_PLAN_WEIGHTS_H

//===- Passes.h - phase plan ---------------------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TRANSFORMS_PLAN_PASSES_H
#define TILEWRIGHT_TRANSFORMS_PLAN_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace tilewright {

#define GEN_PASS_DECL
#include "lib/Transforms/Plan/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "lib/Transforms/Plan/Passes.h.inc"

} // namespace tilewright

#endif // TILEWRIGHT_TRANSFORMS_PLAN_PASSES_H

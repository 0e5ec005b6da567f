//===- Passes.h - small floats as integers -*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TRANSFORMS_EXPANDFLOATS_PASSES_H
#define TILEWRIGHT_TRANSFORMS_EXPANDFLOATS_PASSES_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Pass/Pass.h"

namespace tilewright {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "lib/Transforms/ExpandFloats/Passes.h.inc"

} // namespace tilewright

#endif // TILEWRIGHT_TRANSFORMS_EXPANDFLOATS_PASSES_H

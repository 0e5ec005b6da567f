//===- Passes.h - math without a library -*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TRANSFORMS_EXPANDMATH_PASSES_H
#define TILEWRIGHT_TRANSFORMS_EXPANDMATH_PASSES_H

#include "dialects/Tile/Tile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/Pass.h"

namespace tilewright {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "lib/Transforms/ExpandMath/Passes.h.inc"

} // namespace tilewright

#endif // TILEWRIGHT_TRANSFORMS_EXPANDMATH_PASSES_H

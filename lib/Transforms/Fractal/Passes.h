//===- Passes.h - what a program of lists waits for -------------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TRANSFORMS_FRACTAL_PASSES_H
#define TILEWRIGHT_TRANSFORMS_FRACTAL_PASSES_H

#include "dialects/Fractal/Fractal.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace tilewright {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "lib/Transforms/Fractal/Passes.h.inc"

} // namespace tilewright

#endif // TILEWRIGHT_TRANSFORMS_FRACTAL_PASSES_H

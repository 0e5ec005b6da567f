//===- Passes.h - small launches as work of the host ------------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CONVERSION_TILETOHOST_PASSES_H
#define TILEWRIGHT_CONVERSION_TILETOHOST_PASSES_H

#include "dialects/Tile/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace tilewright {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "lib/Conversion/TileToHost/Passes.h.inc"

} // namespace tilewright

#endif // TILEWRIGHT_CONVERSION_TILETOHOST_PASSES_H

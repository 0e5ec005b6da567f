//===- Passes.h - GPU functions for AMD GPUs -----------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CONVERSION_GPUTOROCM_PASSES_H
#define TILEWRIGHT_CONVERSION_GPUTOROCM_PASSES_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Pass/Pass.h"

namespace tilewright {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "lib/Conversion/GPUToROCm/Passes.h.inc"

} // namespace tilewright

#endif // TILEWRIGHT_CONVERSION_GPUTOROCM_PASSES_H

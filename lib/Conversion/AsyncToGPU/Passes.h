//===- Passes.h - movement in the background on GPUs -===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CONVERSION_ASYNCTOGPU_PASSES_H
#define TILEWRIGHT_CONVERSION_ASYNCTOGPU_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace tilewright {

#define GEN_PASS_DECL
#include "lib/Conversion/AsyncToGPU/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "lib/Conversion/AsyncToGPU/Passes.h.inc"

} // namespace tilewright

#endif // TILEWRIGHT_CONVERSION_ASYNCTOGPU_PASSES_H

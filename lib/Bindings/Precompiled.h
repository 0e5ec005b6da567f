//===- Precompiled.h - upstream headers of Python bindings ------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiled once for all extension modules, upstream's too: parsing nanobind
// takes most of the time of a small file. Files still include what they use.
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_BINDINGS_PRECOMPILED_H
#define TILEWRIGHT_BINDINGS_PRECOMPILED_H

#include "mlir/Bindings/Python/IRAttributes.h"
#include "mlir/Bindings/Python/IRCore.h"
#include "mlir/Bindings/Python/IRTypes.h"
#include "mlir/Bindings/Python/Nanobind.h"
#include "mlir/Bindings/Python/NanobindAdaptors.h"
#include "mlir/Bindings/Python/NanobindUtils.h"
#include "mlir/CAPI/IR.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

#endif // TILEWRIGHT_BINDINGS_PRECOMPILED_H

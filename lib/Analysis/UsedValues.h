//===- UsedValues.h - what an op and its regions read -----------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_ANALYSIS_USEDVALUES_H
#define TILEWRIGHT_ANALYSIS_USEDVALUES_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/SetVector.h"

namespace tilewright {

/// The operands of an op, then values from outside that its regions use.
llvm::SetVector<mlir::Value> getUsedValues(mlir::Operation *op);

} // namespace tilewright

#endif // TILEWRIGHT_ANALYSIS_USEDVALUES_H

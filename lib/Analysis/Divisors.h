//===- Divisors.h - what an index is a multiple of --------------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_ANALYSIS_DIVISORS_H
#define TILEWRIGHT_ANALYSIS_DIVISORS_H

#include "mlir/IR/Value.h"

namespace tilewright {

/// A power of two, at most 4096, that the integer is surely a multiple of.
int64_t getDivisor(mlir::Value value);
int64_t getDivisor(int64_t value);

} // namespace tilewright

#endif // TILEWRIGHT_ANALYSIS_DIVISORS_H

//===- Divisors.h - what an index is a multiple of --------------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_ANALYSIS_DIVISORS_H
#define TILEWRIGHT_ANALYSIS_DIVISORS_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Value.h"

namespace tilewright {

/// A power of two, at most 4096, that the integer is surely a multiple of.
int64_t getDivisor(mlir::Value value);
int64_t getDivisor(int64_t value);

/// What the stride of each dimension is surely a multiple of: the stride where
/// the type tells it; in a row-major buffer of open sizes, the product of the
/// known sizes behind the dimension; else 1.
llvm::SmallVector<int64_t> getStrideFactors(mlir::MemRefType type);

} // namespace tilewright

#endif // TILEWRIGHT_ANALYSIS_DIVISORS_H

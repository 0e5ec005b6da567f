//===- WidenBytes.h - bytes as floats, several at once ----------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CONVERSION_TILETOGPU_WIDENBYTES_H
#define TILEWRIGHT_CONVERSION_TILETOGPU_WIDENBYTES_H

#include "mlir/IR/Builders.h"

namespace tilewright {

/// Whether so many integers of a type are bytes that `widenBytes` makes floats
/// of type `to` of.
bool canWidenBytes(mlir::ValueRange bytes, mlir::Type to, int64_t arch);

/// Bytes as floats: f32, or f16. Conversion instructions do 16 a clock on
/// compute capability 8.0, so a byte is put into the mantissa of a float whose
/// exponent makes its last bit one, and that float's value is subtracted (Kim
/// et al., "Who says elephants can't run", 2022, section 4.2; exact).
mlir::SmallVector<mlir::Value> widenBytes(mlir::OpBuilder &b,
                                          mlir::Location loc,
                                          mlir::ValueRange bytes, mlir::Type to,
                                          bool isUnsigned);

} // namespace tilewright

#endif // TILEWRIGHT_CONVERSION_TILETOGPU_WIDENBYTES_H

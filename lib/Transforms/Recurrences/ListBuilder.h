//===- ListBuilder.h - ops on lists from functions --------------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TRANSFORMS_RECURRENCES_LISTBUILDER_H
#define TILEWRIGHT_TRANSFORMS_RECURRENCES_LISTBUILDER_H

#include "dialects/Fractal/Fractal.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace tilewright {

/// From block arguments to what the region yields; the builder stands in it.
using ListBody = llvm::function_ref<llvm::SmallVector<mlir::Value>(
    mlir::ImplicitLocOpBuilder &, mlir::ValueRange)>;

/// A map over these lists, which are `length` long.
fractal::MapOp buildMap(mlir::ImplicitLocOpBuilder &b, int64_t length,
                        mlir::ValueRange arrays, ListBody body);
/// A scan from left to right; arguments are states, then elements.
fractal::ScanOp buildScan(mlir::ImplicitLocOpBuilder &b, int64_t length,
                          mlir::ValueRange inits, mlir::ValueRange arrays,
                          ListBody body);
/// The source where the map reads it; leading lengths of the result.
mlir::Value buildRead(mlir::ImplicitLocOpBuilder &b, mlir::Value source,
                      mlir::AffineMap map, llvm::ArrayRef<int64_t> lengths);

} // namespace tilewright

#endif // TILEWRIGHT_TRANSFORMS_RECURRENCES_LISTBUILDER_H

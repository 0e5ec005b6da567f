//===- Combine.h - the combiners of reductions ------------------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CONVERSION_TILETOVECTOR_COMBINE_H
#define TILEWRIGHT_CONVERSION_TILETOVECTOR_COMBINE_H

#include "lib/Conversion/TileToVector/TileParts.h"

namespace tilewright {

/// `x KIND y` on scalars or vectors. Float max and min propagate NaN.
mlir::Value combine(mlir::OpBuilder &b, mlir::Location loc,
                    tile::ReduceKind kind, mlir::Value x, mlir::Value y);

/// The value that changes nothing when combined.
mlir::TypedAttr neutralElement(mlir::OpBuilder &b, tile::ReduceKind kind,
                               mlir::Type element);

/// The same as a kind of upstream's atomic operations.
mlir::arith::AtomicRMWKind atomicKind(tile::ReduceKind kind,
                                      mlir::Type element);

} // namespace tilewright

#endif // TILEWRIGHT_CONVERSION_TILETOVECTOR_COMBINE_H

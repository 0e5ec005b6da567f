//===- PaddingFills.h - fills of a padding alone ---------------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Padding is a fill and an operation that computes into a slice of it. Only
// what the slice leaves is filled, each padded tensor by itself: two that share
// a fill would need a copy of it.
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TRANSFORMS_PLAN_PADDINGFILLS_H
#define TILEWRIGHT_TRANSFORMS_PLAN_PADDINGFILLS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace tilewright {

/// `out` with `scalar` in each element, by a generic.
mlir::Value fillAsGeneric(mlir::OpBuilder &builder, mlir::Location loc,
                          mlir::Value out, mlir::Value scalar);

/// Gives each tensor that `fill` is overwritten in a slice of a padding of
/// its own. What else uses the fill keeps it.
void fillPaddingOnly(mlir::linalg::FillOp fill);

} // namespace tilewright

#endif // TILEWRIGHT_TRANSFORMS_PLAN_PADDINGFILLS_H

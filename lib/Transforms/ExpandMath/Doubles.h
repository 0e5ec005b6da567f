//===- Doubles.h - functions of f64 as arithmetic on f64 --------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TRANSFORMS_EXPANDMATH_DOUBLES_H
#define TILEWRIGHT_TRANSFORMS_EXPANDMATH_DOUBLES_H

#include "lib/Transforms/ExpandMath/MathBuilder.h"

namespace tilewright {

using UnaryExpansion = mlir::Value (*)(const MathBuilder &, mlir::Value);

/// The expansion of a function of one f64, to a few units in the last place;
/// null where there is none.
UnaryExpansion findDoubleExpansion(mlir::StringRef name);

mlir::Value expOfDouble(const MathBuilder &m, mlir::Value x);
mlir::Value powOfDouble(const MathBuilder &m, mlir::Value x, mlir::Value y);
mlir::Value erfOfDouble(const MathBuilder &m, mlir::Value x);
mlir::Value erfcOfDouble(const MathBuilder &m, mlir::Value x);
/// For |x| below 2^31; beyond, digits are lost one by one.
mlir::Value sinOfDouble(const MathBuilder &m, mlir::Value x);
mlir::Value cosOfDouble(const MathBuilder &m, mlir::Value x);
mlir::Value tanOfDouble(const MathBuilder &m, mlir::Value x);
mlir::Value atanOfDouble(const MathBuilder &m, mlir::Value x);
mlir::Value asinOfDouble(const MathBuilder &m, mlir::Value x);
mlir::Value acosOfDouble(const MathBuilder &m, mlir::Value x);
mlir::Value atan2OfDouble(const MathBuilder &m, mlir::Value y, mlir::Value x);

} // namespace tilewright

#endif // TILEWRIGHT_TRANSFORMS_EXPANDMATH_DOUBLES_H

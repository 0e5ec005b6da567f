//===- Divisions.cpp - divisions by constants -----------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/ExpandMath/MathBuilder.h"

#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"

#include <cmath>

using namespace mlir;
using namespace tilewright;

/// The constant f32 that every lane of `value` holds.
static std::optional<float> constantOf(Value value) {
  FloatAttr scalar;
  DenseFPElementsAttr elements;
  if (matchPattern(value, m_Constant(&scalar)))
    return scalar.getValue().convertToFloat();
  if (matchPattern(value, m_Constant(&elements)) && elements.isSplat())
    return elements.getSplatValue<APFloat>().convertToFloat();
  return std::nullopt;
}

std::optional<double> tilewright::reciprocalOf(Value divisor) {
  if (!getElementTypeOrSelf(divisor.getType()).isF32())
    return std::nullopt;
  std::optional<float> value = constantOf(divisor);
  // Beyond, the reciprocal is not normal.
  if (!value || !(std::abs(*value) > 1e-30f && std::abs(*value) < 1e30f))
    return std::nullopt;
  return static_cast<float>(1.0 / static_cast<double>(*value));
}

Value tilewright::expandDivision(const MathBuilder &m, Value x, Value divisor,
                                 double reciprocal) {
  Value by = m.constant(reciprocal);
  Value quotient = m.mul(x, by);
  int exponent;
  if (std::abs(std::frexp(reciprocal, &exponent)) == 0.5)
    return quotient; // a power of two: exact
  // One step of Newton on the exact remainder rounds as a division does
  // (Markstein, IBM J. Res. Dev. 34, 1990). An infinite remainder has no
  // quotient: there the first one is right.
  Value remainder = m.fma(m.neg(quotient), divisor, x);
  Value exact = m.fma(remainder, by, quotient);
  Value isUsual = m.compare(MathBuilder::Compare::OLT, m.abs(quotient), 1.0e37);
  return m.select(isUsual, exact, quotient);
}

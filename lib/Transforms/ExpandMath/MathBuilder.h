//===- MathBuilder.h - arithmetic on one type of numbers -*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TRANSFORMS_EXPANDMATH_MATHBUILDER_H
#define TILEWRIGHT_TRANSFORMS_EXPANDMATH_MATHBUILDER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace tilewright {

/// Arithmetic on floats of one width, scalar or vector, f32 or f64.
class MathBuilder {
public:
  using Value = mlir::Value;
  using Compare = mlir::arith::CmpFPredicate;

  /// `avx512`: instructions of AVX-512F may be used where they help.
  MathBuilder(mlir::OpBuilder &b, mlir::Location loc, mlir::Type type,
              bool avx512 = false)
      : b(b), loc(loc), type(type), avx512(avx512) {}

  /// The same numbers in another float width.
  MathBuilder withWidth(unsigned bits) const;
  Value toWidth(Value x, unsigned bits) const;

  Value constant(double value) const;
  Value integer(int64_t value) const;
  Value add(Value x, Value y) const;
  Value sub(Value x, Value y) const;
  Value mul(Value x, Value y) const;
  Value mul(Value x, double y) const { return mul(x, constant(y)); }
  Value div(Value x, Value y) const;
  Value fma(Value x, Value y, Value z) const;
  Value neg(Value x) const;
  Value abs(Value x) const;
  Value copysign(Value magnitude, Value sign) const;
  Value roundeven(Value x) const;
  Value floor(Value x) const;
  Value sqrt(Value x) const;
  Value compare(Compare predicate, Value x, Value y) const;
  Value compare(Compare predicate, Value x, double y) const {
    return compare(predicate, x, constant(y));
  }
  Value select(Value condition, Value x, Value y) const;
  /// Polynomial by Horner's rule, highest coefficient first.
  Value polynomial(Value x, mlir::ArrayRef<double> coefficients) const;
  /// x limited to [low, high]; NaN stays NaN.
  Value clamp(Value x, double low, double high) const;

  // Integers of the same width.
  Value bits(Value x) const;
  Value fromBits(Value x) const;
  Value addInt(Value x, Value y) const;
  Value subInt(Value x, Value y) const;
  Value andInt(Value x, Value y) const;
  Value orInt(Value x, Value y) const;
  Value shiftLeft(Value x, int64_t count) const;
  Value shiftRight(Value x, int64_t count) const; // arithmetic
  Value intToFloat(Value x) const;
  Value isZeroInt(Value x) const;

  unsigned getWidth() const;

  /// Whether there are instructions for the two functions below.
  bool hasAVX512() const;
  /// x * 2^floor(n), rounded once.
  Value scaleByPower(Value x, Value n) const;
  /// Per lane, the entry of `table` that the lowest four bits of `bits` name.
  Value lookup(mlir::ArrayRef<double> table, Value bits) const;

private:
  Value toSixteen(Value x) const;
  Value fromSixteen(Value x) const;
  Value intrinsic(mlir::StringRef name, mlir::ValueRange arguments) const;
  mlir::Type integerType() const;
  mlir::Value splat(mlir::Type numbers, mlir::Attribute value) const;

  mlir::OpBuilder &b;
  mlir::Location loc;
  mlir::Type type;
  bool avx512;
};

// Expansions on f32 values, unless said otherwise.
mlir::Value expandExp(const MathBuilder &m, mlir::Value x);
/// 1 + exp(x), or 1 + exp(-x) where it is `negated`: of logistic functions.
mlir::Value expandOnePlusExp(const MathBuilder &m, mlir::Value x, bool negated);
mlir::Value expandExp2(const MathBuilder &m, mlir::Value x);
mlir::Value expandExpM1(const MathBuilder &m, mlir::Value x);
mlir::Value expandErf(const MathBuilder &m, mlir::Value x);
mlir::Value expandErfc(const MathBuilder &m, mlir::Value x);
mlir::Value expandTanh(const MathBuilder &m, mlir::Value x);
mlir::Value expandSinh(const MathBuilder &m, mlir::Value x);
mlir::Value expandCosh(const MathBuilder &m, mlir::Value x);
mlir::Value expandLog(const MathBuilder &m, mlir::Value x);
mlir::Value expandLog2(const MathBuilder &m, mlir::Value x);
mlir::Value expandLog10(const MathBuilder &m, mlir::Value x);
mlir::Value expandLog1p(const MathBuilder &m, mlir::Value x);
mlir::Value expandPow(const MathBuilder &m, mlir::Value x, mlir::Value y);
mlir::Value expandCbrt(const MathBuilder &m, mlir::Value x);
mlir::Value expandAsinh(const MathBuilder &m, mlir::Value x);
mlir::Value expandAcosh(const MathBuilder &m, mlir::Value x);
mlir::Value expandAtanh(const MathBuilder &m, mlir::Value x);
mlir::Value expandSin(const MathBuilder &m, mlir::Value x);
mlir::Value expandCos(const MathBuilder &m, mlir::Value x);
mlir::Value expandTan(const MathBuilder &m, mlir::Value x);
mlir::Value expandAtan(const MathBuilder &m, mlir::Value x);
mlir::Value expandAsin(const MathBuilder &m, mlir::Value x);
mlir::Value expandAcos(const MathBuilder &m, mlir::Value x);
mlir::Value expandAtan2(const MathBuilder &m, mlir::Value y, mlir::Value x);

struct SinCos {
  mlir::Value sine, cosine;
};

/// The sine and cosine of an angle, from those of what is left of it behind
/// whole quadrants, whose number (an integer) is given.
SinCos turnByQuadrants(const MathBuilder &m, mlir::Value quadrant, SinCos rest);

/// t with |t| <= tan(pi/8): atan(|x|) is `from(pi / 2)` + atan(t), a quarter
/// turn where |x| is big, half of it where it is middle, else nothing.
struct AtanArgument {
  mlir::Value t, isBig, isMiddle;

  mlir::Value from(const MathBuilder &m, double quarterTurn) const;
};
AtanArgument reduceAtan(const MathBuilder &m, mlir::Value x);

/// 2^exponent * (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)).
struct LogArgument {
  mlir::Value exponent, f;
};
/// Takes a number apart that is positive and normal.
LogArgument splitForLog(const MathBuilder &m, mlir::Value x);
/// `result`, and what a logarithm is at 0, below 0, at infinity and NaN.
mlir::Value fixLogEnds(const MathBuilder &m, mlir::Value x, mlir::Value result);

/// 1 / divisor, where that is a constant for which `expandDivision` is good.
std::optional<double> reciprocalOf(mlir::Value divisor);
/// x / divisor without a division: the same bits where the quotient is normal
/// and below 1e37, else within a unit in the last place.
mlir::Value expandDivision(const MathBuilder &m, mlir::Value x,
                           mlir::Value divisor, double reciprocal);

/// The remainders of divisions of floats (`arith.remf`) in GPU functions.
void expandRemainders(mlir::Operation *root);

/// On f64: relative error about 1e-13, enough for any f32 result.
mlir::Value exp64(const MathBuilder &m, mlir::Value x);
mlir::Value log64(const MathBuilder &m, mlir::Value x);

} // namespace tilewright

#endif // TILEWRIGHT_TRANSFORMS_EXPANDMATH_MATHBUILDER_H

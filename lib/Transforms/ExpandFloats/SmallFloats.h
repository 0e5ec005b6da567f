//===- SmallFloats.h - conversions of small floats -*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TRANSFORMS_EXPANDFLOATS_SMALLFLOATS_H
#define TILEWRIGHT_TRANSFORMS_EXPANDFLOATS_SMALLFLOATS_H

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <optional>

namespace tilewright {

/// What becomes of numbers that a format cannot hold.
enum class Overflow { Infinity, NaN, Saturate };

/// A float of a sign, an exponent and a mantissa, in at most 16 bits.
struct SmallFloat {
  unsigned exponentBits;
  unsigned mantissaBits;
  int bias;
  Overflow overflow;
  /// FNUZ: the only NaN is the code of -0.
  bool unsignedZero = false;

  unsigned width() const { return 1 + exponentBits + mantissaBits; }
  /// The largest finite magnitude, as a code.
  int64_t largest() const;
  /// The magnitude of a NaN; none where the format has no such code.
  std::optional<int64_t> nan() const;
};

/// The format of a type; none for f32, f64 and f8E8M0FNU.
std::optional<SmallFloat> getSmallFloat(mlir::Type element);

/// Integer arithmetic on the bits of f32 values and of small floats.
class FloatBits {
public:
  using Value = mlir::Value;

  /// `like` gives the shape: a scalar's or a vector's type.
  FloatBits(mlir::OpBuilder &b, mlir::Location loc, mlir::Type like)
      : b(b), loc(loc), like(like) {}

  /// The f32 of the same value.
  Value extend(Value x, const SmallFloat &format) const;
  Value extendE8M0(Value x) const;

  /// An f32 rounded to nearest even.
  Value truncate(Value x, const SmallFloat &format, mlir::Type element) const;
  Value truncateE8M0(Value x, mlir::Type element) const;

  /// An f64 as f32, rounded to odd: rounding that to a smaller type is exact.
  Value roundToOdd(Value x) const;

  mlir::Type withElement(mlir::Type element) const;

private:
  Value word(int64_t value) const;
  Value number(double value) const;
  Value wordOf(Value x) const;
  Value floatOf(Value bits) const;
  Value codeOf(Value bits, unsigned width, mlir::Type element) const;
  Value add(Value x, Value y) const;
  Value bitAnd(Value x, int64_t mask) const;
  Value bitOr(Value x, Value y) const;
  Value shiftLeft(Value x, unsigned count) const;
  Value shiftRight(Value x, unsigned count) const;
  Value select(Value condition, Value x, Value y) const;
  /// Unsigned comparisons, which are those of magnitudes.
  Value compare(mlir::arith::CmpIPredicate predicate, Value x, int64_t y) const;

  Value extendSpecial(Value code, Value magnitude, Value bits,
                      const SmallFloat &format) const;
  Value roundMagnitude(Value magnitude, const SmallFloat &format) const;
  Value roundUpperPart(Value x, const SmallFloat &format) const;
  Value withSpecial(Value rounded, Value magnitude, Value sign,
                    const SmallFloat &format) const;

  mlir::OpBuilder &b;
  mlir::Location loc;
  mlir::Type like;
};

} // namespace tilewright

#endif // TILEWRIGHT_TRANSFORMS_EXPANDFLOATS_SMALLFLOATS_H

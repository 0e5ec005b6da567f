//===- Trigonometry.cpp - sin, cos, tan and their inverses ----------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/ExpandMath/MathBuilder.h"

using namespace mlir;
using namespace tilewright;
using Compare = MathBuilder::Compare;

namespace {

constexpr double kPi = 3.141592653589793;

/// sin and cos of x on f64, with the quadrant taken out.
/// Reduced on f64, which is exact enough for |x| below 1e9; Taylor's series.
SinCos sinCosWide(const MathBuilder &m, Value x) {
  Value magic = m.constant(6755399441055744.0);
  Value biased = m.fma(x, m.constant(2.0 / kPi), magic);
  Value quadrant = m.bits(biased);
  Value n = m.sub(biased, magic);
  Value r = m.fma(n, m.constant(-kPi / 2), x);
  r = m.fma(n, m.constant(-6.123233995736766e-17), r);
  Value z = m.mul(r, r);
  Value s = m.polynomial(z, {-1.0 / 39916800, 1.0 / 362880, -1.0 / 5040,
                             1.0 / 120, -1.0 / 6, 1.0});
  s = m.mul(s, r);
  Value c = m.polynomial(z, {1.0 / 479001600, -1.0 / 3628800, 1.0 / 40320,
                             -1.0 / 720, 1.0 / 24, -0.5, 1.0});
  return turnByQuadrants(m, quadrant, {s, c});
}

SinCos sinCos(const MathBuilder &m, Value x) {
  MathBuilder wide = m.withWidth(64);
  return sinCosWide(wide, wide.toWidth(x, 64));
}

/// atan on f64 for any x: reduced to |t| <= tan(pi/8), then the series.
Value atanWide(const MathBuilder &m, Value x) {
  AtanArgument argument = reduceAtan(m, x);
  Value t = argument.t, start = argument.from(m, kPi / 2);
  SmallVector<double> coefficients;
  for (int i = 25; i >= 1; i -= 2)
    coefficients.push_back((i % 4 == 1 ? 1.0 : -1.0) / i);
  Value series = m.mul(t, m.polynomial(m.mul(t, t), coefficients));
  return m.copysign(m.add(start, series), x);
}

} // namespace

SinCos tilewright::turnByQuadrants(const MathBuilder &m, Value quadrant,
                                   SinCos rest) {
  auto [s, c] = rest;
  Value isEven = m.isZeroInt(m.andInt(quadrant, m.integer(1)));
  Value noFlip = m.isZeroInt(m.andInt(quadrant, m.integer(2)));
  Value next = m.addInt(quadrant, m.integer(1));
  Value noFlipCosine = m.isZeroInt(m.andInt(next, m.integer(2)));
  Value sine = m.select(isEven, s, c), cosine = m.select(isEven, c, s);
  return {m.select(noFlip, sine, m.neg(sine)),
          m.select(noFlipCosine, cosine, m.neg(cosine))};
}

AtanArgument tilewright::reduceAtan(const MathBuilder &m, Value x) {
  Value size = m.abs(x), one = m.constant(1.0);
  Value isBig = m.compare(Compare::OGT, size, 2.414213562373095);
  Value isMiddle = m.compare(Compare::OGT, size, 0.41421356237309503);
  Value middle = m.div(m.sub(size, one), m.add(size, one));
  Value t = m.select(isBig, m.div(m.constant(-1.0), size),
                     m.select(isMiddle, middle, size));
  return {t, isBig, isMiddle};
}

Value AtanArgument::from(const MathBuilder &m, double quarterTurn) const {
  Value half = m.constant(quarterTurn / 2);
  return m.select(isBig, m.constant(quarterTurn),
                  m.select(isMiddle, half, m.constant(0.0)));
}

Value tilewright::expandSin(const MathBuilder &m, Value x) {
  Value result = m.toWidth(sinCos(m, x).sine, 32);
  return m.select(m.compare(Compare::OEQ, x, 0.0), x, result); // -0 stays
}

Value tilewright::expandCos(const MathBuilder &m, Value x) {
  return m.toWidth(sinCos(m, x).cosine, 32);
}

Value tilewright::expandTan(const MathBuilder &m, Value x) {
  MathBuilder wide = m.withWidth(64);
  SinCos both = sinCos(m, x);
  Value result = m.toWidth(wide.div(both.sine, both.cosine), 32);
  return m.select(m.compare(Compare::OEQ, x, 0.0), x, result);
}

Value tilewright::expandAtan(const MathBuilder &m, Value x) {
  MathBuilder wide = m.withWidth(64);
  return m.toWidth(atanWide(wide, wide.toWidth(x, 64)), 32);
}

Value tilewright::expandAsin(const MathBuilder &m, Value x) {
  MathBuilder wide = m.withWidth(64);
  Value v = wide.toWidth(x, 64);
  Value one = wide.constant(1.0);
  Value cosine = wide.sqrt(wide.mul(wide.sub(one, v), wide.add(one, v)));
  return m.toWidth(atanWide(wide, wide.div(v, cosine)), 32);
}

Value tilewright::expandAcos(const MathBuilder &m, Value x) {
  MathBuilder wide = m.withWidth(64);
  Value v = wide.toWidth(x, 64);
  Value one = wide.constant(1.0);
  // 2 * atan(sqrt((1 - x) / (1 + x))) keeps its digits near 1.
  Value quotient = wide.div(wide.sub(one, v), wide.add(one, v));
  Value angle = atanWide(wide, wide.sqrt(quotient));
  return m.toWidth(wide.mul(angle, 2.0), 32);
}

Value tilewright::expandAtan2(const MathBuilder &m, Value y, Value x) {
  MathBuilder wide = m.withWidth(64);
  Value vy = wide.toWidth(y, 64), vx = wide.toWidth(x, 64);
  Value ay = wide.abs(vy), ax = wide.abs(vx);
  Value quotient = wide.div(ay, ax);
  // 0/0 and inf/inf: IEEE 754 gives 0 and pi/4 in the first quadrant.
  Value same = wide.compare(Compare::OEQ, ay, ax);
  Value isZero = wide.compare(Compare::OEQ, ay, 0.0);
  Value ratio = wide.select(isZero, wide.constant(0.0), wide.constant(1.0));
  quotient = wide.select(same, ratio, quotient);
  Value angle = atanWide(wide, quotient);
  Value mirrored = wide.sub(wide.constant(kPi), angle);
  // The sign bit of x counts, also of -0.
  Value left =
      wide.compare(Compare::OLT, wide.copysign(wide.constant(1.0), vx), 0.0);
  angle = wide.select(left, mirrored, angle);
  return m.toWidth(wide.copysign(angle, vy), 32);
}

//===- DoubleAngles.cpp - angles and the error function of f64 ------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/ExpandMath/Doubles.h"

using namespace mlir;
using namespace tilewright;
using Compare = MathBuilder::Compare;

namespace {

constexpr double kPi = 3.141592653589793;

/// (-1)^i / (2i + odd)!, highest first: the series of sin and cos in squares.
SmallVector<double> alternating(int odd, int count) {
  SmallVector<double> coefficients;
  double value = 1.0;
  for (int i = 0; i < count; ++i) {
    coefficients.insert(coefficients.begin(), value);
    int next = 2 * i + odd + 1;
    value /= -static_cast<double>(next) * (next + 1);
  }
  return coefficients;
}

/// The quadrant is taken out by pi/2 in three parts (W. J. Cody, W. Waite).
SinCos sinCos(const MathBuilder &m, Value x) {
  Value magic = m.constant(6755399441055744.0);
  Value biased = m.fma(x, m.constant(2.0 / kPi), magic);
  Value quadrant = m.bits(biased), n = m.sub(biased, magic);
  Value r = x;
  for (double part :
       {1.5707963267948966, 6.123233995736766e-17, -1.4973849048591833e-33})
    r = m.fma(n, m.constant(-part), r);
  Value z = m.mul(r, r);
  Value s = m.mul(m.polynomial(z, alternating(1, 9)), r);
  Value c = m.polynomial(z, alternating(0, 9));
  return turnByQuadrants(m, quadrant, {s, c});
}

/// exp(-x^2), with what the square lost.
Value gaussian(const MathBuilder &m, Value x) {
  Value square = m.mul(x, x);
  Value lost = m.fma(x, x, m.neg(square));
  Value e = expOfDouble(m, m.neg(square));
  return m.fma(m.neg(e), lost, e);
}

/// erfc(x) for x above 0.5: exp(-x^2) / (1 + 2x) by a Chebyshev fit of what is
/// left, in (x - 3) / (x + 3) (the form of M. M. Shepherd and J. G.
/// Laframboise, Mathematics of Computation 36, 1981); its relative error is
/// below 2^-51.
Value erfcTail(const MathBuilder &m, Value x) {
  x = m.clamp(x, 0.5, 28.0); // erfc(28) is zero
  Value t = m.div(m.sub(x, m.constant(3.0)), m.add(x, m.constant(3.0)));
  Value p = m.polynomial(
      t,
      {3.3483840129085435e-11,  -3.69165482761032e-11,   -4.225672070646419e-10,
       2.1466806796934817e-10,  2.7950040949614713e-09,  4.5443471758267316e-10,
       -1.3081936376888458e-08, -1.2592787172030258e-08, 4.857200246890205e-08,
       1.0128106135056924e-07,  -1.4817077663403478e-07, -6.163967274753781e-07,
       3.6116704469643824e-07,  3.472395430245329e-06,   -7.334599420834696e-07,
       -2.0100607324214943e-05, 4.950078708288762e-06,   0.0001250993750792056,
       -0.00010515991846229727, -0.0007798322782139158,  0.0018886903738623078,
       0.002529391816960264,    -0.0237705149196694,     0.06830802734391002,
       -0.11927366341527387,    0.12964515870276294,     -0.04756229435345119,
       -0.1356211061245812,     1.2530080582697296});
  Value scale = m.fma(x, m.constant(2.0), m.constant(1.0));
  return m.mul(gaussian(m, x), m.div(p, scale));
}

/// Taylor's series, for |x| up to 1.
Value erfSeries(const MathBuilder &m, Value x) {
  SmallVector<double> coefficients;
  double factor = 1.1283791670955126; // 2 / sqrt(pi)
  for (int i = 0; i < 20; ++i) {
    coefficients.insert(coefficients.begin(), factor / (2 * i + 1));
    factor /= -(i + 1.0);
  }
  return m.mul(x, m.polynomial(m.mul(x, x), coefficients));
}

} // namespace

Value tilewright::erfOfDouble(const MathBuilder &m, Value x) {
  Value size = m.abs(x);
  Value big = m.sub(m.constant(1.0), erfcTail(m, size));
  Value isSmall = m.compare(Compare::OLT, size, 1.0);
  return m.select(isSmall, erfSeries(m, x), m.copysign(big, x));
}

Value tilewright::erfcOfDouble(const MathBuilder &m, Value x) {
  Value small = m.sub(m.constant(1.0), erfSeries(m, x));
  Value tail = erfcTail(m, m.abs(x));
  Value mirrored = m.sub(m.constant(2.0), tail);
  Value big = m.select(m.compare(Compare::OLT, x, 0.0), mirrored, tail);
  Value isSmall = m.compare(Compare::OLT, m.abs(x), 0.5);
  return m.select(isSmall, small, big);
}

Value tilewright::sinOfDouble(const MathBuilder &m, Value x) {
  Value result = sinCos(m, x).sine;
  return m.select(m.compare(Compare::OEQ, x, 0.0), x, result); // -0 stays
}

Value tilewright::cosOfDouble(const MathBuilder &m, Value x) {
  return sinCos(m, x).cosine;
}

Value tilewright::tanOfDouble(const MathBuilder &m, Value x) {
  SinCos both = sinCos(m, x);
  Value result = m.div(both.sine, both.cosine);
  return m.select(m.compare(Compare::OEQ, x, 0.0), x, result);
}

/// Reduced to |t| <= tan(pi/8), then the series.
Value tilewright::atanOfDouble(const MathBuilder &m, Value x) {
  AtanArgument argument = reduceAtan(m, x);
  Value t = argument.t, start = argument.from(m, kPi / 2);
  // What is left of pi / 2 and pi / 4: half a unit in the last place of 0.4.
  Value startRest = argument.from(m, 6.123233995736766e-17);
  SmallVector<double> coefficients;
  for (int i = 41; i >= 3; i -= 2)
    coefficients.push_back((i % 4 == 1 ? 1.0 : -1.0) / i);
  Value square = m.mul(t, t);
  Value tail = m.mul(m.mul(square, t), m.polynomial(square, coefficients));
  tail = m.add(tail, startRest);
  return m.copysign(m.add(start, m.add(t, tail)), x);
}

Value tilewright::asinOfDouble(const MathBuilder &m, Value x) {
  Value one = m.constant(1.0);
  Value cosine = m.sqrt(m.mul(m.sub(one, x), m.add(one, x)));
  return atanOfDouble(m, m.div(x, cosine));
}

Value tilewright::acosOfDouble(const MathBuilder &m, Value x) {
  // 2 * atan(sqrt((1 - x) / (1 + x))) keeps its digits near 1.
  Value one = m.constant(1.0);
  Value quotient = m.div(m.sub(one, x), m.add(one, x));
  return m.mul(atanOfDouble(m, m.sqrt(quotient)), 2.0);
}

Value tilewright::atan2OfDouble(const MathBuilder &m, Value y, Value x) {
  Value ay = m.abs(y), ax = m.abs(x);
  // 0/0 and inf/inf: IEEE 754 gives 0 and pi/4 in the first quadrant.
  Value same = m.compare(Compare::OEQ, ay, ax);
  Value isZero = m.compare(Compare::OEQ, ay, 0.0);
  Value ratio = m.select(isZero, m.constant(0.0), m.constant(1.0));
  Value angle = atanOfDouble(m, m.select(same, ratio, m.div(ay, ax)));
  // The sign bit of x counts, also of -0.
  Value sign = m.copysign(m.constant(1.0), x);
  Value left = m.compare(Compare::OLT, sign, 0.0);
  angle = m.select(left, m.sub(m.constant(kPi), angle), angle);
  return m.copysign(angle, y);
}

//===- Exponentials.cpp - exp and what is made of it ----------------------===//
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

constexpr double kLog2E = 1.4426950408889634;
constexpr double kLn2 = 0.6931471805599453;

/// An integer-valued float and the integer itself.
struct Rounded {
  Value number, integer;
};

/// Rounds without a float-to-integer conversion, which has no value for NaN:
/// adding 1.5 * 2^(mantissa bits) leaves the integer in the low bits.
Rounded roundBiased(const MathBuilder &m, Value x, Value factor) {
  bool isDouble = m.getWidth() == 64;
  Value magic = m.constant(isDouble ? 6755399441055744.0 : 12582912.0);
  Value biased = m.fma(x, factor, magic);
  return {m.sub(biased, magic), m.subInt(m.bits(biased), m.bits(magic))};
}

/// p * 2^n in two steps, so that results may be denormal or infinite.
Value scale(const MathBuilder &m, Value p, Value n) {
  bool isDouble = m.getWidth() == 64;
  Value half = m.shiftRight(n, 1);
  Value rest = m.subInt(n, half);
  auto power = [&](Value exponent) {
    Value bias = m.integer(isDouble ? 1023 : 127);
    return m.fromBits(
        m.shiftLeft(m.addInt(exponent, bias), isDouble ? 52 : 23));
  };
  return m.mul(m.mul(p, power(half)), power(rest));
}

/// exp(r) for |r| <= ln(2)/2, f32.
Value expReduced(const MathBuilder &m, Value r) {
  Value p =
      m.polynomial(r, {1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3,
                       4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1});
  return m.add(m.fma(m.mul(r, r), p, r), m.constant(1.0));
}

/// exp of an f32 on f64, for functions that lose digits afterwards.
Value expWide(const MathBuilder &wide, Value x) {
  return exp64(wide, wide.toWidth(x, 64));
}

} // namespace

Value tilewright::expandExp(const MathBuilder &m, Value x) {
  // Below, the result is 0. Such lanes are frequent (masked attention) and must
  // not reach the scaling, where the underflow costs a hundred cycles.
  Value vanishes = m.compare(Compare::OLT, x, -103.9721);
  Value zero = m.constant(0.0);
  x = m.clamp(m.select(vanishes, zero, x), -104.0, 89.0);
  Rounded n = roundBiased(m, x, m.constant(kLog2E));
  Value r = m.fma(n.number, m.constant(-0.693359375), x);
  r = m.fma(n.number, m.constant(2.12194440e-4), r);
  return m.select(vanishes, zero, scale(m, expReduced(m, r), n.integer));
}

Value tilewright::expandExp2(const MathBuilder &m, Value x) {
  x = m.clamp(x, -150.5, 129.0);
  Rounded n = roundBiased(m, x, m.constant(1.0));
  Value fraction = m.sub(x, n.number);
  // Taylor's series in fraction * ln(2), that product inside the coefficients.
  SmallVector<double> coefficients{1.0};
  for (int i = 1; i <= 7; ++i)
    coefficients.insert(coefficients.begin(), coefficients.front() * kLn2 / i);
  return scale(m, m.polynomial(fraction, coefficients), n.integer);
}

Value tilewright::exp64(const MathBuilder &m, Value x) {
  x = m.clamp(x, -745.0, 710.0);
  Rounded n = roundBiased(m, x, m.constant(kLog2E));
  Value r = m.fma(n.number, m.constant(-kLn2), x);
  r = m.fma(n.number, m.constant(-2.3190468138462996e-17), r);
  SmallVector<double> coefficients{1.0};
  for (int i = 1; i <= 11; ++i)
    coefficients.insert(coefficients.begin(), coefficients.front() / i);
  return scale(m, m.polynomial(r, coefficients), n.integer);
}

Value tilewright::expandExpM1(const MathBuilder &m, Value x) {
  MathBuilder wide = m.withWidth(64);
  Value big = m.toWidth(wide.sub(expWide(wide, x), wide.constant(1.0)), 32);
  Value small = m.fma(m.mul(x, x), m.polynomial(x, {1.0 / 6, 0.5}), x);
  // x itself where it is a signed zero or too small to matter.
  return m.select(m.compare(Compare::OLT, m.abs(x), 1e-3), small, big);
}

Value tilewright::expandTanh(const MathBuilder &m, Value x) {
  Value size = m.abs(x);
  // 1 - 2 / (exp(2|x|) + 1) where that keeps its digits.
  Value e = expandExp(m, m.add(size, size));
  Value big =
      m.sub(m.constant(1.0), m.div(m.constant(2.0), m.add(e, m.constant(1.0))));
  Value z = m.mul(x, x);
  Value p =
      m.polynomial(z, {-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2,
                       1.33314422036e-1, -3.33332819422e-1});
  Value small = m.fma(m.mul(p, z), size, size);
  Value result = m.select(m.compare(Compare::OLT, size, 0.625), small, big);
  return m.copysign(result, x);
}

Value tilewright::expandSinh(const MathBuilder &m, Value x) {
  MathBuilder wide = m.withWidth(64);
  Value e = expWide(wide, x);
  Value twice = wide.sub(e, wide.div(wide.constant(1.0), e));
  Value big = m.toWidth(wide.mul(twice, 0.5), 32);
  Value z = m.mul(x, x);
  Value p = m.polynomial(z, {1.0 / 5040, 1.0 / 120, 1.0 / 6});
  Value small = m.fma(m.mul(p, z), x, x);
  return m.select(m.compare(Compare::OLT, m.abs(x), 0.5), small, big);
}

Value tilewright::expandCosh(const MathBuilder &m, Value x) {
  MathBuilder wide = m.withWidth(64);
  Value e = expWide(wide, x);
  Value twice = wide.add(e, wide.div(wide.constant(1.0), e));
  return m.toWidth(wide.mul(twice, 0.5), 32);
}

/// log(1 - erf(t)) for t above 0.92, as a polynomial.
static Value erfTail(const MathBuilder &m, Value t, Value square) {
  Value r = m.fma(m.constant(-1.72853470e-5), t, m.constant(3.83197126e-4));
  Value u = m.fma(m.constant(-3.88396438e-3), t, m.constant(2.42546219e-2));
  r = m.fma(r, square, u);
  for (double c : {-1.06777877e-1, -6.34846687e-1, -1.28717512e-1})
    r = m.fma(r, t, m.constant(c));
  return m.fma(r, t, m.neg(t));
}

Value tilewright::expandErf(const MathBuilder &m, Value x) {
  Value t = m.abs(x);
  Value square = m.mul(x, x);
  Value tail = m.sub(m.constant(1.0), expandExp(m, erfTail(m, t, square)));
  Value p =
      m.polynomial(square, {-5.96761703e-4, 4.99119423e-3, -2.67681349e-2,
                            1.12819925e-1, -3.76125336e-1, 1.28379166e-1});
  Value small = m.fma(p, t, t);
  Value result = m.select(m.compare(Compare::OGT, t, 0.927734375), tail, small);
  return m.copysign(result, x);
}

Value tilewright::expandErfc(const MathBuilder &m, Value x) {
  // On f64: erfc(t) = exp(-t^2) * r(1/(1+t/2)) (a Chebyshev fit, relative error
  // below 1.2e-7), mirrored for negative x.
  MathBuilder wide = m.withWidth(64);
  Value v = wide.toWidth(x, 64);
  Value size = wide.abs(v);
  Value t = wide.div(wide.constant(1.0),
                     wide.fma(size, wide.constant(0.5), wide.constant(1.0)));
  Value p = wide.polynomial(
      t, {0.17087277, -0.82215223, 1.48851587, -1.13520398, 0.27886807,
          -0.18628806, 0.09678418, 0.37409196, 1.00002368, -1.26551223});
  Value tail = wide.mul(t, exp64(wide, wide.fma(wide.neg(size), size, p)));
  Value mirrored = wide.sub(wide.constant(2.0), tail);
  return m.toWidth(
      wide.select(wide.compare(Compare::OLT, v, 0.0), mirrored, tail), 32);
}

//===- Logarithms.cpp - log, pow and what is made of them -----------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/ExpandMath/MathBuilder.h"

#include <limits>

using namespace mlir;
using namespace tilewright;
using Compare = MathBuilder::Compare;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// log of an f32 on f64, back to f32.
Value logWide(const MathBuilder &m, Value x, double factor) {
  MathBuilder wide = m.withWidth(64);
  return m.toWidth(wide.mul(log64(wide, wide.toWidth(x, 64)), factor), 32);
}

} // namespace

LogArgument tilewright::splitForLog(const MathBuilder &m, Value x) {
  bool isWide = m.getWidth() == 64;
  int64_t one = isWide ? 0x3ff0000000000000 : 0x3f800000;
  int64_t root = isWide ? 0x3fe6a09e667f3bcd : 0x3f3504f3; // sqrt(1/2)
  int64_t place = isWide ? 52 : 23, bias = isWide ? 1023 : 127;
  Value moved = m.addInt(m.bits(x), m.integer(one - root));
  Value power = m.subInt(m.shiftRight(moved, place), m.integer(bias));
  Value mantissa = m.andInt(moved, m.integer((int64_t(1) << place) - 1));
  Value near = m.fromBits(m.addInt(mantissa, m.integer(root)));
  return {m.intToFloat(power), m.sub(near, m.constant(1.0))};
}

Value tilewright::fixLogEnds(const MathBuilder &m, Value x, Value result) {
  result = m.select(m.compare(Compare::UEQ, x, kInfinity), x, result);
  result =
      m.select(m.compare(Compare::OEQ, x, 0.0), m.constant(-kInfinity), result);
  return m.select(m.compare(Compare::OLT, x, 0.0), m.constant(kNaN), result);
}

Value tilewright::expandLog(const MathBuilder &m, Value x) {
  // Denormals are scaled up by 2^23 first.
  Value isTiny = m.compare(Compare::OLT, x, 1.17549435e-38);
  Value scaled = m.select(isTiny, m.mul(x, 8388608.0), x);
  Value lift = m.select(isTiny, m.constant(-23.0), m.constant(0.0));
  auto [exponent, f] = splitForLog(m, scaled);
  Value k = m.add(exponent, lift);
  Value s = m.div(f, m.add(f, m.constant(2.0)));
  Value z = m.mul(s, s);
  Value rest = m.mul(z, m.polynomial(z, {0.24279078841, 0.28498786688,
                                         0.40000972152, 0.66666662693}));
  Value half = m.mul(m.mul(f, f), 0.5);
  Value low =
      m.fma(k, m.constant(9.0580006145e-06), m.mul(s, m.add(half, rest)));
  Value result =
      m.fma(k, m.constant(6.9313812256e-01), m.add(m.sub(low, half), f));
  return fixLogEnds(m, x, result);
}

Value tilewright::log64(const MathBuilder &m, Value x) {
  // Every f32 is a normal f64; f64 denormals do not occur here.
  auto [k, f] = splitForLog(m, x);
  Value s = m.div(f, m.add(f, m.constant(2.0)));
  // 2 * atanh(s), |s| < 0.172.
  SmallVector<double> coefficients;
  for (int i = 17; i >= 1; i -= 2)
    coefficients.push_back(2.0 / i);
  Value series = m.mul(s, m.polynomial(m.mul(s, s), coefficients));
  return fixLogEnds(m, x, m.fma(k, m.constant(0.6931471805599453), series));
}

Value tilewright::expandLog2(const MathBuilder &m, Value x) {
  return logWide(m, x, 1.4426950408889634);
}

Value tilewright::expandLog10(const MathBuilder &m, Value x) {
  return logWide(m, x, 0.4342944819032518);
}

Value tilewright::expandLog1p(const MathBuilder &m, Value x) {
  MathBuilder wide = m.withWidth(64);
  Value v = wide.toWidth(x, 64);
  Value big = m.toWidth(log64(wide, wide.add(v, wide.constant(1.0))), 32);
  Value small = m.fma(m.mul(x, x), m.polynomial(x, {1.0 / 3, -0.5}), x);
  return m.select(m.compare(Compare::OLT, m.abs(x), 1e-3), small, big);
}

Value tilewright::expandPow(const MathBuilder &m, Value x, Value y) {
  MathBuilder wide = m.withWidth(64);
  Value base = wide.toWidth(x, 64), power = wide.toWidth(y, 64);
  Value exponent = wide.mul(power, log64(wide, wide.abs(base)));
  Value size = exp64(wide, exponent);
  // The sign of a negative base stays for odd powers; others have no value.
  Value whole = wide.compare(Compare::OEQ, wide.floor(power), power);
  Value half = wide.mul(power, 0.5);
  Value even = wide.compare(Compare::OEQ, wide.floor(half), half);
  Value odd = wide.select(even, size, wide.copysign(size, base));
  Value result = wide.select(whole, odd, size);
  Value none = wide.select(whole, result, wide.constant(kNaN));
  // Infinite powers are even whole numbers here, as IEEE 754 wants it.
  result = wide.select(wide.compare(Compare::OLT, base, 0.0), none, result);
  Value one = wide.constant(1.0);
  result = wide.select(wide.compare(Compare::OEQ, power, 0.0), one, result);
  result = wide.select(wide.compare(Compare::OEQ, base, 1.0), one, result);
  return m.toWidth(result, 32);
}

Value tilewright::expandCbrt(const MathBuilder &m, Value x) {
  MathBuilder wide = m.withWidth(64);
  Value v = wide.toWidth(x, 64);
  Value size = exp64(wide, wide.mul(log64(wide, wide.abs(v)), 1.0 / 3));
  return m.toWidth(wide.copysign(size, v), 32);
}

Value tilewright::expandAsinh(const MathBuilder &m, Value x) {
  MathBuilder wide = m.withWidth(64);
  Value t = wide.abs(wide.toWidth(x, 64));
  // log(1 + (t + t^2 / (1 + sqrt(1 + t^2)))), digits lost below 1e-3 only.
  Value square = wide.mul(t, t);
  Value root = wide.sqrt(wide.add(square, wide.constant(1.0)));
  Value big = m.toWidth(log64(wide, wide.add(t, root)), 32);
  Value size = m.abs(x);
  Value z = m.mul(x, x);
  Value small = m.fma(m.mul(z, -1.0 / 6), size, size);
  Value result = m.select(m.compare(Compare::OLT, size, 1e-3), small, big);
  return m.copysign(result, x);
}

Value tilewright::expandAcosh(const MathBuilder &m, Value x) {
  MathBuilder wide = m.withWidth(64);
  Value v = wide.toWidth(x, 64);
  Value one = wide.constant(1.0);
  Value product = wide.mul(wide.sub(v, one), wide.add(v, one));
  return m.toWidth(log64(wide, wide.add(v, wide.sqrt(product))), 32);
}

Value tilewright::expandAtanh(const MathBuilder &m, Value x) {
  MathBuilder wide = m.withWidth(64);
  Value v = wide.toWidth(x, 64);
  Value one = wide.constant(1.0);
  Value quotient = wide.div(wide.add(one, v), wide.sub(one, v));
  Value big = m.toWidth(wide.mul(log64(wide, quotient), 0.5), 32);
  Value small = m.fma(m.mul(m.mul(x, x), 1.0 / 3), x, x);
  return m.select(m.compare(Compare::OLT, m.abs(x), 1e-3), small, big);
}

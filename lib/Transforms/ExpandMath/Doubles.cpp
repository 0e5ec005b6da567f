//===- Doubles.cpp - exponentials and logarithms of f64 -------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// To a few units in the last place (2^-50): series as long as that takes, and
// pairs of numbers where an error would grow.
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/ExpandMath/Doubles.h"

#include "llvm/ADT/StringMap.h"

#include <limits>

using namespace mlir;
using namespace tilewright;
using Compare = MathBuilder::Compare;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kLn2 = 0.6931471805599453;
constexpr double kLn2Rest = 2.3190468138462996e-17;
constexpr double kLog2E = 1.4426950408889634;

/// Taylor's coefficients of exp from x^last down to x^first.
SmallVector<double> exponentialSeries(int first, int last) {
  SmallVector<double> coefficients;
  double factorial = 1.0;
  for (int i = 0; i <= last; ++i) {
    factorial *= i > 0 ? i : 1;
    if (i >= first)
      coefficients.insert(coefficients.begin(), 1.0 / factorial);
  }
  return coefficients;
}

/// p * 2^n for n from -1100 to 1100, rounded once where that is denormal.
Value scale(const MathBuilder &m, Value p, Value n) {
  Value half = m.shiftRight(n, 1);
  auto power = [&](Value exponent) {
    return m.fromBits(m.shiftLeft(m.addInt(exponent, m.integer(1023)), 52));
  };
  return m.mul(m.mul(p, power(half)), power(m.subInt(n, half)));
}

struct Rounded {
  Value number, integer;
};

/// By adding 1.5 * 2^52, which has a result for NaN too.
Rounded round(const MathBuilder &m, Value x, double factor) {
  Value magic = m.constant(6755399441055744.0);
  Value biased = m.fma(x, m.constant(factor), magic);
  return {m.sub(biased, magic), m.subInt(m.bits(biased), m.bits(magic))};
}

/// The sum of two numbers and of what its rounding lost.
struct Pair {
  Value high, low;
};

Pair addExactly(const MathBuilder &m, Value x, Value y) {
  Value sum = m.add(x, y), part = m.sub(sum, x);
  Value lost = m.add(m.sub(x, m.sub(sum, part)), m.sub(y, part));
  return {sum, lost};
}

/// log of a positive number (T. J. Dekker's sums; the series of atanh).
Pair logPair(const MathBuilder &m, Value x) {
  Value isTiny = m.compare(Compare::OLT, x, 2.2250738585072014e-308);
  Value scaled = m.select(isTiny, m.mul(x, 18014398509481984.0), x);
  Value lift = m.select(isTiny, m.constant(-54.0), m.constant(0.0));
  auto [exponent, f] = splitForLog(m, scaled);
  Value k = m.add(exponent, lift);
  // s = f / (2 + f), with the rest of the division.
  Pair t = addExactly(m, m.constant(2.0), f);
  Value s = m.div(f, t.high);
  Value rest = m.fma(m.neg(s), t.high, f);
  rest = m.div(m.fma(m.neg(s), t.low, rest), t.high);
  // 2 * atanh(s) = 2 s + s * (2/3 s^2 + ...), |s| < 0.172.
  SmallVector<double> coefficients;
  for (int i = 21; i >= 3; i -= 2)
    coefficients.push_back(2.0 / i);
  Value square = m.mul(s, s);
  Value tail = m.mul(m.mul(s, square), m.polynomial(square, coefficients));
  // ln(2) in two parts, the first with zeros at its end: k times it is exact.
  Pair sum = addExactly(m, m.mul(k, 0.69314718055989033), m.mul(s, 2.0));
  Value low = m.fma(k, m.constant(5.4979230187083712e-14), sum.low);
  low = m.add(m.fma(rest, m.constant(2.0), low), tail);
  return addExactly(m, sum.high, low);
}

Value log(const MathBuilder &m, Value x) {
  return fixLogEnds(m, x, logPair(m, x).high);
}

/// log(x) * (high + low).
Value logOfBase(const MathBuilder &m, Value x, double high, double low) {
  Pair pair = logPair(m, x);
  Value rest = m.mul(pair.high, low);
  rest = m.fma(pair.low, m.constant(high), rest);
  return fixLogEnds(m, x, m.fma(pair.high, m.constant(high), rest));
}

Value log2(const MathBuilder &m, Value x) {
  return logOfBase(m, x, kLog2E, 2.0355273740931033e-17);
}

Value log10(const MathBuilder &m, Value x) {
  return logOfBase(m, x, 0.4342944819032518, 1.098319650216765e-17);
}

/// log(1 + x), corrected for what 1 + x lost (W. Kahan).
Value log1p(const MathBuilder &m, Value x) {
  Value one = m.constant(1.0), sum = m.add(x, one);
  Value lost = m.div(x, m.sub(sum, one));
  Value result = m.mul(log(m, sum), lost);
  result = m.select(m.compare(Compare::OEQ, sum, 1.0), x, result);
  return m.select(m.compare(Compare::OEQ, x, kInfinity), x, result);
}

Value expm1(const MathBuilder &m, Value x) {
  Value small =
      m.fma(m.mul(x, x), m.polynomial(x, exponentialSeries(2, 17)), x);
  Value big = m.sub(expOfDouble(m, x), m.constant(1.0));
  return m.select(m.compare(Compare::OLT, m.abs(x), 0.5), small, big);
}

Value exp2(const MathBuilder &m, Value x) {
  x = m.clamp(x, -1080.0, 1030.0);
  Rounded n = round(m, x, 1.0);
  Value r = m.mul(m.sub(x, n.number), kLn2);
  return scale(m, m.polynomial(r, exponentialSeries(0, 13)), n.integer);
}

Value tanh(const MathBuilder &m, Value x) {
  Value size = m.clamp(m.abs(x), 0.0, 20.0); // beyond, it rounds to 1
  Value e = expm1(m, m.add(size, size));
  return m.copysign(m.div(e, m.add(e, m.constant(2.0))), x);
}

/// exp(size) / 2 where only its half has a number.
Value halfOfBig(const MathBuilder &m, Value size) {
  Value root = expOfDouble(m, m.mul(size, 0.5));
  return m.mul(m.mul(root, 0.5), root);
}

Value sinh(const MathBuilder &m, Value x) {
  Value size = m.abs(x), e = expm1(m, size);
  Value small = m.mul(m.add(e, m.div(e, m.add(e, m.constant(1.0)))), 0.5);
  Value isBig = m.compare(Compare::OGT, size, 40.0);
  return m.copysign(m.select(isBig, halfOfBig(m, size), small), x);
}

Value cosh(const MathBuilder &m, Value x) {
  Value size = m.abs(x), e = expOfDouble(m, size);
  Value small = m.mul(m.add(e, m.div(m.constant(1.0), e)), 0.5);
  Value isBig = m.compare(Compare::OGT, size, 40.0);
  return m.select(isBig, halfOfBig(m, size), small);
}

Value asinh(const MathBuilder &m, Value x) {
  Value t = m.abs(x), one = m.constant(1.0), square = m.mul(t, t);
  Value root = m.sqrt(m.add(square, one));
  Value small = log1p(m, m.add(t, m.div(square, m.add(one, root))));
  Value big = m.add(log(m, t), m.constant(kLn2));
  Value isBig = m.compare(Compare::OGT, t, 1e9);
  return m.copysign(m.select(isBig, big, small), x);
}

Value acosh(const MathBuilder &m, Value x) {
  Value t = m.sub(x, m.constant(1.0));
  Value root = m.sqrt(m.fma(t, t, m.add(t, t)));
  Value big = m.add(log(m, x), m.constant(kLn2));
  Value isBig = m.compare(Compare::OGT, x, 1e9);
  return m.select(isBig, big, log1p(m, m.add(t, root)));
}

Value atanh(const MathBuilder &m, Value x) {
  Value t = m.abs(x);
  Value quotient = m.div(m.add(t, t), m.sub(m.constant(1.0), t));
  return m.copysign(m.mul(log1p(m, quotient), 0.5), x);
}

Value cbrt(const MathBuilder &m, Value x) {
  Value size = m.abs(x);
  Value root = expOfDouble(m, m.mul(log(m, size), 1.0 / 3));
  Value square = m.mul(root, root);
  // A step of Newton.
  Value error = m.sub(root, m.div(size, square));
  root = m.fma(error, m.constant(-1.0 / 3), root);
  Value isEnd = m.compare(Compare::OEQ, m.mul(size, 2.0), size); // 0, infinity
  return m.copysign(m.select(isEnd, size, root), x);
}

/// |x|^y by exp(y * log|x|), that product in two parts.
Value powerOfSize(const MathBuilder &m, Value x, Value y) {
  Pair log = logPair(m, m.abs(x));
  Value ends = fixLogEnds(m, m.abs(x), log.high);
  Value high = m.mul(y, ends);
  Value low = m.fma(y, log.low, m.fma(y, log.high, m.neg(high)));
  Value isInside = m.compare(Compare::OLT, m.abs(high), 800.0);
  low = m.select(isInside, low, m.constant(0.0));
  Value power = expOfDouble(m, high);
  // A result that is infinite has no product with the rest.
  Value better = m.fma(power, low, power);
  Value isFinite = m.compare(Compare::OLT, power, kInfinity);
  return m.select(isFinite, better, power);
}

} // namespace

Value tilewright::expOfDouble(const MathBuilder &m, Value x) {
  x = m.clamp(x, -746.0, 710.0);
  Rounded n = round(m, x, kLog2E);
  Value r = m.fma(n.number, m.constant(-kLn2), x);
  r = m.fma(n.number, m.constant(-kLn2Rest), r);
  return scale(m, m.polynomial(r, exponentialSeries(0, 13)), n.integer);
}

Value tilewright::powOfDouble(const MathBuilder &m, Value x, Value y) {
  Value size = powerOfSize(m, x, y);
  // The sign of a negative base stays for odd powers; others have no value.
  Value whole = m.compare(Compare::OEQ, m.floor(y), y);
  Value half = m.mul(y, 0.5);
  Value even = m.compare(Compare::OEQ, m.floor(half), half);
  Value odd = m.select(even, size, m.copysign(size, x));
  Value result = m.select(whole, odd, size);
  // Infinite powers are even whole numbers here, as IEEE 754 wants it.
  Value none = m.select(whole, result, m.constant(kNaN));
  result = m.select(m.compare(Compare::OLT, x, 0.0), none, result);
  Value isMinusInfinity = m.compare(Compare::OEQ, x, -kInfinity);
  result = m.select(isMinusInfinity, m.select(whole, odd, size), result);
  Value one = m.constant(1.0);
  // |-1| to an infinite power is 1.
  Value isOne = m.compare(Compare::OEQ, m.abs(x), 1.0);
  Value isEndless = m.compare(Compare::OEQ, m.abs(y), kInfinity);
  result = m.select(isOne, m.select(isEndless, one, result), result);
  result = m.select(m.compare(Compare::OEQ, y, 0.0), one, result);
  return m.select(m.compare(Compare::OEQ, x, 1.0), one, result);
}

UnaryExpansion tilewright::findDoubleExpansion(StringRef name) {
  static const llvm::StringMap<UnaryExpansion> table = {
      {"math.exp", expOfDouble},   {"math.exp2", exp2},
      {"math.expm1", expm1},       {"math.log", log},
      {"math.log2", log2},         {"math.log10", log10},
      {"math.log1p", log1p},       {"math.tanh", tanh},
      {"math.sinh", sinh},         {"math.cosh", cosh},
      {"math.asinh", asinh},       {"math.acosh", acosh},
      {"math.atanh", atanh},       {"math.cbrt", cbrt},
      {"math.erf", erfOfDouble},   {"math.erfc", erfcOfDouble},
      {"math.sin", sinOfDouble},   {"math.cos", cosOfDouble},
      {"math.tan", tanOfDouble},   {"math.atan", atanOfDouble},
      {"math.asin", asinOfDouble}, {"math.acos", acosOfDouble},
  };
  return table.lookup(name);
}

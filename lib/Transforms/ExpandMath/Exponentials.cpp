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

/// x - n * ln(2), that constant in two parts, the first with zeros at its end.
Value subtractLn2(const MathBuilder &m, Value x, Value n) {
  Value r = m.fma(n, m.constant(-0.693359375), x);
  return m.fma(n, m.constant(2.12194440e-4), r);
}

/// (exp(r) - 1 - r) / r^2 for |r| <= ln(2)/2, f32.
constexpr double kExpTerms[] = {1.9875691500e-4, 1.3981999507e-3,
                                8.3334519073e-3, 4.1665795894e-2,
                                1.6666665459e-1, 5.0000001201e-1};

Value expTerms(const MathBuilder &m, Value r) {
  return m.polynomial(r, kExpTerms);
}

/// exp(r) for |r| <= ln(2)/2, f32.
Value expReduced(const MathBuilder &m, Value r) {
  Value one = m.constant(1.0);
  return m.fma(m.fma(expTerms(m, r), r, one), r, one);
}

/// exp(x) for x above -104, with one instruction for the power of two.
Value expScaled(const MathBuilder &m, Value x) {
  // Beyond 89 the result is infinite; NaN stays.
  x = m.select(m.compare(Compare::OGT, x, 89.0), m.constant(89.0), x);
  Value magic = m.constant(12582912.0);
  Value n = m.sub(m.fma(x, m.constant(kLog2E), magic), magic);
  return m.scaleByPower(expReduced(m, subtractLn2(m, x, n)), n);
}

/// 1.5 * 2^23, and the exponent's bias: a power of two is the low bits of a sum
/// with this, moved to where an exponent stands (`powerOf`).
constexpr double kMagic = 12582912.0, kBias = 127.0;

/// The power of two that `biased`, an integer n plus kMagic + kBias, names.
Value powerOf(const MathBuilder &m, Value biased) {
  return m.fromBits(m.shiftLeft(m.bits(biased), 23));
}

/// exp of an f32 on f64, for functions that lose digits afterwards.
Value expWide(const MathBuilder &wide, Value x) {
  return exp64(wide, wide.toWidth(x, 64));
}

} // namespace

/// exp(x) for x above -104 that need not be finite: 2^n as 2^h * 2^(n - h), h
/// half of n, so that results may be denormal or infinite. Both powers come
/// from sums whose low bits are exponents with their bias.
static Value expHalved(const MathBuilder &m, Value x) {
  x = m.select(m.compare(Compare::OGT, x, 89.0), m.constant(89.0), x);
  Value magic = m.constant(kMagic + 2 * kBias);
  Value whole = m.fma(x, m.constant(kLog2E), magic);
  Value half = m.fma(x, m.constant(kLog2E / 2), m.constant(kMagic + kBias));
  Value rest = m.fromBits(m.subInt(m.bits(whole), m.bits(half)));
  Value p = expReduced(m, subtractLn2(m, x, m.sub(whole, magic)));
  return m.mul(m.mul(p, powerOf(m, half)), powerOf(m, rest));
}

Value tilewright::expandExp(const MathBuilder &m, Value x) {
  // Below, the result is 0. Such lanes are frequent (masked attention) and must
  // not reach the scaling, where the underflow costs a hundred cycles.
  Value vanishes = m.compare(Compare::OLT, x, -103.9721);
  Value zero = m.constant(0.0);
  if (m.hasAVX512())
    return m.select(vanishes, zero, expScaled(m, x));
  Value usual = m.select(vanishes, zero, x);
  return m.select(vanishes, zero, expHalved(m, usual));
}

/// Beside 1, exp needs neither denormals nor exact zeros, so one power of two
/// does: half of it, that 2^128 is not beyond it, times twice the polynomial.
Value tilewright::expandOnePlusExp(const MathBuilder &m, Value x,
                                   bool negated) {
  // Above 89 the result is infinite, below -86 it is 1. NaN stays. The sign is
  // changed behind that, where multiply-adds do it for nothing.
  x = negated ? m.neg(m.clamp(x, -89.0, 86.0)) : m.clamp(x, -86.0, 89.0);
  Value magic = m.constant(kMagic + kBias - 1);
  Value biased = m.fma(x, m.constant(kLog2E), magic);
  Value r = subtractLn2(m, x, m.sub(biased, magic));
  SmallVector<double> twice(llvm::map_range(
      kExpTerms, [](double coefficient) { return 2 * coefficient; }));
  twice.append({2.0, 2.0});
  Value e = m.mul(m.polynomial(r, twice), powerOf(m, biased));
  return m.add(e, m.constant(1.0));
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

/// t / (t + 2) with t = exp(2|x|) - 1 = s p + (s - 1), where p = exp(r) - 1 of
/// the reduced argument and s a power of two: no digits are lost near 0, and
/// there is one formula for all x. As y + (t - y (t + 2)) / (t + 2) with y =
/// |x| near 0, where t - 2y is exact: so t and t + 2 are not rounded each (2.4
/// ulp) but what little lies beside y is. Within 1.7 ulp.
Value tilewright::expandTanh(const MathBuilder &m, Value x) {
  Value sign = m.andInt(m.bits(x), m.integer(-2147483648));
  Value size = m.abs(x);
  // From here on the result rounds to 1. NaN stays.
  size = m.select(m.compare(Compare::OGT, size, 9.5), m.constant(9.5), size);
  Value magic = m.constant(kMagic + kBias);
  Value biased = m.fma(size, m.constant(2 * kLog2E), magic);
  Value r = subtractLn2(m, m.add(size, size), m.sub(biased, magic));
  Value p = m.fma(m.mul(r, r), expTerms(m, r), r);
  Value s = powerOf(m, biased);
  Value t = m.fma(s, p, m.sub(s, m.constant(1.0)));
  Value half = m.constant(0.5);
  Value y = m.select(m.compare(Compare::OLT, size, 0.5), size, half);
  Value rest = m.fma(m.neg(y), t, m.fma(m.constant(-2.0), y, t));
  Value result = m.add(y, m.div(rest, m.add(t, m.constant(2.0))));
  return m.fromBits(m.orInt(m.bits(result), sign)); // it has none of its own
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

/// erf around the points k / 3.75: a0 + t + t * (a1 + t * (a2 + ...)), with the
/// highest coefficient first. Fitted for the smallest relative error; the sum
/// of all roundings is below 1.5 ulp.
static constexpr double kErfTables[][16] = {
    {0.110849097, 0.077074565, -0.00155749032, -0.0592997596, -0.065648213,
     -0.0362427272, -0.00450169761, 0.0111420341, 0.0123539483, 0.00790038891,
     0.00369980326, 0.00136274181, 0.000407882413, 0.000100916484,
     2.08756101e-05, 3.63670347e-06},
    {0.000312441349, 0.132551581, 0.182244033, 0.136493236, 0.0468310751,
     -0.0232174136, -0.0486826003, -0.0419268608, -0.0257973634, -0.0116956914,
     -0.0041962699, -0.00174280559, -0.000242576512, -0.000283641333,
     0.000237764616, 0.000382384518},
    {-0.376143366, -0.300515592, -0.12202663, 0.0555197932, 0.15377818,
     0.162458748, 0.11979486, 0.0688579902, 0.0321676396, 0.0124683995,
     0.00405797269, 0.00111736811, 0.000261632726, 5.22863011e-05,
     8.94235927e-06, 1.31153968e-06},
    {3.08081923e-07, -0.280243397, -0.452808052, -0.475995839, -0.385793,
     -0.25428021, -0.139572799, -0.0646150783, -0.0254106112, -0.00854204781,
     -0.00246302364, -0.000601513602, -0.000131429479, -2.00605464e-05,
     -8.24760264e-06, -7.36802076e-06},
    {0.128379166, 0.0509255156, -0.150971189, -0.405014247, -0.638320088,
     -0.809288919, -0.912770987, -0.965391755, -0.988089442, -0.996444345,
     -0.999079227, -0.999793172, -0.999959707, -0.999993205, -0.999998987,
     -0.999999881},
    {0, 0.293918282, 0.54929924, 0.742101014, 0.868571997, 0.940653563,
     0.9763484, 0.991706133, 0.997447014, 0.999311507, 0.999837577, 0.999966502,
     0.99999398, 0.999999046, 0.999999881, 1},
};

/// erf from tables: sixteen intervals up to 4.1, where it rounds to 1.
static Value erfOfTables(const MathBuilder &m, Value size) {
  Value end = m.constant(4.1);
  size = m.select(m.compare(Compare::OGT, size, end), end, size);
  Value magic = m.constant(12582912.0);
  Value biased = m.fma(size, m.constant(3.75), magic);
  Value interval = m.bits(biased);
  Value t = m.fma(m.sub(biased, magic), m.constant(-1.0 / 3.75), size);
  ArrayRef tables(kErfTables);
  Value p = m.lookup(tables.front(), interval);
  for (const auto &table : tables.drop_front().drop_back())
    p = m.fma(p, t, m.lookup(table, interval));
  return m.add(m.fma(p, t, t), m.lookup(tables.back(), interval));
}

Value tilewright::expandErf(const MathBuilder &m, Value x) {
  Value t = m.abs(x);
  if (m.hasAVX512())
    return m.copysign(erfOfTables(m, t), x);
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

//===- SmallFloats.cpp - conversions of small floats ----------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/ExpandFloats/SmallFloats.h"

#include "mlir/IR/TypeUtilities.h"

#include <cmath>

using namespace mlir;
using namespace tilewright;

using Int = arith::CmpIPredicate;
using Float = arith::CmpFPredicate;

static constexpr unsigned mantissa32 = 23;
static constexpr int bias32 = 127;
static constexpr int64_t infinity32 = 0x7F800000;
static constexpr int64_t nan32 = 0x7FC00000;

int64_t SmallFloat::largest() const {
  int64_t all = (int64_t(1) << (width() - 1)) - 1;
  if (overflow == Overflow::Infinity) // the last exponent is not for numbers
    return ((((int64_t(1) << exponentBits) - 1)) << mantissaBits) - 1;
  return overflow == Overflow::NaN && !unsignedZero ? all - 1 : all;
}

std::optional<int64_t> SmallFloat::nan() const {
  if (overflow == Overflow::Saturate)
    return std::nullopt;
  if (overflow == Overflow::Infinity)
    return largest() + 1 + (int64_t(1) << (mantissaBits - 1));
  return largest() + 1;
}

std::optional<SmallFloat> tilewright::getSmallFloat(Type element) {
  if (isa<Float16Type>(element))
    return SmallFloat{5, 10, 15, Overflow::Infinity};
  if (isa<BFloat16Type>(element))
    return SmallFloat{8, 7, 127, Overflow::Infinity};
  if (isa<Float8E5M2Type>(element))
    return SmallFloat{5, 2, 15, Overflow::Infinity};
  if (isa<Float8E4M3FNType>(element))
    return SmallFloat{4, 3, 7, Overflow::NaN};
  if (isa<Float8E4M3FNUZType>(element))
    return SmallFloat{4, 3, 8, Overflow::NaN, /*unsignedZero=*/true};
  if (isa<Float8E5M2FNUZType>(element))
    return SmallFloat{5, 2, 16, Overflow::NaN, /*unsignedZero=*/true};
  if (isa<Float6E2M3FNType>(element))
    return SmallFloat{2, 3, 1, Overflow::Saturate};
  if (isa<Float6E3M2FNType>(element))
    return SmallFloat{3, 2, 3, Overflow::Saturate};
  if (isa<Float4E2M1FNType>(element))
    return SmallFloat{2, 1, 1, Overflow::Saturate};
  return std::nullopt;
}

Type FloatBits::withElement(Type element) const {
  if (auto shaped = dyn_cast<VectorType>(like))
    return shaped.clone(element);
  return element;
}

static Value splat(OpBuilder &b, Location loc, Type type, TypedAttr value) {
  if (auto shaped = dyn_cast<VectorType>(type))
    value = DenseElementsAttr::get(shaped, Attribute(value));
  return arith::ConstantOp::create(b, loc, value);
}

Value FloatBits::word(int64_t value) const {
  Type type = withElement(b.getI32Type());
  return splat(b, loc, type, b.getI32IntegerAttr(int32_t(uint32_t(value))));
}
Value FloatBits::number(double value) const {
  return splat(b, loc, withElement(b.getF32Type()),
               b.getF32FloatAttr(float(value)));
}
Value FloatBits::wordOf(Value x) const {
  unsigned width = getElementTypeOrSelf(x.getType()).getIntOrFloatBitWidth();
  Type code = withElement(b.getIntegerType(width));
  Value bits = arith::BitcastOp::create(b, loc, code, x);
  if (width == 32)
    return bits;
  return arith::ExtUIOp::create(b, loc, withElement(b.getI32Type()), bits);
}
Value FloatBits::floatOf(Value bits) const {
  return arith::BitcastOp::create(b, loc, withElement(b.getF32Type()), bits);
}
Value FloatBits::codeOf(Value bits, unsigned width, Type element) const {
  Type code = withElement(b.getIntegerType(width));
  Value low = arith::TruncIOp::create(b, loc, code, bits);
  return arith::BitcastOp::create(b, loc, withElement(element), low);
}
Value FloatBits::add(Value x, Value y) const {
  return arith::AddIOp::create(b, loc, x, y);
}
Value FloatBits::bitAnd(Value x, int64_t mask) const {
  return arith::AndIOp::create(b, loc, x, word(mask));
}
Value FloatBits::bitOr(Value x, Value y) const {
  return arith::OrIOp::create(b, loc, x, y);
}
Value FloatBits::shiftLeft(Value x, unsigned count) const {
  return count ? arith::ShLIOp::create(b, loc, x, word(count)) : x;
}
Value FloatBits::shiftRight(Value x, unsigned count) const {
  return count ? arith::ShRUIOp::create(b, loc, x, word(count)) : x;
}
Value FloatBits::select(Value condition, Value x, Value y) const {
  return arith::SelectOp::create(b, loc, condition, x, y);
}
Value FloatBits::compare(Int predicate, Value x, int64_t y) const {
  return arith::CmpIOp::create(b, loc, predicate, x, word(y));
}

//===----------------------------------------------------------------------===//
// To f32
//===----------------------------------------------------------------------===//

Value FloatBits::extend(Value x, const SmallFloat &format) const {
  unsigned top = format.width() - 1, m = format.mantissaBits;
  Value code = wordOf(x);
  if (format.bias == bias32) // bf16 is the upper half of an f32
    return floatOf(shiftLeft(code, 32 - format.width()));
  Value magnitude = bitAnd(code, (int64_t(1) << top) - 1);
  Value sign = shiftLeft(shiftRight(code, top), 31);
  Value normal = add(shiftLeft(magnitude, mantissa32 - m),
                     word(int64_t(bias32 - format.bias) << mantissa32));
  // Below the smallest normal number a code counts units of the last place.
  Value count =
      arith::UIToFPOp::create(b, loc, withElement(b.getF32Type()), magnitude);
  Value unit = number(std::ldexp(1.0, 1 - format.bias - int(m)));
  Value small = arith::MulFOp::create(b, loc, count, unit);
  Type integers = withElement(b.getI32Type());
  Value isSmall = compare(Int::ult, magnitude, int64_t(1) << m);
  Value bits = select(
      isSmall, arith::BitcastOp::create(b, loc, integers, small), normal);
  return floatOf(bitOr(extendSpecial(code, magnitude, bits, format), sign));
}

Value FloatBits::extendSpecial(Value code, Value magnitude, Value bits,
                               const SmallFloat &format) const {
  switch (format.overflow) {
  case Overflow::Saturate:
    return bits;
  case Overflow::Infinity: {
    Value payload = shiftLeft(magnitude, mantissa32 - format.mantissaBits);
    Value special = bitOr(payload, word(infinity32));
    return select(compare(Int::ugt, magnitude, format.largest()), special,
                  bits);
  }
  case Overflow::NaN:
    return select(
        compare(Int::eq, format.unsignedZero ? code : magnitude, *format.nan()),
        word(nan32), bits);
  }
  llvm_unreachable("all cases are above");
}

Value FloatBits::extendE8M0(Value x) const {
  Value code = wordOf(x);
  Value bits = shiftLeft(code, mantissa32);
  bits = select(compare(Int::eq, code, 0), word(0x400000), bits);
  return floatOf(select(compare(Int::eq, code, 0xFF), word(nan32), bits));
}

//===----------------------------------------------------------------------===//
// From f32
//===----------------------------------------------------------------------===//

/// The code of a magnitude (the bits of a positive f32), too large ones as what
/// the format's bits continue to.
Value FloatBits::roundMagnitude(Value magnitude,
                                const SmallFloat &format) const {
  unsigned cut = mantissa32 - format.mantissaBits;
  int64_t shift = int64_t(bias32 - format.bias) << mantissa32;
  Value moved = add(magnitude, word(-shift));
  Value last = bitAnd(shiftRight(moved, cut), 1);
  Value half = word((int64_t(1) << (cut - 1)) - 1);
  Value normal = shiftRight(add(add(moved, half), last), cut);
  // The sum with a number whose last place is the format's smallest number
  // makes the processor round; what the mantissa gains is the code.
  float big = std::ldexp(1.0f, 1 - format.bias - int(format.mantissaBits) +
                                   int(mantissa32));
  Value sum = arith::AddFOp::create(b, loc, floatOf(magnitude), number(big));
  int64_t base = int64_t(llvm::bit_cast<uint32_t>(big));
  Value small = add(wordOf(sum), word(-base));
  return select(
      compare(Int::ult, magnitude, shift + (int64_t(1) << mantissa32)), small,
      normal);
}

/// The code with its sign, and what becomes of numbers that are too large.
Value FloatBits::withSpecial(Value rounded, Value magnitude, Value sign,
                             const SmallFloat &format) const {
  unsigned top = format.width() - 1;
  Value tooLarge = compare(Int::ugt, rounded, format.largest());
  Value isNan = compare(Int::ugt, magnitude, infinity32);
  if (format.unsignedZero) {
    Value signedCode = bitOr(rounded, shiftLeft(sign, top));
    Value code = select(compare(Int::eq, rounded, 0), rounded, signedCode);
    return select(arith::OrIOp::create(b, loc, tooLarge, isNan),
                  word(*format.nan()), code);
  }
  int64_t limit =
      format.largest() + (format.overflow == Overflow::Saturate ? 0 : 1);
  Value code = select(tooLarge, word(limit), rounded);
  code = select(isNan, word(format.nan().value_or(0)), code);
  if (format.overflow == Overflow::Saturate)
    sign = select(isNan, arith::XOrIOp::create(b, loc, sign, word(1)), sign);
  return bitOr(code, shiftLeft(sign, top));
}

/// The code of an f32 in a format that is its upper part: a carry out of the
/// mantissa raises the exponent, up to infinity, and leaves the sign alone.
Value FloatBits::roundUpperPart(Value x, const SmallFloat &format) const {
  unsigned cut = mantissa32 - format.mantissaBits;
  Value bits = wordOf(x);
  Value last = bitAnd(shiftRight(bits, cut), 1);
  Value half = word((int64_t(1) << (cut - 1)) - 1);
  Value rounded = shiftRight(add(add(bits, half), last), cut);
  Value isNan = arith::CmpFOp::create(b, loc, Float::UNO, x, x);
  int64_t sign = int64_t(1) << (format.width() - 1);
  Value nan = bitOr(bitAnd(shiftRight(bits, cut), sign), word(*format.nan()));
  return select(isNan, nan, rounded);
}

Value FloatBits::truncate(Value x, const SmallFloat &format,
                          Type element) const {
  if (format.bias == bias32)
    return codeOf(roundUpperPart(x, format), format.width(), element);
  Value bits = wordOf(x);
  Value magnitude = bitAnd(bits, 0x7FFFFFFF);
  Value sign = shiftRight(bits, 31);
  Value rounded = roundMagnitude(magnitude, format);
  return codeOf(withSpecial(rounded, magnitude, sign, format), format.width(),
                element);
}

Value FloatBits::truncateE8M0(Value x, Type element) const {
  Value bits = wordOf(x);
  Value code = shiftRight(add(bits, word(0x400000)), mantissa32);
  // Below 2^-126 (code 1) f32 has no leading one. What is not 2^-127 goes up.
  Value small = select(compare(Int::ugt, bits, 0x400000), word(1), word(0));
  code = select(compare(Int::ult, bits, 0x800000), small, code);
  // Zero and everything from infinity on, which the sign bit exceeds.
  Value none = compare(Int::uge, add(bits, word(-1)), infinity32 - 1);
  return codeOf(select(none, word(0xFF), code), 8, element);
}

Value FloatBits::roundToOdd(Value x) const {
  Type f32 = withElement(b.getF32Type());
  Value near = arith::TruncFOp::create(b, loc, f32, x);
  Value back = arith::ExtFOp::create(b, loc, x.getType(), near);
  Value bits = wordOf(near);
  Value inexact = arith::CmpFOp::create(b, loc, Float::ONE, back, x);
  Value even = compare(Int::eq, bitAnd(bits, 1), 0);
  // One of the two neighbours is odd; where it is the other one, go there.
  Value positive = compare(Int::sge, bits, 0);
  Value larger = arith::CmpFOp::create(b, loc, Float::OGT, x, back);
  Value away = arith::CmpIOp::create(b, loc, Int::eq, larger, positive);
  Value moved = add(bits, select(away, word(1), word(-1)));
  Value move = arith::AndIOp::create(b, loc, inexact, even);
  return floatOf(select(move, moved, bits));
}

//===- MathBuilder.cpp - arithmetic on one type of numbers ----------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/ExpandMath/MathBuilder.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace tilewright;

static Type withElement(Type like, Type element) {
  if (auto shaped = dyn_cast<VectorType>(like))
    return shaped.clone(element);
  return element;
}

unsigned MathBuilder::getWidth() const {
  return getElementTypeOrSelf(type).getIntOrFloatBitWidth();
}

Type MathBuilder::integerType() const {
  return withElement(type, b.getIntegerType(getWidth()));
}

Value MathBuilder::splat(Type numbers, Attribute value) const {
  if (auto shaped = dyn_cast<VectorType>(numbers))
    value = DenseElementsAttr::get(shaped, value);
  return arith::ConstantOp::create(b, loc, cast<TypedAttr>(value));
}

MathBuilder MathBuilder::withWidth(unsigned bits) const {
  Type element = bits == 64 ? Type(b.getF64Type()) : Type(b.getF32Type());
  return MathBuilder(b, loc, withElement(type, element), avx512);
}

Value MathBuilder::toWidth(Value x, unsigned bits) const {
  Type target = withWidth(bits).type;
  unsigned from = getElementTypeOrSelf(x.getType()).getIntOrFloatBitWidth();
  if (from == bits)
    return x;
  if (from < bits)
    return arith::ExtFOp::create(b, loc, target, x);
  return arith::TruncFOp::create(b, loc, target, x);
}

Value MathBuilder::constant(double value) const {
  return splat(type, b.getFloatAttr(getElementTypeOrSelf(type), value));
}

Value MathBuilder::integer(int64_t value) const {
  return splat(integerType(),
               b.getIntegerAttr(b.getIntegerType(getWidth()), value));
}

Value MathBuilder::add(Value x, Value y) const {
  return arith::AddFOp::create(b, loc, x, y);
}
Value MathBuilder::sub(Value x, Value y) const {
  return arith::SubFOp::create(b, loc, x, y);
}
Value MathBuilder::mul(Value x, Value y) const {
  return arith::MulFOp::create(b, loc, x, y);
}
Value MathBuilder::div(Value x, Value y) const {
  return arith::DivFOp::create(b, loc, x, y);
}
Value MathBuilder::fma(Value x, Value y, Value z) const {
  return math::FmaOp::create(b, loc, x, y, z);
}
Value MathBuilder::neg(Value x) const {
  return arith::NegFOp::create(b, loc, x);
}
Value MathBuilder::abs(Value x) const {
  return math::AbsFOp::create(b, loc, x);
}
Value MathBuilder::copysign(Value magnitude, Value sign) const {
  return math::CopySignOp::create(b, loc, magnitude, sign);
}
Value MathBuilder::roundeven(Value x) const {
  return math::RoundEvenOp::create(b, loc, x);
}
Value MathBuilder::floor(Value x) const {
  return math::FloorOp::create(b, loc, x);
}

Value MathBuilder::sqrt(Value x) const {
  return math::SqrtOp::create(b, loc, x);
}

Value MathBuilder::compare(Compare predicate, Value x, Value y) const {
  return arith::CmpFOp::create(b, loc, predicate, x, y);
}

Value MathBuilder::select(Value condition, Value x, Value y) const {
  return arith::SelectOp::create(b, loc, condition, x, y);
}

Value MathBuilder::polynomial(Value x, ArrayRef<double> coefficients) const {
  Value sum = constant(coefficients.front());
  for (double coefficient : coefficients.drop_front())
    sum = fma(sum, x, constant(coefficient));
  return sum;
}

Value MathBuilder::clamp(Value x, double low, double high) const {
  // Ordered comparisons keep NaN; x86 has one instruction for each line.
  x = select(compare(Compare::OGT, x, high), constant(high), x);
  return select(compare(Compare::OLT, x, low), constant(low), x);
}

Value MathBuilder::bits(Value x) const {
  return arith::BitcastOp::create(b, loc, integerType(), x);
}
Value MathBuilder::fromBits(Value x) const {
  return arith::BitcastOp::create(b, loc, type, x);
}
Value MathBuilder::addInt(Value x, Value y) const {
  return arith::AddIOp::create(b, loc, x, y);
}
Value MathBuilder::subInt(Value x, Value y) const {
  return arith::SubIOp::create(b, loc, x, y);
}
Value MathBuilder::andInt(Value x, Value y) const {
  return arith::AndIOp::create(b, loc, x, y);
}
Value MathBuilder::orInt(Value x, Value y) const {
  return arith::OrIOp::create(b, loc, x, y);
}
Value MathBuilder::shiftLeft(Value x, int64_t count) const {
  return arith::ShLIOp::create(b, loc, x, integer(count));
}
Value MathBuilder::shiftRight(Value x, int64_t count) const {
  return arith::ShRSIOp::create(b, loc, x, integer(count));
}
Value MathBuilder::intToFloat(Value x) const {
  return arith::SIToFPOp::create(b, loc, type, x);
}
Value MathBuilder::isZeroInt(Value x) const {
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, x, integer(0));
}

// A register of AVX-512 has that many f32.
static constexpr int64_t kLanes = 16;

bool MathBuilder::hasAVX512() const {
  if (!avx512 || getWidth() != 32)
    return false;
  auto vector = dyn_cast<VectorType>(type);
  return !vector || (vector.getRank() == 1 && !vector.isScalable() &&
                     vector.getDimSize(0) <= kLanes);
}

Value MathBuilder::toSixteen(Value x) const {
  auto vector = dyn_cast<VectorType>(x.getType());
  if (!vector) {
    auto wide = VectorType::get(kLanes, x.getType());
    return vector::BroadcastOp::create(b, loc, wide, x);
  }
  int64_t lanes = vector.getDimSize(0);
  if (lanes == kLanes)
    return x;
  SmallVector<int64_t> from;
  for (int64_t lane = 0; lane < kLanes; ++lane)
    from.push_back(lane % lanes);
  return vector::ShuffleOp::create(b, loc, x, x, from);
}

Value MathBuilder::fromSixteen(Value x) const {
  auto vector = dyn_cast<VectorType>(type);
  if (!vector)
    return vector::ExtractOp::create(b, loc, x, 0);
  if (vector.getDimSize(0) == kLanes)
    return x;
  auto first = llvm::to_vector(llvm::seq<int64_t>(0, vector.getDimSize(0)));
  return vector::ShuffleOp::create(b, loc, x, x, first);
}

Value MathBuilder::intrinsic(StringRef name, ValueRange arguments) const {
  auto result = VectorType::get(kLanes, b.getF32Type());
  auto call = LLVM::CallIntrinsicOp::create(b, loc, result,
                                            b.getStringAttr(name), arguments);
  return fromSixteen(call.getResults());
}

Value MathBuilder::scaleByPower(Value x, Value n) const {
  x = toSixteen(x);
  auto all = b.getIntegerAttr(b.getIntegerType(kLanes), -1);
  auto rounding = b.getI32IntegerAttr(4); // as the environment says
  return intrinsic("llvm.x86.avx512.mask.scalef.ps.512",
                   {x, toSixteen(n), x, arith::ConstantOp::create(b, loc, all),
                    arith::ConstantOp::create(b, loc, rounding)});
}

Value MathBuilder::lookup(ArrayRef<double> table, Value bits) const {
  assert(table.size() == kLanes && "one register of entries");
  SmallVector<float> entries(table.begin(), table.end());
  auto row = VectorType::get(kLanes, b.getF32Type());
  Value values = arith::ConstantOp::create(
      b, loc, DenseElementsAttr::get(row, ArrayRef<float>(entries)));
  return intrinsic("llvm.x86.avx512.permvar.sf.512", {values, toSixteen(bits)});
}

//===- TileComputeFolds.cpp - folds of computing operations ---------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDetail.h"

#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/APSInt.h"

using namespace mlir;
using namespace tilewright::tile;

/// `kind` of a value with itself is that value.
static bool isIdempotent(ReduceKind kind) {
  return kind != ReduceKind::add && kind != ReduceKind::mul &&
         kind != ReduceKind::xor_;
}

OpFoldResult ReduceOp::fold(FoldAdaptor adaptor) {
  TileType source = getSource().getType();
  bool combinesNothing = llvm::all_of(
      getDims(), [&](int64_t dim) { return source.getDimSize(dim) == 1; });
  if (combinesNothing && source == getResult().getType())
    return getSource();
  if (Attribute value = shared::splatValue(adaptor.getSource()))
    if (combinesNothing || isIdempotent(getKind()))
      return shared::splatOf(getResult().getType(), value);
  return {};
}

OpFoldResult ScanOp::fold(FoldAdaptor adaptor) {
  if (getExclusive())
    return {};
  if (getSource().getType().getDimSize(getDim()) == 1)
    return getSource();
  if (isIdempotent(getKind()) && shared::splatValue(adaptor.getSource()))
    return adaptor.getSource();
  return {};
}

OpFoldResult SelectOp::fold(FoldAdaptor adaptor) {
  if (getTrueValue() == getFalseValue())
    return getTrueValue();
  if (auto condition = dyn_cast_or_null<BoolAttr>(
          shared::splatValue(adaptor.getCondition())))
    return condition.getValue() ? getTrueValue() : getFalseValue();
  return {};
}

//===----------------------------------------------------------------------===//
// ConvertOp
//===----------------------------------------------------------------------===//

/// An integer or index as bits; `index` counts as 64 bits wide.
static APInt convertInteger(const APInt &value, Type from, Type to,
                            bool isUnsigned) {
  if (to.isInteger(1))
    return APInt(1, !value.isZero());
  unsigned width = isa<IndexType>(to) ? 64 : to.getIntOrFloatBitWidth();
  bool zeroExtend = isUnsigned || from.isInteger(1);
  return zeroExtend ? value.zextOrTrunc(width) : value.sextOrTrunc(width);
}

static Attribute convertFromInteger(IntegerAttr attr, Type to,
                                    bool isUnsigned) {
  const APInt &value = attr.getValue();
  auto target = dyn_cast<FloatType>(to);
  if (!target)
    return IntegerAttr::get(
        to, convertInteger(value, attr.getType(), to, isUnsigned));
  APFloat result = APFloat::getZero(target.getFloatSemantics());
  bool isSigned = !isUnsigned && !attr.getType().isInteger(1);
  result.convertFromAPInt(value, isSigned, APFloat::rmNearestTiesToEven);
  return FloatAttr::get(to, result);
}

/// Null where the target cannot hold the value: that is left to run time.
static Attribute convertFromFloat(FloatAttr attr, Type to, bool isUnsigned) {
  APFloat value = attr.getValue();
  bool lossy = false;
  if (auto target = dyn_cast<FloatType>(to)) {
    value.convert(target.getFloatSemantics(), APFloat::rmNearestTiesToEven,
                  &lossy);
    return FloatAttr::get(to, value);
  }
  if (to.isInteger(1))
    return IntegerAttr::get(to, APInt(1, value.isNaN() || !value.isZero()));
  unsigned width = isa<IndexType>(to) ? 64 : to.getIntOrFloatBitWidth();
  APSInt integer(width, isUnsigned);
  if (value.convertToInteger(integer, APFloat::rmTowardZero, &lossy) &
      APFloat::opInvalidOp)
    return {};
  return IntegerAttr::get(to, APInt(integer));
}

/// Every value of float type `narrow` is one of `wide`.
static bool holdsExactly(Type wide, Type narrow) {
  auto big = dyn_cast<FloatType>(wide), small = dyn_cast<FloatType>(narrow);
  return big && small &&
         APFloat::isRepresentableBy(small.getFloatSemantics(),
                                    big.getFloatSemantics());
}

OpFoldResult ConvertOp::fold(FoldAdaptor adaptor) {
  if (getSource().getType() == getResult().getType())
    return getSource();
  if (auto inner = getSource().getDefiningOp<ConvertOp>())
    if (inner.getSource().getType() == getResult().getType() &&
        holdsExactly(getSource().getType().getElementType(),
                     getResult().getType().getElementType()))
      return inner.getSource();
  Attribute value = shared::splatValue(adaptor.getSource());
  Type to = getResult().getType().getElementType();
  Attribute converted;
  if (auto integer = dyn_cast_or_null<IntegerAttr>(value))
    converted = convertFromInteger(integer, to, getIsUnsigned());
  else if (auto number = dyn_cast_or_null<FloatAttr>(value))
    converted = convertFromFloat(number, to, getIsUnsigned());
  return converted ? shared::splatOf(getResult().getType(), converted)
                   : OpFoldResult();
}

//===- FractalRegroupOps.cpp - lists cut, merged and combined ------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Fractal/FractalDetail.h"

using namespace mlir;
using namespace tilewright::fractal;
using namespace tilewright::fractal::shared;

//===----------------------------------------------------------------------===//
// InterleaveOp and DeinterleaveOp
//===----------------------------------------------------------------------===//

/// The groups as far as their lengths are known.
static ArrayType groupsOf(ArrayType source, int64_t by) {
  int64_t length = source.getLength();
  if (!ArrayType::isKnown(length))
    return nested(ShapedType::kDynamic, ArrayType::kRagged, source);
  int64_t groups = std::min(by, length);
  bool isEven = groups > 0 && length % groups == 0;
  return nested(groups, isEven ? length / groups : ArrayType::kRagged, source);
}

LogicalResult InterleaveOp::verify() {
  // interleave_c1
  auto by = static_cast<int64_t>(getBy());
  if (by <= 0)
    return emitOpError("makes ") << by << " groups: it must be 1 or more";
  return verifyFits(*this, "result", groupsOf(getSource().getType(), by),
                    getResult().getType()); // interleave_c2
}

AffineMap InterleaveOp::getAccessMap() {
  AffineExpr group = getAffineDimExpr(0, getContext());
  AffineExpr place = getAffineDimExpr(1, getContext());
  return AffineMap::get(2, 0, place * int64_t(getBy()) + group);
}

/// flatten_c1, flatten_c2, deinterleave_c1, deinterleave_c2
template <typename MergeOp> static LogicalResult verifyMerged(MergeOp op) {
  ArrayType source = op.getSource().getType();
  if (source.getDepth() < 2)
    return op.emitOpError("merges two levels, but ")
           << source << " has one only";
  return verifyFits(op, "result", merged(source), op.getResult().getType());
}

LogicalResult DeinterleaveOp::verify() { return verifyMerged(*this); }

AffineMap DeinterleaveOp::getAccessMap() {
  MLIRContext *context = getContext();
  AffineExpr place = getAffineDimExpr(0, context);
  AffineExpr groups = getAffineSymbolExpr(0, context);
  return AffineMap::get(1, 1, {place % groups, place.floorDiv(groups)},
                        context);
}

//===----------------------------------------------------------------------===//
// FlattenOp and SplitOp
//===----------------------------------------------------------------------===//

LogicalResult FlattenOp::verify() { return verifyMerged(*this); }

AffineMap FlattenOp::getAccessMap() {
  int64_t inner = getSource().getType().getLengths()[1];
  // Lists without an element are read nowhere, but have no quotient.
  if (!ArrayType::isKnown(inner) || inner == 0)
    return {};
  AffineExpr place = getAffineDimExpr(0, getContext());
  return AffineMap::get(1, 0, {place.floorDiv(inner), place % inner},
                        getContext());
}

LogicalResult SplitOp::verify() {
  // split_c1
  auto into = static_cast<int64_t>(getInto());
  ArrayType source = getSource().getType();
  int64_t length = source.getLength();
  if (into <= 0)
    return emitOpError("makes ") << into << " lists: it must be 1 or more";
  if (ArrayType::isKnown(length) && length % into != 0)
    return emitOpError("cannot cut ")
           << length << " elements into " << into << " lists of equal length";
  int64_t inner = ArrayType::isKnown(length) ? length / into : length;
  return verifyFits(*this, "result", nested(into, inner, source),
                    getResult().getType()); // split_c2
}

AffineMap SplitOp::getAccessMap() {
  AffineExpr list = getAffineDimExpr(0, getContext());
  AffineExpr place = getAffineDimExpr(1, getContext());
  AffineExpr length = getAffineSymbolExpr(0, getContext());
  return AffineMap::get(2, 1,
                        list * length.floorDiv(int64_t(getInto())) + place);
}

//===----------------------------------------------------------------------===//
// ProductOp
//===----------------------------------------------------------------------===//

LogicalResult ProductOp::verify() {
  ArrayType lhs = getLhs().getType(), rhs = getRhs().getType();
  int64_t outer = lhs.getLength(), inner = rhs.getLength();
  // product_c1
  if (failed(verifyFits(*this, "first result", nested(outer, inner, lhs),
                        getLefts().getType())))
    return failure();
  return verifyFits(*this, "second result", nested(outer, inner, rhs),
                    getRights().getType());
}

//===----------------------------------------------------------------------===//
// JoinOp
//===----------------------------------------------------------------------===//

/// `type`, with what `other` knows of its inner levels besides.
static ArrayType refined(ArrayType type, ArrayType other) {
  SmallVector<int64_t> lengths(type.getLengths());
  for (auto [length, known] :
       llvm::drop_begin(llvm::zip_equal(lengths, other.getLengths())))
    if (ShapedType::isDynamic(length) && ArrayType::isKnown(known))
      length = known;
  return ArrayType::get(lengths, type.getLeaf());
}

LogicalResult JoinOp::verify() {
  // join_c1
  if (getSources().empty())
    return emitOpError("joins no array: it needs at least one");
  ArrayType result = getResult().getType();
  ArrayType known = result.withLength(ShapedType::kDynamic);
  int64_t sum = 0;
  for (Value source : getSources()) {
    auto type = cast<ArrayType>(source.getType());
    if (failed(verifyFits(*this, "operand", known, type))) // join_c3
      return failure();
    known = refined(known, type);
    bool isKnown =
        ArrayType::isKnown(sum) && ArrayType::isKnown(type.getLength());
    sum =
        isKnown ? multiplyAdd(sum, 1, type.getLength()) : ShapedType::kDynamic;
  }
  return verifyFits(*this, "result", result.withLength(sum),
                    result); // join_c2
}

//===----------------------------------------------------------------------===//
// GatherOp
//===----------------------------------------------------------------------===//

LogicalResult GatherOp::verify() {
  int64_t length = cast<ShapedType>(getIndices().getType()).getDimSize(0);
  return verifyFits(*this, "result", getSource().getType().withLength(length),
                    getResult().getType()); // gather_c1
}

//===----------------------------------------------------------------------===//
// ScatterOp
//===----------------------------------------------------------------------===//

LogicalResult ScatterOp::verify() {
  ArrayType dest = getDest().getType();
  int64_t length = cast<ShapedType>(getIndices().getType()).getDimSize(0);
  if (failed(verifyFits(*this, "source", dest.withLength(length),
                        getSource().getType()))) // scatter_c1
    return failure();
  return verifyFits(*this, "result", dest, getResult().getType()); // scatter_c2
}

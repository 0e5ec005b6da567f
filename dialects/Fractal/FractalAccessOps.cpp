//===- FractalAccessOps.cpp - an element, or other elements --------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Fractal/FractalDetail.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;
using namespace tilewright::fractal;
using namespace tilewright::fractal::shared;

//===----------------------------------------------------------------------===//
// AtOp
//===----------------------------------------------------------------------===//

LogicalResult AtOp::verify() {
  return verifyFits(*this, "result", getSource().getType().getElementType(),
                    getResult().getType()); // at_c1
}

AffineMap AtOp::getAccessMap() {
  return AffineMap::get(0, 1, getAffineSymbolExpr(0, getContext()));
}

//===----------------------------------------------------------------------===//
// SliceOp
//===----------------------------------------------------------------------===//

static OpFoldResult mixed(MLIRContext *context, ArrayRef<int64_t> numbers,
                          ValueRange operands) {
  return getMixedValues(numbers, operands, context).front();
}

OpFoldResult SliceOp::getMixedOffset() {
  return mixed(getContext(), getStaticOffsets(), getOffsets());
}

OpFoldResult SliceOp::getMixedSize() {
  return mixed(getContext(), getStaticSizes(), getSizes());
}

/// slice_c3
static LogicalResult verifyElement(SliceOp op, int64_t index) {
  ArrayType source = op.getSource().getType();
  bool isBehind =
      ArrayType::isKnown(source.getLength()) && index >= source.getLength();
  if (index >= 0 && !isBehind)
    return success();
  return op.emitOpError("reads element ")
         << index << " of " << source
         << ": elements are counted from 0 to the length, less one";
}

/// slice_c3
static LogicalResult verifyInside(SliceOp op, int64_t offset, int64_t size) {
  if (!ShapedType::isDynamic(size) && size < 0)
    return op.emitOpError("has a size of ") << size << ": it must be 0 or more";
  if (size == 0 || ShapedType::isDynamic(offset))
    return success();
  int64_t last = offset;
  if (!ShapedType::isDynamic(size))
    last = multiplyAdd(offset, op.getStride(), size - 1);
  return failure(failed(verifyElement(op, offset)) ||
                 failed(verifyElement(op, last)));
}

LogicalResult SliceOp::verify() {
  // slice_c1
  if (getStaticOffsets().size() != 1 || getStaticSizes().size() != 1)
    return emitOpError("needs one offset and one size");
  if (failed(verifyListOfOperandsOrIntegers(*this, "offset", 1,
                                            getStaticOffsets(), getOffsets())))
    return failure();
  if (failed(verifyListOfOperandsOrIntegers(*this, "size", 1, getStaticSizes(),
                                            getSizes())))
    return failure();
  // slice_c2
  if (getStride() == 0)
    return emitOpError("has a stride of 0: fractal.repeat gives one element "
                       "several times");
  int64_t size = getStaticSizes().front();
  if (failed(verifyInside(*this, getStaticOffsets().front(), size))) // slice_c3
    return failure();
  return verifyFits(*this, "result", getSource().getType().withLength(size),
                    getResult().getType()); // slice_c4
}

AffineMap SliceOp::getAccessMap() {
  MLIRContext *context = getContext();
  AffineExpr place = getAffineDimExpr(0, context) * int64_t(getStride());
  place = getOffsets().empty() ? place + getStaticOffsets().front()
                               : place + getAffineSymbolExpr(0, context);
  return AffineMap::get(1, getOffsets().size() + getSizes().size(), place);
}

//===----------------------------------------------------------------------===//
// ReverseOp
//===----------------------------------------------------------------------===//

LogicalResult ReverseOp::verify() {
  return verifyFits(*this, "result", getSource().getType(),
                    getResult().getType()); // reverse_c1
}

AffineMap ReverseOp::getAccessMap() {
  AffineExpr length = getAffineSymbolExpr(0, getContext());
  return AffineMap::get(1, 1, length - 1 - getAffineDimExpr(0, getContext()));
}

//===----------------------------------------------------------------------===//
// ShiftOp
//===----------------------------------------------------------------------===//

/// A place in the source as a map; with `wrap`, modulo the source's length.
static AffineMap placed(AffineExpr place, unsigned dims, bool wrap) {
  if (wrap)
    place = place % getAffineSymbolExpr(0, place.getContext());
  return AffineMap::get(dims, wrap ? 1 : 0, place);
}

/// shift_c2, window_c4
static LogicalResult verifyFill(Operation *op, ArrayType source, Value fill) {
  if (!fill)
    return success();
  return verifyFits(op, "fill", source.getElementType(), fill.getType());
}

LogicalResult ShiftOp::verify() {
  // shift_c1
  if (static_cast<bool>(getFill()) == getWrap())
    return emitOpError("needs either 'fill' or 'wrap', which say what stands "
                       "where the list ends");
  if (failed(verifyFill(*this, getSource().getType(), getFill()))) // shift_c2
    return failure();
  return verifyFits(*this, "result", getSource().getType(),
                    getResult().getType()); // shift_c3
}

AffineMap ShiftOp::getAccessMap() {
  return placed(getAffineDimExpr(0, getContext()) + int64_t(getBy()), 1,
                getWrap());
}

//===----------------------------------------------------------------------===//
// WindowOp
//===----------------------------------------------------------------------===//

int64_t WindowOp::getNumWindows() {
  int64_t length = getSource().getType().getLength();
  if (!ArrayType::isKnown(length))
    return ShapedType::kDynamic;
  int64_t padded =
      multiplyAdd(multiplyAdd(length, 1, getPadding()[0]), 1, getPadding()[1]);
  int64_t span = multiplyAdd(1, getDilation(), int64_t(getSize()) - 1);
  return padded < span ? 0 : (padded - span) / int64_t(getStride()) + 1;
}

/// window_c2, window_c3
static LogicalResult verifyPadding(WindowOp op) {
  ArrayRef<int64_t> padding = op.getPadding();
  auto isNegative = [](int64_t number) { return number < 0; };
  if (padding.size() != 2 || llvm::any_of(padding, isNegative))
    return op.emitOpError("padding must be two numbers that are not negative: "
                          "before the first and after the last element");
  if (op.getFill() && op.getWrap())
    return op.emitOpError("cannot have both 'fill' and 'wrap'");
  bool isPadded = padding[0] != 0 || padding[1] != 0;
  if (isPadded && !op.getFill() && !op.getWrap())
    return op.emitOpError("is padded: it needs 'fill' or 'wrap', which say "
                          "what stands there");
  return success();
}

LogicalResult WindowOp::verify() {
  int64_t numbers[] = {static_cast<int64_t>(getSize()),
                       static_cast<int64_t>(getStride()),
                       static_cast<int64_t>(getDilation())};
  if (*llvm::min_element(numbers) <= 0) // window_c1
    return emitOpError("size, stride and dilation must be 1 or more");
  if (failed(verifyPadding(*this)))
    return failure();
  ArrayType source = getSource().getType();
  if (failed(verifyFill(*this, source, getFill()))) // window_c4
    return failure();
  return verifyFits(*this, "result",
                    nested(getNumWindows(), int64_t(getSize()), source),
                    getResult().getType()); // window_c5
}

AffineMap WindowOp::getAccessMap() {
  AffineExpr window = getAffineDimExpr(0, getContext());
  AffineExpr element = getAffineDimExpr(1, getContext());
  AffineExpr place = window * int64_t(getStride()) +
                     element * int64_t(getDilation()) - getPadding()[0];
  return placed(place, 2, getWrap());
}

//===----------------------------------------------------------------------===//
// RepeatOp
//===----------------------------------------------------------------------===//

LogicalResult RepeatOp::verify() {
  std::optional<uint64_t> times = getTimes();
  // repeat_c1
  if (static_cast<bool>(getCount()) == times.has_value())
    return emitOpError("needs either an operand or 'times', which say how "
                       "often the element stands there");
  if (times && int64_t(*times) < 0)
    return emitOpError("gives an element ")
           << int64_t(*times) << " times: it must be 0 or more";
  int64_t length = times ? int64_t(*times) : ShapedType::kDynamic;
  return verifyFits(*this, "result",
                    ArrayType::listOf(length, getSource().getType()),
                    getResult().getType()); // repeat_c2
}

AffineMap RepeatOp::getAccessMap() {
  return AffineMap::get(1, getCount() ? 1 : 0, getContext());
}

//===----------------------------------------------------------------------===//
// ReadOp
//===----------------------------------------------------------------------===//

LogicalResult ReadOp::verify() {
  AffineMap map = getMap();
  ArrayType source = getSource().getType(), result = getResult().getType();
  int64_t read = map.getNumResults(), levels = map.getNumDims();
  // read_c1
  if (read == 0 || levels == 0 || map.getNumSymbols() != 0 ||
      read > source.getDepth())
    return emitOpError("has a map that does not fit: ")
           << getMapAttr()
           << " must have a dimension and a result at least, no "
           << "symbols, and at most " << source.getDepth() << " results";
  auto known = [](int64_t length) { return ArrayType::isKnown(length); };
  // read_c2
  if (levels > result.getDepth() ||
      !llvm::all_of(source.getLengths().take_front(read),
                    [](int64_t length) { return length > 0; }) ||
      !llvm::all_of(result.getLengths().take_front(levels), known))
    return emitOpError("needs known lengths of what it reads, not zero, and of "
                       "its result: ")
           << source << " gives " << result;
  SmallVector<int64_t> lengths(result.getLengths().take_front(levels));
  llvm::append_range(lengths, source.getLengths().drop_front(read));
  return verifyFits(*this, "result", ArrayType::get(lengths, source.getLeaf()),
                    result); // read_c3
}

AffineMap ReadOp::getAccessMap() { return getMap(); }

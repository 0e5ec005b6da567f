//===- FractalComputeOps.cpp - functions over lists ----------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Fractal/FractalDetail.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace tilewright::fractal;
using namespace tilewright::fractal::shared;

//===----------------------------------------------------------------------===//
// What the verifiers share
//===----------------------------------------------------------------------===//

/// The first length that is known; ShapedType::kDynamic where none is.
static int64_t lengthOf(TypeRange arrays) {
  for (Type type : arrays)
    if (int64_t length = cast<ArrayType>(type).getLength();
        ArrayType::isKnown(length))
      return length;
  return ShapedType::kDynamic;
}

/// map_c1, scan_c1, fold_c1, reduce_c1: the lists.
static LogicalResult verifyInStep(Operation *op, TypeRange arrays) {
  if (arrays.empty())
    return op->emitOpError("reads no array: it needs at least one");
  int64_t common = lengthOf(arrays);
  for (Type type : arrays)
    if (int64_t length = cast<ArrayType>(type).getLength();
        ArrayType::isKnown(length) && length != common)
      return op->emitOpError("reads lists of ")
             << common << " and " << length
             << " elements in step: they must have equal lengths";
  return success();
}

/// Whether the block's arguments are of these types. `layout` says what they
/// stand for.
static LogicalResult verifyArguments(Operation *op, TypeRange expected,
                                     StringRef layout) {
  TypeRange given(op->getRegion(0).getArgumentTypes());
  if (given.size() != expected.size())
    return op->emitOpError("has ") << given.size() << " block arguments, needs "
                                   << expected.size() << ": " << layout;
  for (auto [number, types] :
       llvm::enumerate(llvm::zip_equal(given, expected))) {
    auto [actual, type] = types;
    if (actual != type)
      return op->emitOpError("block argument ")
             << number << " has type " << actual << ", needs " << type << ": "
             << layout;
  }
  return success();
}

/// The element types of arrays, behind `known`.
static SmallVector<Type> andElements(TypeRange known, TypeRange arrays) {
  SmallVector<Type> types(known);
  for (Type type : arrays)
    types.push_back(cast<ArrayType>(type).getElementType());
  return types;
}

/// Whether `given` (yielded values, results: `what`) are of the states' types.
static LogicalResult verifyStates(Operation *op, StringRef what,
                                  TypeRange given, TypeRange states) {
  if (given.size() != states.size())
    return op->emitOpError(what)
           << " are " << given.size() << " values, its inits " << states.size();
  for (auto [number, types] : llvm::enumerate(llvm::zip_equal(given, states))) {
    auto [actual, state] = types;
    if (actual != state)
      return op->emitOpError(what)
             << " must have the types of the inits: number " << number
             << " is of type " << actual << ", not " << state;
  }
  return success();
}

/// Whether there is one result per element type, a list of such elements.
static LogicalResult verifyLists(Operation *op, int64_t length,
                                 TypeRange elements) {
  if (elements.size() != op->getNumResults())
    return op->emitOpError("has ")
           << op->getNumResults() << " results, its body makes lists of "
           << elements.size() << " values";
  for (auto [result, element] : llvm::zip_equal(op->getResultTypes(), elements))
    if (failed(verifyFits(op, "result", ArrayType::listOf(length, element),
                          result)))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// MapOp
//===----------------------------------------------------------------------===//

int64_t MapOp::getLength() { return lengthOf(getArrays().getTypes()); }

LogicalResult MapOp::verify() {
  TypeRange arrays = getArrays().getTypes();
  if (failed(verifyInStep(*this, arrays))) // map_c1
    return failure();
  return verifyArguments(*this, andElements({}, arrays),
                         "an element of each array"); // map_c2
}

LogicalResult MapOp::verifyRegions() {
  return verifyLists(*this, getLength(),
                     getYield().getValues().getTypes()); // map_c3
}

//===----------------------------------------------------------------------===//
// ScanOp and FoldOp
//===----------------------------------------------------------------------===//

template <typename RecurrenceOp>
static LogicalResult verifyRecurrence(RecurrenceOp op) {
  // scan_c1, fold_c1
  if (op.getInits().empty())
    return op.emitOpError("has no state: it needs at least one");
  TypeRange arrays = op.getArrays().getTypes();
  if (failed(verifyInStep(op, arrays)))
    return failure();
  // scan_c2, fold_c2
  return verifyArguments(op, andElements(op.getInits().getTypes(), arrays),
                         "the states, then an element of each array");
}

int64_t ScanOp::getLength() { return lengthOf(getArrays().getTypes()); }

LogicalResult ScanOp::verify() { return verifyRecurrence(*this); }

LogicalResult ScanOp::verifyRegions() {
  TypeRange states = getInits().getTypes();
  if (failed(verifyStates(*this, "the yielded values",
                          getYield().getValues().getTypes(),
                          states))) // scan_c3
    return failure();
  return verifyLists(*this, getLength(), states); // scan_c4
}

int64_t FoldOp::getLength() { return lengthOf(getArrays().getTypes()); }

LogicalResult FoldOp::verify() {
  if (failed(verifyRecurrence(*this)))
    return failure();
  return verifyStates(*this, "the results", getResultTypes(),
                      getInits().getTypes()); // fold_c4
}

LogicalResult FoldOp::verifyRegions() {
  return verifyStates(*this, "the yielded values",
                      getYield().getValues().getTypes(),
                      getInits().getTypes()); // fold_c3
}

//===----------------------------------------------------------------------===//
// ReduceOp
//===----------------------------------------------------------------------===//

int64_t ReduceOp::getLength() { return lengthOf(getArrays().getTypes()); }

LogicalResult ReduceOp::verify() {
  TypeRange arrays = getArrays().getTypes(), inits = getInits().getTypes();
  // reduce_c1
  if (failed(verifyInStep(*this, arrays)))
    return failure();
  if (arrays.size() != inits.size())
    return emitOpError("needs one init per array: there are ")
           << arrays.size() << " arrays and " << inits.size() << " inits";
  // reduce_c2
  for (auto [array, init] : llvm::zip_equal(andElements({}, arrays), inits))
    if (array != init)
      return emitOpError("combines elements of type ")
             << array << ": an init of type " << init << " is none";
  SmallVector<Type> both(inits);
  llvm::append_range(both, inits);
  if (failed(verifyArguments(*this, both,
                             "all lefts, then all rights"))) // reduce_c3
    return failure();
  return verifyStates(*this, "the results", getResultTypes(),
                      inits); // reduce_c5
}

LogicalResult ReduceOp::verifyRegions() {
  return verifyStates(*this, "the yielded values",
                      getYield().getValues().getTypes(),
                      getInits().getTypes()); // reduce_c4
}

//===----------------------------------------------------------------------===//
// FilterOp
//===----------------------------------------------------------------------===//

int64_t FilterOp::getLength() { return getArray().getType().getLength(); }

LogicalResult FilterOp::verify() {
  ArrayType array = getArray().getType();
  if (failed(verifyArguments(*this, array.getElementType(),
                             "an element of the array"))) // filter_c1
    return failure();
  ArrayType result = getResult().getType();
  ArrayType some = array.withLength(ShapedType::kDynamic);
  if (failed(verifyFits(*this, "result", some, result))) // filter_c3
    return failure();
  if (ArrayType::isKnown(result.getLength())) // filter_c3
    return emitOpError("keeps a number of elements that only a run knows: "
                       "write '?' as the first length of ")
           << result;
  return success();
}

LogicalResult FilterOp::verifyRegions() {
  TypeRange given = getYield().getValues().getTypes();
  auto flag = RankedTensorType::get({}, IntegerType::get(getContext(), 1));
  if (given.size() == 1 && given.front() == flag) // filter_c2
    return success();
  return emitOpError("must yield one value of type ")
         << flag << ", which says whether to keep the element, not (" << given
         << ')';
}

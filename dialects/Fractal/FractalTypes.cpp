//===- FractalTypes.cpp - nested lists of tensors ------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Fractal/FractalDetail.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

#include <algorithm>
#include <limits>

using namespace mlir;
using namespace tilewright::fractal;

#define GET_TYPEDEF_CLASSES
#include "dialects/Fractal/FractalTypes.cpp.inc"

void FractalDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/Fractal/FractalTypes.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// ArrayType
//===----------------------------------------------------------------------===//

Type ArrayType::getElementType() const {
  if (getDepth() == 1)
    return getLeaf();
  SmallVector<int64_t> lengths(getLengths().drop_front());
  if (lengths.front() == kRagged)
    lengths.front() = ShapedType::kDynamic;
  return get(lengths, getLeaf());
}

ArrayType ArrayType::withLength(int64_t length) const {
  SmallVector<int64_t> lengths(getLengths());
  lengths.front() = length;
  return get(lengths, getLeaf());
}

bool ArrayType::isCompatibleWith(ArrayType other) const {
  return getLeaf() == other.getLeaf() && getDepth() == other.getDepth() &&
         llvm::all_of(llvm::zip_equal(getLengths(), other.getLengths()),
                      [](auto lengths) {
                        auto [one, two] = lengths;
                        return !isKnown(one) || !isKnown(two) || one == two;
                      });
}

ArrayType ArrayType::listOf(int64_t length, Type element) {
  auto array = dyn_cast<ArrayType>(element);
  if (!array)
    return get({length}, cast<RankedTensorType>(element));
  SmallVector<int64_t> lengths{length};
  llvm::append_range(lengths, array.getLengths());
  return get(lengths, array.getLeaf());
}

LogicalResult ArrayType::verify(function_ref<InFlightDiagnostic()> emitError,
                                ArrayRef<int64_t> lengths,
                                RankedTensorType leaf) {
  // array_c1
  if (lengths.empty())
    return emitError() << "an array has at least one level: write a leaf alone "
                          "as "
                       << leaf;
  // array_c2
  for (int64_t length : lengths)
    if (!isKnown(length) && length != ShapedType::kDynamic && length != kRagged)
      return emitError() << "a length is a number from 0 on, '?' or 'ragged', "
                            "not "
                         << length;
  // array_c3
  if (lengths.front() == kRagged)
    return emitError() << "the first level is one list, which cannot be "
                          "'ragged': write '?' where its length is not known";
  // array_c4
  if (!leaf || !leaf.hasStaticShape())
    return emitError() << "a leaf is a tensor of static shape, not " << leaf;
  return success();
}

/// `4`, `?` or `ragged`.
static ParseResult parseLength(AsmParser &parser, int64_t &length) {
  if (succeeded(parser.parseOptionalQuestion())) {
    length = ShapedType::kDynamic;
    return success();
  }
  if (succeeded(parser.parseOptionalKeyword("ragged"))) {
    length = ArrayType::kRagged;
    return success();
  }
  OptionalParseResult number = parser.parseOptionalInteger(length);
  if (number.has_value())
    return *number;
  return parser.emitError(parser.getCurrentLocation(),
                          "expected a length: a number, '?' or 'ragged'");
}

Type ArrayType::parse(AsmParser &parser) {
  SmallVector<int64_t> lengths;
  RankedTensorType leaf;
  SMLoc loc = parser.getCurrentLocation();
  auto parseOne = [&] { return parseLength(parser, lengths.emplace_back()); };
  if (parser.parseLess() ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseOne) ||
      parser.parseKeyword("of") || parser.parseType(leaf) ||
      parser.parseGreater())
    return {};
  auto emitError = [&] { return parser.emitError(loc); };
  if (failed(verify(emitError, lengths, leaf)))
    return {};
  return get(lengths, leaf);
}

void ArrayType::print(AsmPrinter &printer) const {
  printer << "<[";
  llvm::interleaveComma(getLengths(), printer, [&](int64_t length) {
    if (isKnown(length))
      printer << length;
    else
      printer << (length == kRagged ? "ragged" : "?");
  });
  printer << "] of " << getLeaf() << '>';
}

//===----------------------------------------------------------------------===//
// Elements, and lengths
//===----------------------------------------------------------------------===//

bool tilewright::fractal::isElement(Type type) {
  auto leaf = dyn_cast<RankedTensorType>(type);
  return isa<ArrayType>(type) || (leaf && leaf.hasStaticShape());
}

bool tilewright::fractal::areCompatible(Type one, Type other) {
  auto array = dyn_cast<ArrayType>(one);
  auto second = dyn_cast<ArrayType>(other);
  return array && second ? array.isCompatibleWith(second) : one == other;
}

LogicalResult shared::verifyFits(Operation *op, StringRef what, Type expected,
                                 Type actual) {
  if (areCompatible(expected, actual))
    return success();
  return op->emitOpError(what)
         << " must fit " << expected << ", but is " << actual;
}

int64_t shared::multiplyAdd(int64_t a, int64_t b, int64_t c) {
  using Limits = std::numeric_limits<int64_t>;
  __int128 exact = a + static_cast<__int128>(b) * c;
  return std::clamp<__int128>(exact, Limits::min(), Limits::max());
}

ArrayType shared::merged(ArrayType type) {
  ArrayRef<int64_t> lengths = type.getLengths();
  SmallVector<int64_t> fewer(lengths.drop_front());
  bool isKnown = llvm::all_of(lengths.take_front(2), ArrayType::isKnown);
  fewer.front() =
      isKnown ? multiplyAdd(0, lengths[0], lengths[1]) : ShapedType::kDynamic;
  return ArrayType::get(fewer, type.getLeaf());
}

ArrayType shared::nested(int64_t outer, int64_t inner, ArrayType type) {
  SmallVector<int64_t> more{outer, inner};
  llvm::append_range(more, type.getLengths().drop_front());
  return ArrayType::get(more, type.getLeaf());
}

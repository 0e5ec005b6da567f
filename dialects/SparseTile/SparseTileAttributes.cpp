//===- SparseTileAttributes.cpp - formats and encodings -------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/SparseTile/SparseTile.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tilewright::sparse_tile;

using EmitError = function_ref<InFlightDiagnostic()>;

#define GET_ATTRDEF_CLASSES
#include "dialects/SparseTile/SparseTileAttributes.cpp.inc"

void SparseTileDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/SparseTile/SparseTileAttributes.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// FormatAttr
//===----------------------------------------------------------------------===//

static bool isStorage(Type type) {
  if (auto integer = dyn_cast<IntegerType>(type))
    return integer.isSignless() &&
           (integer.getWidth() == 2 || integer.getWidth() == 4 ||
            integer.getWidth() == 8);
  return isa<Float8E4M3FNType, Float8E5M2Type>(type);
}

LogicalResult FormatAttr::verify(EmitError emitError, Type storage,
                                 bool isUnsigned, Type scales, Type zeroPoints,
                                 ArrayRef<int64_t> group) {
  if (!isStorage(storage)) // format_c1
    return emitError() << "a format stores i2, i4, i8, f8E4M3FN or f8E5M2, not "
                       << storage;
  if (scales ? !isa<FloatType>(scales) : isa<FloatType>(storage)) // format_c2
    return emitError() << "scales are floats, and of integers alone there may "
                       << "be none";
  if (isa<FloatType>(storage) && (isUnsigned || zeroPoints)) // format_c3
    return emitError() << "codes of type " << storage
                       << " are neither unsigned nor have zero points";
  if (zeroPoints && !isa<IntegerType, FloatType>(zeroPoints)) // format_c3
    return emitError() << "zero points are numbers, not " << zeroPoints;
  for (int64_t size : group)
    if (size <= 0 && !ShapedType::isDynamic(size)) // format_c4
      return emitError() << "a group has positive sizes or `?`, not " << size;
  return success();
}

Type FormatAttr::getHeldType(Type type) {
  auto integer = dyn_cast<IntegerType>(type);
  return integer && integer.getWidth() < 8
             ? IntegerType::get(type.getContext(), 8)
             : type;
}

SmallVector<int64_t> FormatAttr::getScaleShape(ArrayRef<int64_t> shape) const {
  SmallVector<int64_t> result(shape.size(), 1);
  for (auto [dim, size] : llvm::enumerate(getGroup())) {
    if (ShapedType::isDynamic(size))
      continue;
    result[dim] = ShapedType::isDynamic(shape[dim])
                      ? shape[dim]
                      : llvm::divideCeilSigned(shape[dim], size);
  }
  return result;
}

/// `<i8, unsigned, scales = f32, zero_points = i8, group = [1, ?]>`
Attribute FormatAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  Type storage, scales, zeroPoints;
  bool isUnsigned = false;
  SmallVector<int64_t> group;
  auto parseGroup = [&]() -> ParseResult {
    int64_t &size = group.emplace_back(ShapedType::kDynamic);
    return succeeded(parser.parseOptionalQuestion())
               ? success()
               : parser.parseInteger(size);
  };
  if (parser.parseLess() || parser.parseType(storage))
    return {};
  while (succeeded(parser.parseOptionalComma())) {
    StringRef name;
    if (parser.parseKeyword(&name))
      return {};
    if (name == "unsigned") {
      isUnsigned = true;
      continue;
    }
    if (parser.parseEqual())
      return {};
    ParseResult parsed =
        name == "scales"        ? parser.parseType(scales)
        : name == "zero_points" ? parser.parseType(zeroPoints)
        : name == "group"
            ? parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                             parseGroup)
            : ParseResult(parser.emitError(parser.getCurrentLocation())
                          << "a format has scales, zero_points and group, no "
                          << name);
    if (parsed)
      return {};
  }
  if (parser.parseGreater())
    return {};
  return getChecked([&] { return parser.emitError(loc); }, parser.getContext(),
                    storage, isUnsigned, scales, zeroPoints, group);
}

void FormatAttr::print(AsmPrinter &printer) const {
  printer << '<' << getStorage() << (getIsUnsigned() ? ", unsigned" : "");
  if (getScales())
    printer << ", scales = " << getScales();
  if (getZeroPoints())
    printer << ", zero_points = " << getZeroPoints();
  if (!getGroup().empty()) {
    printer << ", group = [";
    llvm::interleaveComma(getGroup(), printer, [&](int64_t size) {
      if (ShapedType::isDynamic(size))
        printer << '?';
      else
        printer << size;
    });
    printer << ']';
  }
  printer << '>';
}

//===----------------------------------------------------------------------===//
// TesaAttr
//===----------------------------------------------------------------------===//

PatternInterface TesaAttr::getPattern(int64_t region) const {
  return cast<PatternInterface>(getPatterns()[region]);
}

FormatAttr TesaAttr::getFormat(int64_t region) const {
  return cast_if_present<FormatAttr>(getFormats()[region]);
}

LogicalResult TesaAttr::verify(EmitError emitError,
                               ArrayRef<Attribute> patterns,
                               ArrayRef<Attribute> formats) {
  if (patterns.empty() || patterns.size() != formats.size()) // tesa_c1
    return emitError() << "an encoding has a region at least, and a format or "
                       << "none for each";
  for (auto [pattern, format] : llvm::zip_equal(patterns, formats)) {
    if (!isa<PatternInterface>(pattern)) // tesa_c1
      return emitError() << "a region has a pattern, not " << pattern;
    if (format && !isa<FormatAttr>(format)) // tesa_c1
      return emitError() << format << " is no format";
  }
  return success();
}

LogicalResult TesaAttr::verifyEncoding(ArrayRef<int64_t> shape,
                                       Type elementType,
                                       EmitError emitError) const {
  for (int64_t region = 0; region < getNumRegions(); ++region) {
    if (failed(getPattern(region).verifyShape(emitError, shape))) // tesa_c2
      return failure();
    FormatAttr format = getFormat(region);
    if (!format)
      continue;
    if (format.getScales() ? !isa<FloatType>(elementType)
                           : !elementType.isSignlessInteger(32)) // tesa_c2
      return emitError() << "codes stand for floats, or without scales for "
                         << "i32, not for " << elementType;
    if (!format.getGroup().empty() &&
        format.getGroup().size() != shape.size()) // format_c4
      return emitError() << "a group of " << format.getGroup().size()
                         << " sizes on a tensor of rank " << shape.size();
  }
  return success();
}

/// Encodings repeat from type to type: text is short with names for them.
OpAsmAliasResult TesaAttr::getAlias(raw_ostream &os) const {
  os << "tesa";
  return OpAsmAliasResult::OverridableAlias;
}

SmallVector<Type> TesaAttr::getParts(RankedTensorType type) {
  auto tesa = cast<TesaAttr>(type.getEncoding());
  SmallVector<Type> parts;
  for (int64_t region = 0; region < tesa.getNumRegions(); ++region) {
    FormatAttr format = tesa.getFormat(region);
    Type values = format ? FormatAttr::getHeldType(format.getStorage())
                         : type.getElementType();
    llvm::append_range(
        parts, tesa.getPattern(region).getParts(type.getShape(), values));
    if (!format)
      continue;
    SmallVector<int64_t> scales = format.getScaleShape(type.getShape());
    if (format.getScales())
      parts.push_back(RankedTensorType::get(scales, format.getScales()));
    if (format.getZeroPoints())
      parts.push_back(RankedTensorType::get(
          scales, FormatAttr::getHeldType(format.getZeroPoints())));
  }
  return parts;
}

/// One of the dialect's attributes without the prefix `#sparse_tile.`.
static ParseResult parseOwn(AsmParser &parser, Attribute &result) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef mnemonic;
  OptionalParseResult parsed =
      generatedAttributeParser(parser, &mnemonic, {}, result);
  if (parsed.has_value())
    return *parsed;
  return parser.emitError(loc)
         << "sparse_tile has no pattern or format '" << mnemonic << "'";
}

/// `<nm<2 : 4, axis = 0> : format<i8, scales = f32>, mask>`
Attribute TesaAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<Attribute> patterns, formats;
  auto parseRegion = [&]() -> ParseResult {
    if (parseOwn(parser, patterns.emplace_back()))
      return failure();
    Attribute &format = formats.emplace_back();
    return succeeded(parser.parseOptionalColon()) ? parseOwn(parser, format)
                                                  : success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater,
                                     parseRegion))
    return {};
  return getChecked([&] { return parser.emitError(loc); }, parser.getContext(),
                    patterns, formats);
}

void TesaAttr::print(AsmPrinter &printer) const {
  auto printRegion = [&](auto region) {
    auto [pattern, format] = region;
    (void)generatedAttributePrinter(pattern, printer);
    if (!format)
      return;
    printer << " : ";
    (void)generatedAttributePrinter(format, printer);
  };
  printer << '<';
  llvm::interleaveComma(llvm::zip_equal(getPatterns(), getFormats()), printer,
                        printRegion);
  printer << '>';
}

//===- TileAttributes.cpp - attributes of the tile dialect ----------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDetail.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tilewright::tile;

#include "dialects/Tile/TileEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Tile/TileAttributes.cpp.inc"

void TileDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Tile/TileAttributes.cpp.inc"
      >();
}

bool shared::isPermutation(ArrayRef<int64_t> values) {
  SmallVector<bool> seen(values.size());
  for (int64_t value : values) {
    if (value < 0 || value >= static_cast<int64_t>(values.size()) ||
        seen[value])
      return false;
    seen[value] = true;
  }
  return true;
}

Attribute shared::getCheckedDistributed(AsmParser &parser, SMLoc loc,
                                        int64_t rank,
                                        ArrayRef<int64_t> registers,
                                        ArrayRef<int64_t> lanes,
                                        ArrayRef<int64_t> warps) {
  return DistributedAttr::getChecked([&] { return parser.emitError(loc); },
                                     parser.getContext(), rank, registers,
                                     lanes, warps);
}

//===----------------------------------------------------------------------===//
// Text: `name = value` lists
//===----------------------------------------------------------------------===//

static ParseResult parseSizes(AsmParser &parser,
                              SmallVectorImpl<int64_t> &sizes) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
    int64_t &size = sizes.emplace_back(ShapedType::kDynamic);
    return succeeded(parser.parseOptionalQuestion())
               ? success()
               : parser.parseInteger(size);
  });
}

static void printSizes(AsmPrinter &printer, ArrayRef<int64_t> sizes) {
  printer << '[';
  llvm::interleaveComma(sizes, printer, [&](int64_t size) {
    if (ShapedType::isDynamic(size))
      printer << '?';
    else
      printer << size;
  });
  printer << ']';
}

/// `<name = ..., name = ...>`; `parseValue` reads what follows `name =`.
static ParseResult
parseEntries(AsmParser &parser,
             function_ref<ParseResult(StringRef, SMLoc)> parseValue) {
  llvm::StringSet<> seen;
  return parser.parseCommaSeparatedList(
      AsmParser::Delimiter::LessGreater, [&]() -> ParseResult {
        std::string name;
        SMLoc loc = parser.getCurrentLocation();
        if (parser.parseKeywordOrString(&name) || parser.parseEqual())
          return failure();
        if (!seen.insert(name).second)
          return parser.emitError(loc) << "'" << name << "' is given twice";
        return parseValue(name, loc);
      });
}

namespace {
/// Prints commas between the entries that are there.
class EntryPrinter {
public:
  explicit EntryPrinter(AsmPrinter &printer) : printer(printer) {
    printer << '<';
  }
  ~EntryPrinter() { printer << '>'; }

  AsmPrinter &next(StringRef name) {
    if (!first)
      printer << ", ";
    first = false;
    printer.printKeywordOrString(name);
    return printer << " = ";
  }

  void sizes(StringRef name, ArrayRef<int64_t> values) {
    next(name);
    printSizes(printer, values);
  }

private:
  AsmPrinter &printer;
  bool first = true;
};
} // namespace

//===----------------------------------------------------------------------===//
// LevelAttr
//===----------------------------------------------------------------------===//

LogicalResult LevelAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                StringRef name) {
  // level_c1
  if (name.empty())
    return emitError() << "a level's name must not be empty";
  return success();
}

//===----------------------------------------------------------------------===//
// RTileAttr
//===----------------------------------------------------------------------===//

static LogicalResult
verifyLevelSizes(function_ref<InFlightDiagnostic()> emitError,
                 NamedAttribute entry, std::optional<size_t> &loops) {
  auto sizes = dyn_cast<DenseI64ArrayAttr>(entry.getValue());
  // rtile_c1
  if (!sizes || sizes.empty())
    return emitError() << "level '" << entry.getName().strref()
                       << "' needs a list of sizes";
  // rtile_c2
  if (loops && *loops != static_cast<size_t>(sizes.size()))
    return emitError() << "level '" << entry.getName().strref() << "' has "
                       << sizes.size() << " sizes where another level has "
                       << *loops;
  loops = sizes.size();
  // rtile_c3
  for (int64_t size : sizes.asArrayRef())
    if (size <= 0 && !ShapedType::isDynamic(size))
      return emitError() << "size " << size << " of level '"
                         << entry.getName().strref() << "' is not positive";
  return success();
}

LogicalResult RTileAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                DictionaryAttr sizes, ArrayRef<int64_t> order) {
  std::optional<size_t> loops;
  for (NamedAttribute entry : sizes)
    if (failed(verifyLevelSizes(emitError, entry, loops)))
      return failure();
  // rtile_c4
  if (!shared::isPermutation(order) ||
      (loops && !order.empty() && order.size() != *loops))
    return emitError() << "order must be a permutation of the "
                       << loops.value_or(order.size()) << " loops";
  return success();
}

std::optional<ArrayRef<int64_t>> RTileAttr::getSizes(StringRef level) const {
  if (auto sizes = getSizes().getAs<DenseI64ArrayAttr>(level))
    return sizes.asArrayRef();
  return std::nullopt;
}

int64_t RTileAttr::getNumLoops() const {
  if (getSizes().empty())
    return 0;
  return cast<DenseI64ArrayAttr>(getSizes().begin()->getValue()).size();
}

Attribute RTileAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<NamedAttribute> levels;
  SmallVector<int64_t> order;
  MLIRContext *context = parser.getContext();
  auto parseValue = [&](StringRef name, SMLoc) -> ParseResult {
    if (name == "order")
      return parseSizes(parser, order);
    SmallVector<int64_t> sizes;
    if (parseSizes(parser, sizes))
      return failure();
    levels.emplace_back(StringAttr::get(context, name),
                        DenseI64ArrayAttr::get(context, sizes));
    return success();
  };
  if (parseEntries(parser, parseValue))
    return {};
  return getChecked([&] { return parser.emitError(loc); }, context,
                    DictionaryAttr::get(context, levels), order);
}

void RTileAttr::print(AsmPrinter &printer) const {
  EntryPrinter entries(printer);
  for (NamedAttribute level : getSizes())
    entries.sizes(level.getName(),
                  cast<DenseI64ArrayAttr>(level.getValue()).asArrayRef());
  if (!getOrder().empty())
    entries.sizes("order", getOrder());
}

//===----------------------------------------------------------------------===//
// LayoutAttr
//===----------------------------------------------------------------------===//

static LogicalResult verifyBlocks(function_ref<InFlightDiagnostic()> emitError,
                                  ArrayRef<int64_t> perm,
                                  ArrayRef<int64_t> inner,
                                  ArrayRef<int64_t> tiles) {
  // layout_c2
  if (inner.size() != tiles.size())
    return emitError() << "inner has " << inner.size()
                       << " dimensions and tiles " << tiles.size();
  // layout_c3
  llvm::SmallSet<int64_t, 4> seen;
  for (int64_t dim : inner)
    if (dim < 0 || !seen.insert(dim).second ||
        (!perm.empty() && dim >= static_cast<int64_t>(perm.size())))
      return emitError() << "inner dimension " << dim
                         << " is negative, given twice or out of range";
  // layout_c4
  for (int64_t size : tiles)
    if (size <= 0)
      return emitError() << "block size " << size << " is not positive";
  return success();
}

LogicalResult LayoutAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 ArrayRef<int64_t> perm,
                                 ArrayRef<int64_t> inner,
                                 ArrayRef<int64_t> tiles, int64_t swizzle,
                                 int64_t interleave, Type storage) {
  // layout_c1
  if (!shared::isPermutation(perm))
    return emitError() << "perm is no permutation";
  if (failed(verifyBlocks(emitError, perm, inner, tiles)))
    return failure();
  // layout_c5
  if (!llvm::is_contained({0, 32, 64, 128}, swizzle))
    return emitError() << "swizzle must be 32, 64 or 128 bytes, got "
                       << swizzle;
  if (interleave != 0 && interleave < 2)
    return emitError() << "interleave must be at least 2, got " << interleave;
  // layout_c6
  if (storage && !storage.isIntOrFloat())
    return emitError() << "storage must be an integer or float type, got "
                       << storage;
  return success();
}

bool LayoutAttr::isIdentity() const {
  return llvm::is_sorted(getPerm()) && getTiles().empty() &&
         getSwizzle() == 0 && getInterleave() == 0 && !getStorage();
}

Attribute LayoutAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<int64_t> perm, inner, tiles;
  int64_t swizzle = 0, interleave = 0;
  Type storage;
  auto parseValue = [&](StringRef name, SMLoc at) -> ParseResult {
    if (name == "perm")
      return parseSizes(parser, perm);
    if (name == "inner")
      return parseSizes(parser, inner);
    if (name == "tiles")
      return parseSizes(parser, tiles);
    if (name == "swizzle")
      return parser.parseInteger(swizzle);
    if (name == "interleave")
      return parser.parseInteger(interleave);
    if (name == "storage")
      return parser.parseType(storage);
    return parser.emitError(at)
           << "'" << name << "' is not part of a layout: expected perm, inner, "
           << "tiles, swizzle, interleave or storage";
  };
  if (parseEntries(parser, parseValue))
    return {};
  return getChecked([&] { return parser.emitError(loc); }, parser.getContext(),
                    perm, inner, tiles, swizzle, interleave, storage);
}

void LayoutAttr::print(AsmPrinter &printer) const {
  EntryPrinter entries(printer);
  if (!getPerm().empty())
    entries.sizes("perm", getPerm());
  if (!getInner().empty()) {
    entries.sizes("inner", getInner());
    entries.sizes("tiles", getTiles());
  }
  if (getSwizzle())
    entries.next("swizzle") << getSwizzle();
  if (getInterleave())
    entries.next("interleave") << getInterleave();
  if (getStorage())
    entries.next("storage") << getStorage();
}

//===----------------------------------------------------------------------===//
// DeviceAttr
//===----------------------------------------------------------------------===//

LogicalResult DeviceAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 DictionaryAttr entries) {
  // device_c1
  auto name = entries.getAs<StringAttr>("name");
  if (!name || name.empty())
    return emitError() << "a device needs a name: name = \"...\"";
  // device_c2
  if (Attribute levels = entries.get("levels")) {
    llvm::StringSet<> seen;
    auto array = dyn_cast<ArrayAttr>(levels);
    if (!array)
      return emitError() << "levels must be an array of dictionaries";
    for (Attribute level : array) {
      auto dictionary = dyn_cast<DictionaryAttr>(level);
      auto key = dictionary ? dictionary.getAs<StringAttr>("name") : nullptr;
      if (!key || !seen.insert(key.strref()).second)
        return emitError() << "each level must be a dictionary with a name of "
                              "its own, got "
                           << level;
    }
  }
  // device_c3
  if (Attribute units = entries.get("units"))
    if (!isa<DictionaryAttr>(units))
      return emitError() << "units must be a dictionary";
  return success();
}

StringRef DeviceAttr::getName() const {
  return getEntries().getAs<StringAttr>("name").strref();
}

Attribute DeviceAttr::getEntry(StringRef key) const {
  return getEntries().get(key);
}

DictionaryAttr DeviceAttr::getLevel(StringRef level) const {
  auto levels = getEntries().getAs<ArrayAttr>("levels");
  if (!levels)
    return {};
  for (auto entry : levels.getAsRange<DictionaryAttr>())
    if (entry.getAs<StringAttr>("name").strref() == level)
      return entry;
  return {};
}

Attribute DeviceAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<NamedAttribute> entries;
  MLIRContext *context = parser.getContext();
  auto parseValue = [&](StringRef name, SMLoc) -> ParseResult {
    Attribute value;
    if (parser.parseAttribute(value))
      return failure();
    entries.emplace_back(StringAttr::get(context, name), value);
    return success();
  };
  if (parseEntries(parser, parseValue))
    return {};
  return getChecked([&] { return parser.emitError(loc); }, context,
                    DictionaryAttr::get(context, entries));
}

void DeviceAttr::print(AsmPrinter &printer) const {
  EntryPrinter entries(printer);
  entries.next("name") << getEntries().get("name");
  for (NamedAttribute entry : getEntries())
    if (entry.getName() != "name")
      entries.next(entry.getName()) << entry.getValue();
}

//===- SparseTile.cpp - C API of the sparse_tile dialect ------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/CAPI/SparseTile.h"

#include "dialects/SparseTile/SparseTile.h"
#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Support.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tilewright::sparse_tile;

//===----------------------------------------------------------------------===//
// From attributes to entries
//===----------------------------------------------------------------------===//

static DictionaryAttr patternEntries(Attribute pattern) {
  Builder b(pattern.getContext());
  SmallVector<NamedAttribute> entries;
  auto add = [&](StringRef name, Attribute value) {
    entries.push_back(b.getNamedAttr(name, value));
  };
  TypeSwitch<Attribute>(pattern)
      .Case([&](NMAttr nm) {
        add("kind", b.getStringAttr(NMAttr::getMnemonic()));
        add("n", b.getI64IntegerAttr(nm.getN()));
        add("m", b.getI64IntegerAttr(nm.getM()));
        add("axis", b.getI64IntegerAttr(nm.getAxis()));
        add("unit", b.getDenseI64ArrayAttr(nm.getUnit()));
      })
      .Case([&](BlockAttr block) {
        add("kind", b.getStringAttr(BlockAttr::getMnemonic()));
        add("shape", b.getDenseI64ArrayAttr(block.getShape()));
      })
      .Case([&](DynamicAttr dynamic) {
        add("kind", b.getStringAttr(DynamicAttr::getMnemonic()));
        add("unit", b.getDenseI64ArrayAttr(dynamic.getUnit()));
      })
      .Case<DenseAttr, MaskAttr>([&](auto plain) {
        add("kind", b.getStringAttr(decltype(plain)::getMnemonic()));
      });
  return b.getDictionaryAttr(entries);
}

static DictionaryAttr formatEntries(FormatAttr format) {
  Builder b(format.getContext());
  SmallVector<NamedAttribute> entries{
      b.getNamedAttr("storage", TypeAttr::get(format.getStorage())),
      b.getNamedAttr("group", b.getDenseI64ArrayAttr(format.getGroup())),
      b.getNamedAttr("unsigned", b.getBoolAttr(format.getIsUnsigned()))};
  if (format.getScales())
    entries.push_back(
        b.getNamedAttr("scales", TypeAttr::get(format.getScales())));
  if (format.getZeroPoints())
    entries.push_back(
        b.getNamedAttr("zero_points", TypeAttr::get(format.getZeroPoints())));
  return b.getDictionaryAttr(entries);
}

//===----------------------------------------------------------------------===//
// From entries to attributes
//===----------------------------------------------------------------------===//

namespace {
/// Reads a dictionary; what is missing or of another kind is told once.
class Entries {
public:
  Entries(Location location, DictionaryAttr entries)
      : location(location), entries(entries) {}

  int64_t number(StringRef name) {
    auto value = get<IntegerAttr>(name);
    return value ? value.getInt() : 0;
  }
  ArrayRef<int64_t> list(StringRef name) {
    auto value = get<DenseI64ArrayAttr>(name);
    return value ? value.asArrayRef() : ArrayRef<int64_t>();
  }
  StringRef text(StringRef name) {
    auto value = get<StringAttr>(name);
    return value ? value.getValue() : StringRef();
  }
  Type type(StringRef name) {
    auto value = get<TypeAttr>(name);
    return value ? value.getValue() : Type();
  }
  bool has(StringRef name) const { return entries.contains(name); }
  bool isWrong() const { return wrong; }

private:
  template <typename Kind> Kind get(StringRef name) {
    auto value = entries.getAs<Kind>(name);
    if (!value && !wrong) {
      emitError(location) << "entry '" << name << "' is missing in " << entries
                          << ", or of another kind";
      wrong = true;
    }
    return value;
  }

  Location location;
  DictionaryAttr entries;
  bool wrong = false;
};
} // namespace

static Attribute patternOf(Location location, DictionaryAttr dictionary) {
  Entries entries(location, dictionary);
  MLIRContext *context = location.getContext();
  auto fail = [&] { return emitError(location); };
  StringRef kind = entries.text("kind");
  if (kind == DenseAttr::getMnemonic())
    return DenseAttr::get(context);
  if (kind == MaskAttr::getMnemonic())
    return MaskAttr::get(context);
  if (kind == BlockAttr::getMnemonic()) {
    ArrayRef<int64_t> shape = entries.list("shape");
    return entries.isWrong() ? Attribute()
                             : BlockAttr::getChecked(fail, context, shape);
  }
  if (kind == DynamicAttr::getMnemonic()) {
    ArrayRef<int64_t> unit = entries.list("unit");
    return entries.isWrong() ? Attribute() : DynamicAttr::get(context, unit);
  }
  if (kind == NMAttr::getMnemonic()) {
    int64_t n = entries.number("n"), m = entries.number("m"),
            axis = entries.number("axis");
    ArrayRef<int64_t> unit = entries.list("unit");
    return entries.isWrong()
               ? Attribute()
               : NMAttr::getChecked(fail, context, n, m, axis, unit);
  }
  if (!entries.isWrong())
    emitError(location) << "sparse_tile has no pattern '" << kind << "'";
  return {};
}

static Attribute formatOf(Location location, DictionaryAttr dictionary) {
  Entries entries(location, dictionary);
  Type storage = entries.type("storage");
  Type scales = entries.has("scales") ? entries.type("scales") : Type();
  Type zeroPoints =
      entries.has("zero_points") ? entries.type("zero_points") : Type();
  ArrayRef<int64_t> group = entries.list("group");
  auto isUnsigned = dictionary.getAs<BoolAttr>("unsigned");
  if (entries.isWrong())
    return {};
  return FormatAttr::getChecked(
      [&] { return emitError(location); }, location.getContext(), storage,
      isUnsigned && isUnsigned.getValue(), scales, zeroPoints, group);
}

//===----------------------------------------------------------------------===//
// TesaAttr
//===----------------------------------------------------------------------===//

bool twAttributeIsATesa(MlirAttribute attribute) {
  return isa<TesaAttr>(unwrap(attribute));
}

MlirTypeID twTesaAttrGetTypeID(void) { return wrap(TesaAttr::getTypeID()); }

MlirAttribute twTesaAttrGetChecked(MlirLocation where, MlirAttribute entries) {
  Location location = unwrap(where);
  auto regions = dyn_cast<ArrayAttr>(unwrap(entries));
  SmallVector<Attribute> patterns, formats;
  for (Attribute entry : regions ? regions.getValue() : ArrayRef<Attribute>()) {
    auto region = dyn_cast<DictionaryAttr>(entry);
    auto pattern =
        region ? region.getAs<DictionaryAttr>("pattern") : DictionaryAttr();
    if (!pattern) {
      emitError(location) << "a region has a pattern, unlike " << entry;
      return {};
    }
    if (!patterns.emplace_back(patternOf(location, pattern)))
      return {};
    auto format = region.getAs<DictionaryAttr>("format");
    if (!formats.emplace_back(format ? formatOf(location, format)
                                     : Attribute()) &&
        format)
      return {};
  }
  return wrap(Attribute(TesaAttr::getChecked(
      [&] { return emitError(location); }, location.getContext(),
      ArrayRef<Attribute>(patterns), ArrayRef<Attribute>(formats))));
}

MlirAttribute twTesaAttrGetEntries(MlirAttribute attribute) {
  auto tesa = cast<TesaAttr>(unwrap(attribute));
  Builder b(tesa.getContext());
  SmallVector<Attribute> regions;
  for (int64_t region = 0; region < tesa.getNumRegions(); ++region) {
    SmallVector<NamedAttribute> entries{
        b.getNamedAttr("pattern", patternEntries(tesa.getPatterns()[region]))};
    if (FormatAttr format = tesa.getFormat(region))
      entries.push_back(b.getNamedAttr("format", formatEntries(format)));
    regions.push_back(b.getDictionaryAttr(entries));
  }
  return wrap(Attribute(b.getArrayAttr(regions)));
}

intptr_t twTesaGetNumParts(MlirType type) {
  auto tensor = dyn_cast<RankedTensorType>(unwrap(type));
  return tensor && getTesa(tensor) ? TesaAttr::getParts(tensor).size() : -1;
}

MlirType twTesaGetPart(MlirType type, intptr_t number) {
  return wrap(TesaAttr::getParts(cast<RankedTensorType>(unwrap(type)))[number]);
}

//===- TileDialect.cpp - types and attributes of tile, in Python ----------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/CAPI/Tile.h"

#include "mlir-c/BuiltinAttributes.h"
#include "mlir/Bindings/Python/Diagnostics.h"
#include "mlir/Bindings/Python/NanobindAdaptors.h"
#include "nanobind/stl/map.h"
#include "nanobind/stl/optional.h"
#include "nanobind/stl/string.h"
#include "nanobind/stl/vector.h"

namespace nb = nanobind;
using namespace mlir::python;
using namespace mlir::python::nanobind_adaptors;
using Int64s = std::vector<int64_t>;

static TwInt64List toList(const Int64s &values) {
  return {static_cast<intptr_t>(values.size()), values.data()};
}

static Int64s fromList(TwInt64List list) {
  return {list.data, list.data + list.size};
}

static MlirStringRef toRef(const std::string &text) {
  return mlirStringRefCreate(text.data(), text.size());
}

static std::string fromRef(MlirStringRef ref) { return {ref.data, ref.length}; }

/// What `make(location)` returns; what it reports becomes a ValueError.
template <typename Make> static auto checked(MlirContext context, Make make) {
  CollectDiagnosticsToStringScope scope(context);
  auto result = make(mlirLocationUnknownGet(context));
  std::string message = scope.takeMessage();
  if (!result.ptr)
    throw nb::value_error(message.c_str());
  return result;
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

static void populateTypes(nb::module_ &m) {
  mlir_type_subclass(m, "TileType", twTypeIsATile,
                     irModule().attr("ShapedType"), twTileTypeGetTypeID)
      .def_classmethod(
          "get",
          [](const nb::object &cls, const Int64s &shape, MlirType elementType,
             std::optional<MlirAttribute> layout) {
            auto make = [&](MlirLocation location) {
              return twTileTypeGetChecked(
                  location, toList(shape), elementType,
                  layout.value_or(mlirAttributeGetNull()));
            };
            return cls(checked(mlirTypeGetContext(elementType), make));
          },
          nb::arg("cls"), nb::arg("shape"), nb::arg("element_type"),
          nb::arg("layout") = nb::none(),
          "The tile type of this shape. Raises ValueError where a size is not "
          "positive or the elements are no numbers.")
      .def_property_readonly(
          "layout",
          [](MlirType self) -> std::optional<MlirAttribute> {
            MlirAttribute layout = twTileTypeGetLayout(self);
            if (mlirAttributeIsNull(layout))
              return std::nullopt;
            return layout;
          },
          "The register layout, None where there is none.");
  mlir_type_subclass(m, "TokenType", twTypeIsAToken, twTokenTypeGetTypeID)
      .def_classmethod(
          "get",
          [](const nb::object &cls, MlirContext context) {
            return cls(twTokenTypeGet(context));
          },
          nb::arg("cls"), nb::arg("context") = nb::none());
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

static MlirAttribute dictionaryOf(MlirContext context,
                                  const std::map<std::string, Int64s> &sizes) {
  std::vector<MlirNamedAttribute> entries;
  for (const auto &[level, values] : sizes)
    entries.push_back(mlirNamedAttributeGet(
        mlirIdentifierGet(context, toRef(level)),
        mlirDenseI64ArrayGet(context, static_cast<intptr_t>(values.size()),
                             values.data())));
  return mlirDictionaryAttrGet(context, static_cast<intptr_t>(entries.size()),
                               entries.data());
}

static std::map<std::string, Int64s> sizesOf(MlirAttribute rtile) {
  MlirAttribute sizes = twRTileAttrGetSizes(rtile);
  std::map<std::string, Int64s> result;
  for (intptr_t i = 0; i < mlirDictionaryAttrGetNumElements(sizes); ++i) {
    MlirNamedAttribute entry = mlirDictionaryAttrGetElement(sizes, i);
    Int64s &values = result[fromRef(mlirIdentifierStr(entry.name))];
    for (intptr_t p = 0; p < mlirDenseArrayGetNumElements(entry.attribute); ++p)
      values.push_back(mlirDenseI64ArrayGetElement(entry.attribute, p));
  }
  return result;
}

static void populateRTile(nb::module_ &m) {
  mlir_attribute_subclass(m, "RTileAttr", twAttributeIsARTile,
                          twRTileAttrGetTypeID)
      .def_classmethod(
          "get",
          [](const nb::object &cls, const std::map<std::string, Int64s> &sizes,
             const Int64s &order, MlirContext context) {
            MlirAttribute dictionary = dictionaryOf(context, sizes);
            auto make = [&](MlirLocation location) {
              return twRTileAttrGetChecked(location, dictionary, toList(order));
            };
            return cls(checked(context, make));
          },
          nb::arg("cls"), nb::arg("sizes"), nb::arg("order") = Int64s(),
          nb::arg("context") = nb::none(),
          "Tile sizes by level: {\"l2\": [128, 32], \"register\": [8, 32]}.")
      .def_property_readonly("sizes", sizesOf,
                             "Tile sizes of the loops, by level.")
      .def_property_readonly(
          "order",
          [](MlirAttribute self) {
            return fromList(twRTileAttrGetOrder(self));
          },
          "Loop numbers, outermost first; empty means the given order.");
}

/// `None` where the number says that there is none.
static std::optional<int64_t> optionalNumber(int64_t value) {
  return value ? std::optional(value) : std::nullopt;
}

static void populateLayout(nb::module_ &m) {
  mlir_attribute_subclass(m, "LayoutAttr", twAttributeIsALayout,
                          twLayoutAttrGetTypeID)
      .def_classmethod(
          "get",
          [](const nb::object &cls, const Int64s &perm, const Int64s &inner,
             const Int64s &tiles, std::optional<int64_t> swizzle,
             std::optional<int64_t> interleave, std::optional<MlirType> storage,
             MlirContext context) {
            auto make = [&](MlirLocation location) {
              return twLayoutAttrGetChecked(
                  location, toList(perm), toList(inner), toList(tiles),
                  swizzle.value_or(0), interleave.value_or(0),
                  storage.value_or(MlirType{nullptr}));
            };
            return cls(checked(context, make));
          },
          nb::arg("cls"), nb::arg("perm") = Int64s(),
          nb::arg("inner") = Int64s(), nb::arg("tiles") = Int64s(),
          nb::arg("swizzle") = nb::none(), nb::arg("interleave") = nb::none(),
          nb::arg("storage") = nb::none(), nb::arg("context") = nb::none(),
          "A layout; what is left out is the identity.")
      .def_property_readonly("perm",
                             [](MlirAttribute self) {
                               return fromList(twLayoutAttrGetPerm(self));
                             })
      .def_property_readonly("inner",
                             [](MlirAttribute self) {
                               return fromList(twLayoutAttrGetInner(self));
                             })
      .def_property_readonly("tiles",
                             [](MlirAttribute self) {
                               return fromList(twLayoutAttrGetTiles(self));
                             })
      .def_property_readonly("swizzle",
                             [](MlirAttribute self) {
                               return optionalNumber(
                                   twLayoutAttrGetSwizzle(self));
                             })
      .def_property_readonly("interleave",
                             [](MlirAttribute self) {
                               return optionalNumber(
                                   twLayoutAttrGetInterleave(self));
                             })
      .def_property_readonly("storage",
                             [](MlirAttribute self) -> std::optional<MlirType> {
                               MlirType storage = twLayoutAttrGetStorage(self);
                               if (mlirTypeIsNull(storage))
                                 return std::nullopt;
                               return storage;
                             });
}

static void populateNamed(nb::module_ &m) {
  mlir_attribute_subclass(m, "LevelAttr", twAttributeIsALevel,
                          twLevelAttrGetTypeID)
      .def_classmethod(
          "get",
          [](const nb::object &cls, const std::string &name,
             MlirContext context) {
            auto make = [&](MlirLocation location) {
              return twLevelAttrGetChecked(location, toRef(name));
            };
            return cls(checked(context, make));
          },
          nb::arg("cls"), nb::arg("name"), nb::arg("context") = nb::none(),
          "The memory level of this name.")
      .def_property_readonly("name", [](MlirAttribute self) {
        return fromRef(twLevelAttrGetName(self));
      });
  mlir_attribute_subclass(m, "ReduceKindAttr", twAttributeIsAReduceKind,
                          twReduceKindAttrGetTypeID)
      .def_classmethod(
          "get",
          [](const nb::object &cls, const std::string &name,
             MlirContext context) {
            MlirAttribute kind = twReduceKindAttrGet(context, toRef(name));
            if (mlirAttributeIsNull(kind))
              throw nb::value_error(
                  ("'" + name + "' is no kind of reduction").c_str());
            return cls(kind);
          },
          nb::arg("cls"), nb::arg("name"), nb::arg("context") = nb::none(),
          "The kind by its name in the IR, such as \"add\" or \"and\".")
      .def_property_readonly("value", [](MlirAttribute self) {
        return fromRef(twReduceKindAttrGetName(self));
      });
  mlir_attribute_subclass(m, "DeviceAttr", twAttributeIsADevice,
                          twDeviceAttrGetTypeID)
      .def_classmethod(
          "get",
          [](const nb::object &cls, MlirAttribute entries) {
            if (!mlirAttributeIsADictionary(entries))
              throw nb::value_error("the entries of a device are a DictAttr");
            auto make = [&](MlirLocation location) {
              return twDeviceAttrGetChecked(location, entries);
            };
            return cls(checked(mlirAttributeGetContext(entries), make));
          },
          nb::arg("cls"), nb::arg("entries"),
          "A device from a DictAttr with its name, levels, units, ...")
      .def_property_readonly("entries", [](MlirAttribute self) {
        return twDeviceAttrGetEntries(self);
      });
}

NB_MODULE(_tilewrightTile, m) {
  m.doc() = "Types and attributes of the tile dialect";
  populateTypes(m);
  populateRTile(m);
  populateLayout(m);
  populateNamed(m);
}

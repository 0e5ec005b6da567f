//===- SparseTileDialect.cpp - attributes of sparse_tile, in Python -------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/CAPI/SparseTile.h"

#include "mlir-c/BuiltinAttributes.h"
#include "mlir/Bindings/Python/Diagnostics.h"
#include "mlir/Bindings/Python/NanobindAdaptors.h"
#include "nanobind/stl/vector.h"

namespace nb = nanobind;
using namespace mlir::python;
using namespace mlir::python::nanobind_adaptors;

static MlirAttribute tesaOf(MlirAttribute entries) {
  MlirContext context = mlirAttributeGetContext(entries);
  CollectDiagnosticsToStringScope scope(context);
  MlirAttribute tesa =
      twTesaAttrGetChecked(mlirLocationUnknownGet(context), entries);
  std::string message = scope.takeMessage();
  if (mlirAttributeIsNull(tesa))
    throw nb::value_error(message.c_str());
  return tesa;
}

static std::vector<MlirType> partsOf(MlirType type) {
  intptr_t count = twTesaGetNumParts(type);
  if (count < 0)
    throw nb::value_error("not the type of a tensor with an encoding "
                          "#sparse_tile.tesa");
  std::vector<MlirType> parts;
  for (intptr_t number = 0; number < count; ++number)
    parts.push_back(twTesaGetPart(type, number));
  return parts;
}

NB_MODULE(_tilewrightSparseTile, m) {
  m.doc() = "Attributes of the sparse_tile dialect";
  mlir_attribute_subclass(m, "TesaAttr", twAttributeIsATesa,
                          twTesaAttrGetTypeID)
      .def_classmethod(
          "get",
          [](const nb::object &cls, MlirAttribute entries) {
            return cls(tesaOf(entries));
          },
          nb::arg("cls"), nb::arg("entries"),
          "The encoding of an ArrayAttr with a DictAttr per region. Raises "
          "ValueError where one is wrong.")
      .def_property_readonly("entries", [](MlirAttribute self) {
        return twTesaAttrGetEntries(self);
      });
  m.def("parts", partsOf, nb::arg("type"),
        "Types of the tensors that hold one of an encoded type. Raises "
        "ValueError for any other type.");
}

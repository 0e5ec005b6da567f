//===- FractalDialect.cpp - the type of nested lists, in Python ----------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/CAPI/Fractal.h"

#include "mlir/Bindings/Python/Diagnostics.h"
#include "mlir/Bindings/Python/NanobindAdaptors.h"
#include "nanobind/stl/optional.h"
#include "nanobind/stl/vector.h"

namespace nb = nanobind;
using namespace mlir::python;
using namespace mlir::python::nanobind_adaptors;
using Int64s = std::vector<int64_t>;

static MlirType arrayOf(const Int64s &lengths, MlirType leaf) {
  MlirContext context = mlirTypeGetContext(leaf);
  CollectDiagnosticsToStringScope scope(context);
  MlirType type = twFractalArrayTypeGetChecked(
      mlirLocationUnknownGet(context), lengths.size(), lengths.data(), leaf);
  std::string message = scope.takeMessage();
  if (mlirTypeIsNull(type))
    throw nb::value_error(message.c_str());
  return type;
}

static Int64s lengthsOf(MlirType self) {
  Int64s lengths;
  for (intptr_t level = 0; level < twFractalArrayTypeGetDepth(self); ++level)
    lengths.push_back(twFractalArrayTypeGetLength(self, level));
  return lengths;
}

static std::optional<MlirAffineMap> accessMapOf(MlirOperation op) {
  MlirAffineMap map = twFractalGetAccessMap(op);
  if (mlirAffineMapIsNull(map))
    return std::nullopt;
  return map;
}

NB_MODULE(_tilewrightFractal, m) {
  m.doc() = "Types of the fractal dialect";
  m.attr("DYNAMIC") = twFractalDynamic();
  m.attr("RAGGED") = twFractalRagged();
  mlir_type_subclass(m, "ArrayType", twTypeIsAFractalArray,
                     twFractalArrayTypeGetTypeID)
      .def_classmethod(
          "get",
          [](const nb::object &cls, const Int64s &lengths, MlirType leaf) {
            return cls(arrayOf(lengths, leaf));
          },
          nb::arg("cls"), nb::arg("lengths"), nb::arg("leaf"),
          "Nested lists of leaves, a length per level: a number, DYNAMIC or "
          "RAGGED. Raises ValueError where one is wrong, or the leaf is no "
          "tensor of static shape.")
      .def_property_readonly("lengths", lengthsOf,
                             "A number, DYNAMIC or RAGGED per level.")
      .def_property_readonly(
          "depth",
          [](MlirType self) { return twFractalArrayTypeGetDepth(self); })
      .def_property_readonly(
          "leaf", [](MlirType self) { return twFractalArrayTypeGetLeaf(self); })
      .def_property_readonly(
          "element",
          [](MlirType self) { return twFractalArrayTypeGetElement(self); },
          "What indexing gives: the leaf, or an array of one level less.")
      .def(
          "is_compatible",
          [](MlirType self, MlirType other) {
            return twFractalAreCompatible(self, other);
          },
          nb::arg("other"),
          "Whether depth and leaf are equal and no two known lengths differ.");
  m.def("access_map", accessMapOf, nb::arg("op"),
        "From levels of an access op's result to levels of its source, as "
        "AccessOpInterface describes it; None where the op has no such map.");
}

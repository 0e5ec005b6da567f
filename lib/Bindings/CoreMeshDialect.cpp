//===- CoreMeshDialect.cpp - programs for a mesh of cores, in Python -----===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/CAPI/CoreMesh.h"

#include "mlir/Bindings/Python/NanobindAdaptors.h"
#include "nanobind/stl/optional.h"
#include "nanobind/stl/pair.h"
#include "nanobind/stl/vector.h"

namespace nb = nanobind;
using namespace mlir::python::nanobind_adaptors;

static std::pair<MlirAffineMap, std::vector<bool>>
constraintsOf(MlirAttribute set) {
  MlirAffineMap map = twCoreMeshGetConstraints(set);
  if (mlirAffineMapIsNull(map))
    throw nb::value_error("not an integer set");
  std::vector<bool> equalities;
  for (intptr_t i = 0; i < mlirAffineMapGetNumResults(map); ++i)
    equalities.push_back(twCoreMeshIsEquality(set, i));
  return {map, equalities};
}

static std::optional<MlirAttribute> layoutEntriesOf(MlirAttribute layout) {
  MlirAttribute entries = twCoreMeshGetLayoutEntries(layout);
  if (mlirAttributeIsNull(entries))
    return std::nullopt;
  return entries;
}

static MlirType blockTypeOf(MlirType type) {
  MlirType block = twCoreMeshGetBlockType(type);
  if (mlirTypeIsNull(block))
    throw nb::value_error("not a tensor with a #coremesh.layout");
  return block;
}

NB_MODULE(_tilewrightCoreMesh, m) {
  m.doc() = "Attributes of the coremesh dialect";
  m.def("constraints", constraintsOf, nb::arg("set"),
        "The constraints of an integer set as results of a map, and for each "
        "whether it is an equality with 0; the others are 0 or more. Raises "
        "ValueError for another attribute.");
  m.def("layout_entries", layoutEntriesOf, nb::arg("layout"),
        "The parameters of a #coremesh.layout, as a DictAttr; None of another "
        "attribute.");
  m.def("block_type", blockTypeOf, nb::arg("type"),
        "What one core holds of a tensor with a #coremesh.layout, as a tensor "
        "type. Raises ValueError for another type.");
}

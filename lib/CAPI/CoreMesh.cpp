//===- CoreMesh.cpp - C API of the coremesh dialect ----------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/CAPI/CoreMesh.h"

#include "dialects/CoreMesh/CoreMesh.h"
#include "mlir/CAPI/AffineMap.h"
#include "mlir/CAPI/IR.h"

using namespace mlir;

MlirAffineMap twCoreMeshGetConstraints(MlirAttribute attribute) {
  auto set = dyn_cast<IntegerSetAttr>(unwrap(attribute));
  if (!set)
    return wrap(AffineMap());
  IntegerSet value = set.getValue();
  return wrap(AffineMap::get(value.getNumDims(), value.getNumSymbols(),
                             value.getConstraints(), set.getContext()));
}

bool twCoreMeshIsEquality(MlirAttribute attribute, intptr_t constraint) {
  return cast<IntegerSetAttr>(unwrap(attribute)).getValue().isEq(constraint);
}

//===- Fractal.cpp - C API of the fractal dialect ------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/CAPI/Fractal.h"

#include "dialects/Fractal/Fractal.h"
#include "mlir/CAPI/AffineMap.h"
#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Support.h"

using namespace mlir;
using namespace tilewright::fractal;

int64_t twFractalDynamic(void) { return ShapedType::kDynamic; }

int64_t twFractalRagged(void) { return ArrayType::kRagged; }

bool twTypeIsAFractalArray(MlirType type) {
  return isa<ArrayType>(unwrap(type));
}

MlirTypeID twFractalArrayTypeGetTypeID(void) {
  return wrap(ArrayType::getTypeID());
}

MlirType twFractalArrayTypeGetChecked(MlirLocation where, intptr_t depth,
                                      const int64_t *lengths, MlirType leaf) {
  Location location = unwrap(where);
  auto tensor = dyn_cast<RankedTensorType>(unwrap(leaf));
  if (!tensor) {
    emitError(location) << "a leaf is a tensor of static shape, not "
                        << unwrap(leaf);
    return {};
  }
  ArrayRef<int64_t> list(lengths, depth);
  auto fail = [&] { return emitError(location); };
  return wrap(Type(ArrayType::getChecked(fail, list, tensor)));
}

intptr_t twFractalArrayTypeGetDepth(MlirType type) {
  return cast<ArrayType>(unwrap(type)).getDepth();
}

int64_t twFractalArrayTypeGetLength(MlirType type, intptr_t level) {
  return cast<ArrayType>(unwrap(type)).getLengths()[level];
}

MlirType twFractalArrayTypeGetLeaf(MlirType type) {
  return wrap(Type(cast<ArrayType>(unwrap(type)).getLeaf()));
}

MlirType twFractalArrayTypeGetElement(MlirType type) {
  return wrap(cast<ArrayType>(unwrap(type)).getElementType());
}

bool twFractalAreCompatible(MlirType one, MlirType other) {
  return areCompatible(unwrap(one), unwrap(other));
}

MlirAffineMap twFractalGetAccessMap(MlirOperation op) {
  auto access = dyn_cast<AccessOpInterface>(unwrap(op));
  return wrap(access ? access.getAccessMap() : AffineMap());
}

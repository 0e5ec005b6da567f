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
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace tilewright::coremesh;

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

static Attribute entriesOf(SplitAttr split) {
  Builder b(split.getContext());
  return b.getDictionaryAttr({
      b.getNamedAttr("axis", b.getStringAttr(stringifyAxis(split.getAxis()))),
      b.getNamedAttr("blocks", b.getDenseI64ArrayAttr(split.getBlocks())),
      b.getNamedAttr("deal", b.getStringAttr(stringifyDeal(split.getDeal()))),
      b.getNamedAttr("order",
                     b.getStringAttr(stringifyOrder(split.getOrder()))),
      b.getNamedAttr("rotate", b.getI64IntegerAttr(split.getRotate())),
      b.getNamedAttr("skew", b.getBoolAttr(split.getSkewed())),
  });
}

MlirAttribute twCoreMeshGetLayoutEntries(MlirAttribute attribute) {
  auto layout = dyn_cast<LayoutAttr>(unwrap(attribute));
  if (!layout)
    return wrap(Attribute());
  Builder b(layout.getContext());
  SmallVector<Attribute> splits;
  for (Attribute split : layout.getSplits())
    splits.push_back(isa<SplitAttr>(split) ? entriesOf(cast<SplitAttr>(split))
                                           : split);
  return wrap(Attribute(b.getDictionaryAttr({
      b.getNamedAttr(
          "at", b.getDenseI64ArrayAttr({layout.getAtY(), layout.getAtX()})),
      b.getNamedAttr("grid", b.getDenseI64ArrayAttr(
                                 {layout.getHeight(), layout.getWidth()})),
      b.getNamedAttr("splits", b.getArrayAttr(splits)),
  })));
}

MlirType twCoreMeshGetBlockType(MlirType type) {
  auto tensor = dyn_cast<RankedTensorType>(unwrap(type));
  auto layout = tensor ? dyn_cast_if_present<LayoutAttr>(tensor.getEncoding())
                       : LayoutAttr();
  if (!layout)
    return wrap(Type());
  return wrap(Type(RankedTensorType::get(
      layout.getBlockShape(tensor.getShape()), tensor.getElementType())));
}

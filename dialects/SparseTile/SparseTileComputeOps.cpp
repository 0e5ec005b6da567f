//===- SparseTileComputeOps.cpp - computing with encoded tensors ----------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/SparseTile/SparseTile.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace tilewright::sparse_tile;

LogicalResult MatmulOp::verify() {
  RankedTensorType a = getA().getType(), b = getB().getType(),
                   c = getC().getType();
  if (a.getRank() != 2 || b.getRank() != 2 || c.getRank() != 2 ||
      failed(verifyCompatibleShape({a.getDimSize(0), b.getDimSize(1)},
                                   c.getShape())) ||
      failed(verifyCompatibleDims({a.getDimSize(1), b.getDimSize(0)})))
    return emitOpError("a, b and c must be MxK, KxN and MxN, not ")
           << a << ", " << b << " and " << c;         // matmul_c1
  if (!(getTesa(a) || getTesa(b)) || c.getEncoding()) // matmul_c2
    return emitOpError("a or b is encoded and c is not; for dense matrices "
                       "there is linalg.matmul");
  auto sum = dyn_cast<FloatType>(c.getElementType());
  for (RankedTensorType operand : {a, b}) {
    auto element = dyn_cast<FloatType>(operand.getElementType());
    if (!sum || !element || element.getWidth() > sum.getWidth()) // matmul_c3
      return emitOpError("elements are floats of at most the width of c's, "
                         "not ")
             << operand.getElementType() << " with " << c.getElementType();
  }
  return success();
}

//===- SparseTileDynamicOps.cpp - sparsity found at run time --------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/SparseTile/SparseTile.h"

#include "mlir/IR/TypeUtilities.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tilewright::sparse_tile;

static LogicalResult verifyAxis(Operation *op, int64_t axis, int64_t rank) {
  if (axis >= 0 && axis < rank)
    return success();
  return op->emitOpError("axis ")
         << axis << " is none of the tensor's " << rank << " dimensions";
}

LogicalResult IndexOp::verify() {
  RankedTensorType source = getSource().getType();
  ArrayRef<int64_t> unit = getUnit();
  if (static_cast<int64_t>(unit.size()) != source.getRank() ||
      llvm::any_of(unit, [](int64_t size) { return size <= 0; })) // index_c1
    return emitOpError("unit has a positive number for each of the ")
           << source.getRank() << " dimensions";
  if (failed(verifyAxis(*this, getAxis(), source.getRank()))) // index_c1
    return failure();
  SmallVector<int64_t> live;
  for (auto [size, cut] : llvm::zip_equal(source.getShape(), unit))
    live.push_back(
        ShapedType::isDynamic(size) ? size : llvm::divideCeilSigned(size, cut));
  SmallVector<int64_t> count = live;
  count[getAxis()] = 1;
  Type i32 = IntegerType::get(getContext(), 32);
  Type types[] = {RankedTensorType::get(live, i32),
                  RankedTensorType::get(count, i32)};
  if (succeeded(verifyCompatibleShapes(getResultTypes(), types)) &&
      llvm::all_of(getResultTypes(), [&](Type type) {
        return getElementTypeOrSelf(type) == i32;
      })) // index_c2
    return success();
  return emitOpError("gives ") << types[0] << " and " << types[1];
}

/// Whether `picked` has the sizes of `whole`, but along the axis those of the
/// list of indices.
static LogicalResult verifyPicked(Operation *op, RankedTensorType whole,
                                  RankedTensorType indices, int64_t axis,
                                  RankedTensorType picked, StringRef name) {
  if (failed(verifyAxis(op, axis, whole.getRank()))) // gather_c1, scatter_c1
    return failure();
  if (indices.getRank() != 1 ||
      !indices.getElementType().isSignlessInteger(32)) // gather_c1, scatter_c1
    return op->emitOpError("indices are a list of i32, not ") << indices;
  SmallVector<int64_t> shape(whole.getShape());
  shape[axis] = indices.getDimSize(0);
  if (picked.getElementType() == whole.getElementType() &&
      picked.getRank() == whole.getRank() &&
      succeeded(verifyCompatibleShape(picked.getShape(), shape)))
    return success(); // gather_c2, scatter_c2
  return op->emitOpError("the ")
         << name << " must be "
         << RankedTensorType::get(shape, whole.getElementType()) << ", not "
         << picked;
}

LogicalResult GatherOp::verify() {
  return verifyPicked(*this, getSource().getType(), getIndices().getType(),
                      getAxis(), getType(), "result");
}

LogicalResult ScatterOp::verify() {
  return verifyPicked(*this, getInit().getType(), getIndices().getType(),
                      getAxis(), getSource().getType(), "source");
}

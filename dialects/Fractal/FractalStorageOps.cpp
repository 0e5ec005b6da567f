//===- FractalStorageOps.cpp - arrays and tensors ------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Fractal/FractalDetail.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace tilewright::fractal;
using namespace tilewright::fractal::shared;

//===----------------------------------------------------------------------===//
// FromTensorOp and ToTensorOp
//===----------------------------------------------------------------------===//

static LogicalResult verifyTensor(Operation *op, RankedTensorType tensor,
                                  ArrayType array) {
  // from_tensor_c2, to_tensor_c2
  if (array.isRagged())
    return op->emitOpError("cannot hold lists of different lengths in a "
                           "tensor, as ")
           << array << " has them: see fractal.to_ragged";
  // from_tensor_c1, to_tensor_c1
  RankedTensorType leaf = array.getLeaf();
  if (tensor.getEncoding() || leaf.getEncoding())
    return op->emitOpError("takes tensors without an encoding, not ")
           << tensor << " and leaves of type " << leaf;
  SmallVector<int64_t> shape(array.getLengths());
  llvm::append_range(shape, leaf.getShape());
  if (tensor.getElementType() == leaf.getElementType() &&
      succeeded(verifyCompatibleShape(tensor.getShape(), shape)))
    return success();
  return op->emitOpError("of ")
         << array << " goes with a tensor like "
         << RankedTensorType::get(shape, leaf.getElementType()) << ", not "
         << tensor;
}

LogicalResult FromTensorOp::verify() {
  return verifyTensor(*this, getSource().getType(), getResult().getType());
}

LogicalResult ToTensorOp::verify() {
  return verifyTensor(*this, getResult().getType(), getSource().getType());
}

//===----------------------------------------------------------------------===//
// FromRaggedOp and ToRaggedOp
//===----------------------------------------------------------------------===//

static LogicalResult verifyRagged(Operation *op, ArrayType array,
                                  ArrayType flat, TypeRange offsets) {
  // from_ragged_c1, to_ragged_c1
  if (flat.getDepth() != 1 || flat.getLeaf() != array.getLeaf())
    return op->emitOpError("needs leaves ")
           << array.getLeaf() << " in one level, not " << flat;
  // from_ragged_c2, to_ragged_c2
  int64_t inner = array.getDepth() - 1;
  if (inner == 0 || static_cast<int64_t>(offsets.size()) != inner)
    return op->emitOpError("of ")
           << array << ", which has " << inner
           << " inner levels, needs a list of offsets for each, and one at "
              "least: there are "
           << offsets.size();
  // from_ragged_c3, to_ragged_c3
  int64_t size = cast<ShapedType>(offsets.front()).getDimSize(0);
  if (ArrayType::isKnown(array.getLength()) && !ShapedType::isDynamic(size) &&
      size != array.getLength() + 1)
    return op->emitOpError("of ")
           << array.getLength() << " lists needs " << array.getLength() + 1
           << " first offsets, not " << size;
  return success();
}

LogicalResult FromRaggedOp::verify() {
  // from_ragged_c4
  if (std::optional<ArrayRef<int64_t>> most = getMost();
      most && (most->size() != getOffsets().size() ||
               llvm::any_of(*most, [](int64_t length) { return length < 0; })))
    return emitOpError("has most = [")
           << *most << "]: for each of the " << getOffsets().size()
           << " inner levels it says how long a list is at most";
  return verifyRagged(*this, getResult().getType(), getFlat().getType(),
                      getOffsets().getTypes());
}

LogicalResult ToRaggedOp::verify() {
  return verifyRagged(*this, getSource().getType(), getFlat().getType(),
                      getOffsets().getTypes());
}

//===----------------------------------------------------------------------===//
// CastOp
//===----------------------------------------------------------------------===//

LogicalResult CastOp::verify() {
  return verifyFits(*this, "result", getSource().getType(),
                    getResult().getType()); // cast_c1
}

AffineMap CastOp::getAccessMap() { return AffineMap::get(getContext()); }

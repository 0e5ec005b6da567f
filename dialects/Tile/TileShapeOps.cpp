//===- TileShapeOps.cpp - verifiers of element movement -------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDetail.h"

using namespace mlir;
using namespace tilewright::tile;

LogicalResult shared::verifySlice(Operation *op, ArrayRef<int64_t> offsets,
                                  ArrayRef<int64_t> sizes,
                                  ArrayRef<int64_t> shape) {
  // extract_c3, insert_c3
  for (auto [dim, offset] : llvm::enumerate(offsets)) {
    int64_t size = sizes.empty() ? 1 : sizes[dim];
    if (offset < 0 || offset + size > shape[dim])
      return op->emitOpError("slice [")
             << offset << ", " << offset + size << ") of dimension " << dim
             << " leaves [0, " << shape[dim] << ")";
  }
  return success();
}

static LogicalResult verifyOffsetCount(Operation *op, ArrayRef<int64_t> offsets,
                                       TileType type) {
  // extract_c1, insert_c1
  if (static_cast<int64_t>(offsets.size()) != type.getRank())
    return op->emitOpError("gives ")
           << offsets.size() << " offsets for " << type;
  return success();
}

LogicalResult IotaOp::verify() {
  TileType type = getResult().getType();
  auto dim = static_cast<int64_t>(getDim());
  // iota_c1
  if (dim < 0 || dim >= type.getRank())
    return emitOpError("dim ") << dim << " is no dimension of " << type;
  // iota_c2
  if (!type.getElementType().isIntOrIndex())
    return emitOpError("counts in integers or index, got ") << type;
  return success();
}

LogicalResult BroadcastOp::verify() {
  TileType source = getSource().getType(), result = getResult().getType();
  // broadcast_c1
  if (source.getElementType() != result.getElementType())
    return emitOpError("changes shapes only, got ")
           << source << " and " << result;
  // broadcast_c2
  int64_t grow = result.getRank() - source.getRank();
  bool fits = grow >= 0;
  for (int64_t dim = 0; fits && dim < source.getRank(); ++dim)
    fits = source.getDimSize(dim) == 1 ||
           source.getDimSize(dim) == result.getDimSize(grow + dim);
  if (!fits)
    return emitOpError("cannot repeat ") << source << " to " << result;
  return success();
}

void TransposeOp::build(OpBuilder &builder, OperationState &state, Value source,
                        ArrayRef<int64_t> permutation) {
  auto type = cast<TileType>(source.getType());
  SmallVector<int64_t> shape;
  for (int64_t dim : permutation)
    shape.push_back(type.getDimSize(dim));
  build(builder, state, TileType::get(shape, type.getElementType()), source,
        permutation);
}

LogicalResult TransposeOp::verify() {
  TileType source = getSource().getType(), result = getResult().getType();
  // transpose_c1
  if (static_cast<int64_t>(getPermutation().size()) != source.getRank() ||
      !shared::isPermutation(getPermutation()))
    return emitOpError("needs a permutation of the dimensions of ") << source;
  // transpose_c2
  bool fits = result.getRank() == source.getRank() &&
              result.getElementType() == source.getElementType();
  for (auto [dim, from] : llvm::enumerate(getPermutation()))
    fits = fits && result.getDimSize(dim) == source.getDimSize(from);
  if (!fits)
    return emitOpError("result ") << result << " is no transposed " << source;
  return success();
}

LogicalResult ReshapeOp::verify() {
  TileType source = getSource().getType(), result = getResult().getType();
  // reshape_c1
  if (source.getElementType() != result.getElementType() ||
      source.getNumElements() != result.getNumElements())
    return emitOpError("needs equal elements and numbers of them, got ")
           << source << " and " << result;
  return success();
}

LogicalResult ExtractOp::verify() {
  TileType source = getSource().getType();
  if (failed(verifyOffsetCount(*this, getOffsets(), source)))
    return failure();
  // extract_c2
  auto slice = dyn_cast<TileType>(getResult().getType());
  if (getElementTypeOrSelf(getResult().getType()) != source.getElementType() ||
      (slice && slice.getRank() != source.getRank()))
    return emitOpError("result ")
           << getResult().getType() << " is no slice or element of " << source;
  return shared::verifySlice(*this, getOffsets(),
                             slice ? slice.getShape() : ArrayRef<int64_t>(),
                             source.getShape());
}

LogicalResult InsertOp::verify() {
  TileType source = getSource().getType(), dest = getDest().getType();
  if (failed(verifyOffsetCount(*this, getOffsets(), dest)))
    return failure();
  // insert_c2
  if (source.getElementType() != dest.getElementType() ||
      source.getRank() != dest.getRank())
    return emitOpError("cannot put ") << source << " into " << dest;
  return shared::verifySlice(*this, getOffsets(), source.getShape(),
                             dest.getShape());
}

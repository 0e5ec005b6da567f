//===- CoreMeshCollectiveOps.cpp - values that move ----------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/CoreMesh/CoreMeshDetail.h"

using namespace mlir;
using namespace tilewright::coremesh;
using namespace tilewright::coremesh::shared;

/// The same tensor type without an encoding.
static RankedTensorType plain(Value value) {
  return cast<RankedTensorType>(value.getType()).dropEncoding();
}

/// distribute_c1, assemble_c1, relayout_c1, reshape_grid_c1: the same tensor.
template <typename Op> static LogicalResult verifySame(Op op) {
  if (plain(op.getSource()) == plain(op.getResult()))
    return success();
  return op.emitOpError("changes ")
         << plain(op.getSource()) << " to " << plain(op.getResult())
         << ": shape and element type stay";
}

/// distribute_c1, assemble_c1
static LogicalResult verifyOutside(Operation *op, Value outside) {
  if (!cast<RankedTensorType>(outside.getType()).getEncoding())
    return success();
  return op->emitOpError("needs a tensor without encoding outside, not ")
         << outside.getType();
}

LogicalResult DistributeOp::verify() {
  if (failed(verifyOutside(*this, getSource()))) // distribute_c1
    return failure();
  return verifySame(*this); // distribute_c1
}

LogicalResult AssembleOp::verify() {
  if (failed(verifyOutside(*this, getResult()))) // assemble_c1
    return failure();
  return verifySame(*this); // assemble_c1
}

//===----------------------------------------------------------------------===//
// RelayoutOp and ReshapeGridOp
//===----------------------------------------------------------------------===//

template <typename Op> static LogicalResult verifyGrids(Op op, bool same) {
  LayoutAttr from = layoutOf(op.getSource()), to = layoutOf(op.getResult());
  if (from.hasGridOf(to) == same)
    return verifySame(op);
  return op.emitOpError("goes from ")
         << from.getHeight() << " x " << from.getWidth() << " to "
         << to.getHeight() << " x " << to.getWidth()
         << (same ? " cores: between grids there is coremesh.reshape_grid"
                  : " cores: on one grid there is coremesh.relayout");
}

LogicalResult RelayoutOp::verify() {
  return verifyGrids(*this, true); // relayout_c1
}

LogicalResult ReshapeGridOp::verify() {
  return verifyGrids(*this, false); // reshape_grid_c1
}

//===----------------------------------------------------------------------===//
// ShiftOp, HaloOp and MulticastOp
//===----------------------------------------------------------------------===//

/// The tensor type with another split of one dimension.
static RankedTensorType withSplit(RankedTensorType type, int64_t dim,
                                  SplitAttr split) {
  auto layout = cast<LayoutAttr>(type.getEncoding());
  SmallVector<Attribute> splits(layout.getSplits());
  splits[dim] = split;
  return type.cloneWithEncoding(
      LayoutAttr::get(type.getContext(), layout.getHeight(), layout.getWidth(),
                      splits, layout.getAtY(), layout.getAtX()));
}

LogicalResult ShiftOp::verify() {
  RankedTensorType source = getSource().getType();
  LayoutAttr layout = layoutOf(getSource());
  int64_t dim = layout.getDim(getAxis());
  SplitAttr split = dim < 0 ? SplitAttr() : layout.getSplit(dim);
  // shift_c1
  if (!split || split.isUneven() || split.getDeal() != Deal::block)
    return emitOpError("needs a tensor that the axis ")
           << stringifyAxis(getAxis()) << " splits in equal blocks, not "
           << source;
  int64_t length = layout.getLength(getAxis());
  int64_t rotate =
      (split.getRotate() % length + int64_t(getBy()) % length) % length;
  auto moved =
      SplitAttr::get(getContext(), split.getAxis(), split.getOrder(),
                     split.getSkewed(), rotate < 0 ? rotate + length : rotate,
                     split.getDeal(), split.getBlocks());
  RankedTensorType expected = withSplit(source, dim, moved);
  if (getResult().getType() == expected) // shift_c2
    return success();
  return emitOpError("must have a result of type ")
         << expected << ", not " << getResult().getType();
}

/// halo_c3: the source, but parts of one size along a dimension.
static RankedTensorType withParts(RankedTensorType type, int64_t dim,
                                  SplitAttr split, int64_t size) {
  SmallVector<int64_t> shape(type.getShape());
  auto layout = cast<LayoutAttr>(type.getEncoding());
  shape[dim] = layout.getLength(split.getAxis()) * size;
  auto plainSplit = SplitAttr::get(type.getContext(), split.getAxis(),
                                   split.getOrder(), false, 0, Deal::block, {});
  return withSplit(type, dim, plainSplit).clone(shape);
}

LogicalResult HaloOp::verify() {
  RankedTensorType source = getSource().getType();
  int64_t dim = getDim(), step = getStep(), size = getSize();
  SplitAttr split = dim < 0 || dim >= source.getRank()
                        ? SplitAttr()
                        : layoutOf(getSource()).getSplit(dim);
  if (!split || split.isUneven() || !split.isPlain()) // halo_c1
    return emitOpError("needs a tensor with dimension ")
           << dim << " split in equal blocks in their places, not " << source;
  if (step <= 0 || size <= 0) // halo_c2
    return emitOpError("has parts of ")
           << size << " elements, one every " << step
           << ": both numbers are positive";
  if (getFill().getType() != source.getElementType()) // halo_c2
    return emitOpError("fills ") << source << " with a number of another type, "
                                 << getFill().getType();
  RankedTensorType expected = withParts(source, dim, split, size);
  if (getResult().getType() == expected) // halo_c3
    return success();
  return emitOpError("must have a result of type ")
         << expected << ", not " << getResult().getType();
}

/// The tensor type with another position along an axis; -1 is none.
static RankedTensorType atPosition(RankedTensorType type, Axis axis,
                                   int64_t at) {
  auto layout = cast<LayoutAttr>(type.getEncoding());
  return type.cloneWithEncoding(LayoutAttr::get(
      type.getContext(), layout.getHeight(), layout.getWidth(),
      layout.getSplits(), axis == Axis::y ? at : layout.getAtY(),
      axis == Axis::x ? at : layout.getAtX()));
}

LogicalResult MulticastOp::verify() {
  if (layoutOf(getSource()).getAt(getAxis()) < 0) // multicast_c1
    return emitOpError("needs a tensor at one position of the axis ")
           << stringifyAxis(getAxis()) << ", not " << getSource().getType();
  RankedTensorType expected = atPosition(getSource().getType(), getAxis(), -1);
  if (getResult().getType() == expected) // multicast_c2
    return success();
  return emitOpError("must have a result of type ")
         << expected << ", not " << getResult().getType();
}

//===----------------------------------------------------------------------===//
// ReduceOp and AllreduceOp
//===----------------------------------------------------------------------===//

LogicalResult shared::verifyLevels(Operation *op, Algorithm algorithm,
                                   std::optional<uint64_t> k,
                                   std::optional<ArrayRef<int64_t>> groups) {
  if (algorithm != Algorithm::k_tree && (k || groups))
    return op->emitOpError("has levels, but ")
           << stringifyAlgorithm(algorithm) << " has none: only k_tree has";
  int64_t levels = k.value_or(2);
  if (levels < 1)
    return op->emitOpError("has ") << levels << " levels: it needs 1 or more";
  if (!groups)
    return success();
  bool isWrong =
      llvm::any_of(*groups, [](int64_t number) { return number < 1; });
  if (int64_t(groups->size()) == levels - 1 && !isWrong)
    return success();
  return op->emitOpError("has ")
         << levels << " levels: it needs " << levels - 1
         << " positive numbers of groups, since the last level is one group";
}

/// The type of the source without the dimension, at a position of the axis.
static RankedTensorType reduced(RankedTensorType source, int64_t dim,
                                int64_t at) {
  auto layout = cast<LayoutAttr>(source.getEncoding());
  Axis axis = layout.getSplit(dim).getAxis();
  SmallVector<int64_t> shape(source.getShape());
  SmallVector<Attribute> splits(layout.getSplits());
  shape.erase(shape.begin() + dim);
  splits.erase(splits.begin() + dim);
  return RankedTensorType::get(
      shape, source.getElementType(),
      LayoutAttr::get(source.getContext(), layout.getHeight(),
                      layout.getWidth(), splits,
                      axis == Axis::y ? at : layout.getAtY(),
                      axis == Axis::x ? at : layout.getAtX()));
}

/// reduce_c1, allreduce_c1
template <typename Op> static LogicalResult verifyDim(Op op) {
  int64_t dim = op.getDim();
  if (dim >= 0 && dim < op.getSource().getType().getRank() &&
      layoutOf(op.getSource()).getSplit(dim))
    return success();
  return op.emitOpError("cannot reduce dimension ")
         << dim << " of " << op.getSource().getType()
         << ": it must be one that an axis splits";
}

LogicalResult ReduceOp::verify() {
  if (failed(verifyDim(*this))) // reduce_c1
    return failure();
  if (getAlgorithm() == Algorithm::ring) // reduce_c3
    return emitOpError("has no root with a ring: use coremesh.allreduce");
  if (failed(verifyLevels(*this, getAlgorithm(), getK(),
                          getGroups()))) // reduce_c3
    return failure();
  RankedTensorType source = getSource().getType(),
                   result = getResult().getType();
  Axis axis = layoutOf(getSource()).getSplit(getDim()).getAxis();
  int64_t at = layoutOf(getResult()).getAt(axis);
  if (at >= 0 && at < layoutOf(getSource()).getLength(axis) &&
      result == reduced(source, getDim(), at)) // reduce_c2
    return success();
  return emitOpError("must have a result at one position of the axis ")
         << stringifyAxis(axis) << ", like " << reduced(source, getDim(), 0)
         << ", not " << result;
}

LogicalResult AllreduceOp::verify() {
  if (failed(verifyDim(*this))) // allreduce_c1
    return failure();
  if (failed(verifyLevels(*this, getAlgorithm(), getK(),
                          getGroups()))) // allreduce_c3
    return failure();
  RankedTensorType expected = reduced(getSource().getType(), getDim(), -1);
  if (getResult().getType() == expected) // allreduce_c2
    return success();
  return emitOpError("must have a result of type ")
         << expected << ", not " << getResult().getType();
}

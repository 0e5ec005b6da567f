//===- TaskPlaces.cpp - where the results of a group are made -------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/GroupToKernel/TaskEmitter.h"

using namespace mlir;

namespace tilewright {

Value destinationOf(tile::GroupOp group, unsigned result) {
  Value value = group.getBody().front().getTerminator()->getOperand(result);
  auto inner = value.getDefiningOp<tile::GroupOp>();
  if (!inner)
    return {};
  unsigned number = cast<OpResult>(value).getResultNumber();
  Value made = inner.getBody().front().getTerminator()->getOperand(number);
  auto op = made.getDefiningOp<linalg::GenericOp>();
  if (!op)
    return {};
  OpOperand *init =
      op.getDpsInitOperand(cast<OpResult>(made).getResultNumber());
  auto innerArg = dyn_cast<BlockArgument>(init->get());
  if (!innerArg || op.payloadUsesValueFromOperand(init))
    return {};
  auto outerArg =
      dyn_cast<BlockArgument>(inner->getOperand(innerArg.getArgNumber()));
  return outerArg ? group->getOperand(outerArg.getArgNumber()) : Value();
}

/// An operand of `group` as its register groups know it.
static Value operandOf(tile::GroupOp group, Value value) {
  auto argument = cast<BlockArgument>(value);
  auto inner = cast<tile::GroupOp>(argument.getOwner()->getParentOp());
  auto outer = cast<BlockArgument>(inner->getOperand(argument.getArgNumber()));
  return group->getOperand(outer.getArgNumber());
}

SmallVector<Value> outerSizes(OpBuilder &builder, tile::GroupOp group,
                              OpResult made) {
  auto outside = [&](Value value) { return operandOf(group, value); };
  Value place = made; // as it is where it only says how far loops run
  if (auto inner = dyn_cast<tile::GroupOp>(made.getOwner())) {
    Operation *yield = inner.getBody().front().getTerminator();
    auto result = cast<OpResult>(yield->getOperand(made.getResultNumber()));
    place = cast<linalg::GenericOp>(result.getOwner())
                .getDpsInitOperand(result.getResultNumber())
                ->get();
  }
  while (auto fill = place.getDefiningOp<linalg::FillOp>())
    place = fill.getOutputs()[0];
  if (auto empty = place.getDefiningOp<tensor::EmptyOp>())
    return llvm::map_to_vector(empty.getDynamicSizes(), outside);
  SmallVector<Value> sizes;
  auto type = cast<RankedTensorType>(place.getType());
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    if (type.isDynamicDim(dim))
      sizes.push_back(
          tensor::DimOp::create(builder, group.getLoc(), outside(place), dim));
  return sizes;
}

/// Whether all that a nest does along the loops of an access is one tile.
static bool isOneTile(const NestAnalysis &nest, const Box &box,
                      const Access &access) {
  for (unsigned dim = 0; dim < nest.extents.size(); ++dim) {
    std::optional<int64_t> size = staticSize(box.sizes[dim]);
    if (!size)
      size = nest.bound(dim);
    bool used = llvm::any_of(
        access, [&](AffineExpr expr) { return expr.isFunctionOfDim(dim); });
    if (used && (!size || *size > nest.registerTile(dim)))
      return false;
  }
  return true;
}

/// Whether a result is made and read as one tile: tile-buffers-to-registers
/// then makes a value of its buffer.
bool TaskEmitter::isOneTile(OpResult result, ArrayRef<Box> boxes) const {
  if (!isPadded())
    return false;
  for (auto [nest, box] : llvm::zip_equal(nests, boxes)) {
    Operation *yield =
        tile::GroupOp(nest.group).getBody().front().getTerminator();
    if (nest.group == result.getOwner()) {
      auto made = cast<OpResult>(yield->getOperand(result.getResultNumber()));
      if (!tilewright::isOneTile(nest, box, nest.resultAccess(made)))
        return false;
    }
    for (const NestRead &read : nest.reads)
      if (loops.makerOf(read.value) == result &&
          !tilewright::isOneTile(nest, box, read.access))
        return false;
  }
  return true;
}

/// Results whose part in a task has no bound, or no room.
LogicalResult TaskEmitter::findSpills() {
  FailureOr<SmallVector<Box>> boxes = propagate(wholeTasks(), SumBlock());
  if (failed(boxes))
    return failure();
  Operation *end = group.getBody().front().getTerminator();
  int64_t held = 0;
  for (auto [nest, box] : llvm::zip_equal(nests, *boxes)) {
    Operation *yield = nest.group.getBody().front().getTerminator();
    for (OpResult result : nest.group->getResults()) {
      Access made = nest.resultAccess(
          cast<OpResult>(yield->getOperand(result.getResultNumber())));
      auto type = cast<ShapedType>(result.getType());
      int64_t most = 1 << 20, bytes = type.getElementTypeBitWidth() / 8;
      bool unbounded = llvm::any_of(made, [&, &box = box](AffineExpr expr) {
        std::optional<int64_t> size = boundOf(regionOf(expr, box).second);
        bytes = size ? bytes * *size : bytes;
        return !size || (!type.hasStaticShape() && bytes > most);
      });
      if (llvm::is_contained(end->getOperands(), result))
        continue;
      bool needsRoom = !unbounded && loops.placeOf(result) == result &&
                       !isOneTile(result, *boxes);
      int64_t kept = needsRoom ? bytes : 0;
      if (unbounded || held + kept > room)
        spills.push_back(result);
      else
        held += kept;
    }
  }
  return success();
}

std::optional<int64_t> TaskEmitter::boundOf(AffineExpr size) const {
  return sizes.bound(size, llvm::map_to_vector(grid, [](const GridDim &dim) {
                       return dim.tile;
                     }));
}

} // namespace tilewright

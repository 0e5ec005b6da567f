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

} // namespace tilewright

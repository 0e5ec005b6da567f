//===- LiftReductions.cpp - associative reductions ------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/FractalToLinalg/Lifter.h"
#include "lib/Conversion/FractalToLinalg/Presences.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::fractal;

/// The one scalar operation by which a reduction combines elements of its
/// operands at the same place; null where it does something else.
static Operation *combiner(ReduceOp op) {
  Block &body = op.getBodyBlock();
  if (op.getArrays().size() != 1 || !llvm::hasNItems(body, 2))
    return nullptr;
  Operation *combine = &body.front();
  if (combine->getNumOperands() != 2 || combine->getNumResults() != 1 ||
      op.getYield().getValues().front() != combine->getResult(0))
    return nullptr;
  Value left = op.getLefts()[0], right = op.getRights()[0];
  for (Value side : {left, right})
    if (!llvm::is_contained(combine->getOperands(), side))
      return nullptr;
  return OpTrait::hasElementwiseMappableTraits(combine) ? combine : nullptr;
}

/// The scalar operation of a generic that combines both sides at each place.
static Operation *genericCombiner(ReduceOp op) {
  Block &body = op.getBodyBlock();
  auto generic = dyn_cast_or_null<linalg::GenericOp>(
      op.getYield().getValues().front().getDefiningOp());
  if (op.getArrays().size() != 1 || !generic || generic->getBlock() != &body ||
      generic.getNumDpsInputs() != 2 || generic.getNumResults() != 1 ||
      generic.getNumReductionLoops() != 0)
    return nullptr;
  for (Value side : {Value(op.getLefts()[0]), Value(op.getRights()[0])})
    if (!llvm::is_contained(generic.getInputs(), side))
      return nullptr;
  if (!llvm::all_of(generic.getIndexingMapsArray(),
                    [](AffineMap map) { return map.isIdentity(); }) ||
      !llvm::hasNItems(*generic.getBody(), 2))
    return nullptr;
  Operation *scalar = &generic.getBody()->front();
  auto of = [&](Value operand) {
    auto argument = dyn_cast<BlockArgument>(operand);
    return argument && argument.getOwner() == generic.getBody() &&
           argument.getArgNumber() < 2;
  };
  bool plain = scalar->getNumOperands() == 2 && scalar->getNumResults() == 1 &&
               llvm::all_of(scalar->getOperands(), of) &&
               scalar->getOperand(0) != scalar->getOperand(1);
  return plain ? scalar : nullptr;
}

/// Whether the left side is the scalar operation's first operand.
static bool leftIsFirst(ReduceOp op, Operation *scalar) {
  Value first = scalar->getOperand(0);
  if (auto argument = dyn_cast<BlockArgument>(first);
      argument && argument.getOwner() != &op.getBodyBlock())
    first = cast<linalg::GenericOp>(scalar->getParentOp())
                .getInputs()[argument.getArgNumber()];
  return first == op.getLefts()[0];
}

/// The number that changes nothing in an operation on numbers or tensors; null
/// if there is none.
static TypedAttr neutralOf(Operation *combine) {
  std::optional<TypedAttr> found = arith::getNeutralElement(combine);
  if (!found)
    return {};
  Type number = getElementTypeOrSelf(combine->getResult(0).getType());
  return TypeSwitch<Attribute, TypedAttr>(*found)
      .Case([&](FloatAttr real) {
        return FloatAttr::get(number, real.getValue());
      })
      .Case([&](IntegerAttr whole) {
        return IntegerAttr::get(number, whole.getValue());
      })
      .Case([](SplatElementsAttr all) {
        return cast<TypedAttr>(all.getSplatValue<Attribute>());
      })
      .Default([](Attribute) { return TypedAttr(); });
}

/// One generic with a reduction loop over the list.
static void reduceAtOnce(Lifter &l, ReduceOp op, Operation *scalar) {
  Lifted list = l.lookup(op.getArrays().front());
  if (list.presenceOf(0))
    list = masked(l, list, neutralOf(scalar));
  const Lifted &init = l.lookup(op.getInits().front());
  RankedTensorType leaf = leafOf(op.getInits().front().getType());
  SmallVector<Axis> around = Lifter::loopsOf({list, init});
  int64_t outer = around.size(), rank = outer + leaf.getRank() + 1;
  SmallVector<AffineExpr> read, written;
  for (Axis axis : list.axes)
    read.push_back(l.b.getAffineDimExpr(
        isLevel(axis) ? rank - 1 : llvm::find(around, axis) - around.begin()));
  for (int64_t dim : llvm::seq(rank - 1)) {
    written.push_back(l.b.getAffineDimExpr(dim));
    if (dim >= outer)
      read.push_back(written.back());
  }
  AffineMap maps[] = {AffineMap::get(rank, 0, read, l.b.getContext()),
                      AffineMap::get(rank, 0, written, l.b.getContext())};
  SmallVector<utils::IteratorType> kinds(rank, utils::IteratorType::parallel);
  kinds.back() = utils::IteratorType::reduction;
  Value into = l.aligned(init, around);
  bool leftFirst = leftIsFirst(op, scalar);
  auto generic = linalg::GenericOp::create(
      l.b, into.getType(), list.tensor, into, maps, kinds,
      [&](OpBuilder &inner, Location loc, ValueRange args) {
        // What was combined so far stands left of the next element.
        SmallVector<Value> sides = {args[1], args[0]};
        if (!leftFirst)
          std::swap(sides[0], sides[1]);
        OperationState state(
            loc, scalar->getName(), sides,
            getElementTypeOrSelf(scalar->getResult(0).getType()),
            scalar->getAttrs());
        Operation *combined = inner.create(state);
        linalg::YieldOp::create(inner, loc, combined->getResults());
      });
  l.define(op.getResult(0), {generic.getResult(0), around, {}});
}

LogicalResult tilewright::liftReduce(Lifter &l, ReduceOp op) {
  Operation *scalar = combiner(op);
  if (!scalar)
    scalar = genericCombiner(op);
  bool isLeaf = isa<RankedTensorType>(op.getInits().front().getType());
  const Lifted &list = l.lookup(op.getArrays().front());
  // Elements that are not there become the operation's neutral one.
  bool isMasked = static_cast<bool>(list.presenceOf(0));
  bool canMask = scalar && (!isMasked || neutralOf(scalar));
  if (canMask && isLeaf && (isMasked || list.dimOf(levelAxis(0)))) {
    reduceAtOnce(l, op, scalar);
    return success();
  }
  return liftLoop(l, op, op.getInits(), op.getArrays(), /*right=*/false,
                  /*scans=*/false);
}

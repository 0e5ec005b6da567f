//===- LiftComputeOps.cpp - maps, scans and folds -------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/FractalToLinalg/Lifter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::fractal;

/// The length that lists have in common, a number where one of them has one.
static OpFoldResult commonLength(Lifter &l, ValueRange arrays) {
  for (Value array : arrays)
    if (std::optional<int64_t> size =
            getConstantIntValue(l.lookup(array).lengths.front()))
      return l.b.getIndexAttr(*size);
  return l.lookup(arrays.front()).lengths.front();
}

static LogicalResult liftMap(Lifter &l, MapOp op) {
  OpFoldResult length = commonLength(l, op.getArrays());
  Axis loop = l.addLoop(length);
  for (auto [array, element] :
       llvm::zip_equal(op.getArrays(), op.getElements()))
    l.define(element, l.lookup(array).entered(loop));
  if (failed(l.lift(op.getBodyBlock())))
    return failure();
  for (auto [value, result] :
       llvm::zip_equal(op.getYield().getValues(), op.getResults()))
    l.define(result, l.lookup(value).listed(loop, length));
  return success();
}

//===----------------------------------------------------------------------===//
// Recurrences
//===----------------------------------------------------------------------===//

namespace {
/// A state between two steps: which axes it has in memory, and its lengths.
struct State {
  SmallVector<Axis> axes;
  SmallVector<OpFoldResult> lengths;
  RankedTensorType leaf;

  Lifted with(Value tensor) const { return {tensor, axes, lengths}; }
};
} // namespace

/// As the init has it, if it varies with all that the recurrence does; else
/// levels first.
static State stateOf(Lifter &l, Value init, ArrayRef<Axis> around) {
  const Lifted &lifted = l.lookup(init);
  SmallVector<Axis> axes = levelsOf(lifted);
  llvm::append_range(axes, around);
  if (lifted.axes.size() == axes.size())
    axes = lifted.axes;
  return {axes, lifted.lengths, leafOf(init.getType())};
}

/// Where a list of all states is written.
static Value emptyList(Lifter &l, const State &state, OpFoldResult length) {
  SmallVector<OpFoldResult> sizes = {length};
  llvm::append_range(sizes, l.sizesOf(state.with({}), state.axes));
  return l.empty(sizes, state.leaf);
}

static Value insertAt(Lifter &l, Value state, Value list, OpFoldResult index) {
  SmallVector<OpFoldResult> offsets, sizes, strides;
  int64_t rank = cast<RankedTensorType>(list.getType()).getRank();
  takeAll(l, list, rank, offsets, sizes, strides);
  offsets.front() = index;
  sizes.front() = l.b.getIndexAttr(1);
  return l.inserted(state, list, offsets, sizes, strides);
}

/// The types of sizes that only a run knows may differ.
static Value castTo(Lifter &l, Value value, Type type) {
  return value.getType() == type
             ? value
             : tensor::CastOp::create(l.b, type, value).getResult();
}

/// The element of a step. That of a single one is a number from the start:
/// `canonicalize` takes the wrong dimension of size one for the one that a
/// slice drops when its offset becomes a constant.
static OpFoldResult stepOf(Lifter &l, scf::ForOp loop, OpFoldResult length,
                           bool right) {
  if (getConstantIntValue(length) == 1)
    return l.b.getIndexAttr(0);
  Value at = loop.getInductionVar();
  if (!right)
    return at;
  Value last = arith::SubIOp::create(l.b, loop.getUpperBound(), loop.getStep());
  return arith::SubIOp::create(l.b, last, at).getResult();
}

/// The next states, from those before and the elements of a step.
static FailureOr<SmallVector<Lifted>> liftStep(Lifter &l, Block &body,
                                               ArrayRef<Lifted> arguments) {
  for (auto [argument, value] : llvm::zip_equal(body.getArguments(), arguments))
    l.define(argument, value);
  if (failed(l.lift(body)))
    return failure();
  return llvm::map_to_vector(body.getTerminator()->getOperands(),
                             [&](Value value) { return l.lookup(value); });
}

LogicalResult tilewright::liftLoop(Lifter &l, Operation *op, ValueRange inits,
                                   ValueRange arrays, bool right, bool scans) {
  OpFoldResult length = commonLength(l, arrays);
  SmallVector<Axis> around = l.loopsOf(op);
  SmallVector<State> states = llvm::map_to_vector(
      inits, [&](Value init) { return stateOf(l, init, around); });
  SmallVector<Value> carried;
  for (auto [init, state] : llvm::zip_equal(inits, states))
    carried.push_back(l.aligned(l.lookup(init), state.axes));
  if (scans)
    for (const State &state : states)
      carried.push_back(emptyList(l, state, length));
  Value zero = l.index(l.b.getIndexAttr(0)), one = l.index(l.b.getIndexAttr(1));
  Value count = l.index(length);
  auto loop = scf::ForOp::create(l.b, zero, count, one, carried);
  {
    OpBuilder::InsertionGuard guard(l.b);
    l.b.setInsertionPointToEnd(loop.getBody());
    OpFoldResult at = stepOf(l, loop, length, right);
    SmallVector<Lifted> arguments;
    for (auto [state, arg] : llvm::zip(states, loop.getRegionIterArgs()))
      arguments.push_back(state.with(arg));
    for (Value array : arrays)
      arguments.push_back(l.elementAt(l.lookup(array), at));
    FailureOr<SmallVector<Lifted>> next =
        liftStep(l, op->getRegion(0).front(), arguments);
    if (failed(next))
      return failure();
    l.b.setLoc(op->getLoc());
    SmallVector<Value> after;
    for (auto [state, value] : llvm::zip_equal(states, *next))
      after.push_back(l.aligned(value, state.axes));
    for (int64_t number : llvm::seq<int64_t>(scans ? states.size() : 0))
      after.push_back(insertAt(l, after[number],
                               loop.getRegionIterArgs()[states.size() + number],
                               at));
    for (auto [value, arg] : llvm::zip_equal(after, loop.getRegionIterArgs()))
      value = castTo(l, value, arg.getType());
    scf::YieldOp::create(l.b, after);
  }
  for (auto [number, state] : llvm::enumerate(states)) {
    Lifted last = state.with(loop.getResult(number));
    if (scans) {
      last = last.repeated(length);
      last.axes.insert(last.axes.begin(), levelAxis(0));
      last.tensor = loop.getResult(states.size() + number);
    }
    l.define(op->getResult(number), last);
  }
  return success();
}

template <typename Op> static LogicalResult liftRecurrence(Lifter &l, Op op) {
  return liftLoop(l, op, op.getInits(), op.getArrays(), op.getRight(),
                  /*scans=*/std::is_same_v<Op, ScanOp>);
}

std::optional<LogicalResult> tilewright::liftComputeOp(Lifter &l,
                                                       Operation *op) {
  using Done = std::optional<LogicalResult>;
  return TypeSwitch<Operation *, Done>(op)
      .Case([&](MapOp map) { return liftMap(l, map); })
      .Case([&](ScanOp scan) { return liftRecurrence(l, scan); })
      .Case([&](FoldOp fold) { return liftRecurrence(l, fold); })
      .Case([&](ReduceOp reduce) { return liftReduce(l, reduce); })
      .Case([&](RecurseOp recurse) { return liftRecurse(l, recurse); })
      .Case([&](FilterOp filter) {
        return unsupported(filter)
               << "has no lowering yet: how many elements it keeps is known at "
                  "run time only; select values in a map instead";
      })
      .Default([](Operation *) { return std::nullopt; });
}

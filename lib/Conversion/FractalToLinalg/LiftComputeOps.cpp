//===- LiftComputeOps.cpp - maps, scans and folds -------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/FractalToLinalg/Lifter.h"
#include "lib/Conversion/FractalToLinalg/Presences.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::fractal;

static LogicalResult liftMap(Lifter &l, MapOp op) {
  InStep step = inStep(l, op.getArrays());
  Axis loop = l.addLoop(step.length);
  for (auto [list, element] : llvm::zip_equal(step.lists, op.getElements()))
    l.define(element, list.entered(loop));
  if (failed(l.lift(op.getBodyBlock())))
    return failure();
  for (auto [value, result] :
       llvm::zip_equal(op.getYield().getValues(), op.getResults())) {
    Lifted list = l.lookup(value).listed(loop, step.length);
    if (step.presence)
      list.setPresence(0, step.presence);
    l.define(result, list);
  }
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
  SmallVector<Presence> presences;

  Lifted with(Value tensor) const { return {tensor, axes, lengths, presences}; }
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
  return {axes, lifted.lengths, leafOf(init.getType()), lifted.presences};
}

/// Where a list of all states is written: zeros where the loop ends before the
/// list does, since maps compute those places, too.
static Value emptyList(Lifter &l, const State &state, OpFoldResult length,
                       bool isFull) {
  SmallVector<OpFoldResult> sizes = {length};
  llvm::append_range(sizes, l.sizesOf(state.with({}), state.axes));
  Value list = l.empty(sizes, state.leaf);
  if (isFull)
    return list;
  Value zero = arith::ConstantOp::create(
      l.b, l.b.getZeroAttr(state.leaf.getElementType()));
  return linalg::FillOp::create(l.b, zero, list).getResult(0);
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

namespace {
/// What a loop of states needs.
struct Recurrence {
  Operation *op;
  InStep step;
  SmallVector<State> states;
  bool right, scans;
  SmallVector<int64_t> listed; ///< of a scan, the states whose list is read
  bool masks = false;          ///< whether some lists end before others
};
} // namespace

/// States are as long in all steps as they are at first: where each step gave
/// a list of a length of its own, the lengths would be states too.
static LogicalResult checkStates(const Recurrence &r, ArrayRef<Lifted> next) {
  for (auto [state, value] : llvm::zip_equal(r.states, next))
    for (int64_t level : llvm::seq<int64_t>(state.lengths.size())) {
      Presence before = state.with({}).presenceOf(level);
      Presence after = value.presenceOf(level);
      if (before.tensor != after.tensor || before.axes != after.axes ||
          getConstantIntValue(state.lengths[level]) !=
              getConstantIntValue(value.lengths[level]))
        return unsupported(r.op)
               << "has a state that is a list whose length a step changes, "
                  "and only a run knows it, which has no lowering yet; keep "
                  "the length, as map and scan do";
    }
  return success();
}

/// All that changes in a step: the states, then the lists of them.
static FailureOr<SmallVector<Value>> stepValues(Lifter &l, Recurrence &r,
                                                scf::ForOp loop) {
  OpFoldResult at = stepOf(l, loop, r.step.length, r.right);
  ValueRange carried = loop.getRegionIterArgs();
  SmallVector<Lifted> arguments;
  for (auto [state, arg] : llvm::zip(r.states, carried))
    arguments.push_back(state.with(arg));
  for (const Lifted &list : r.step.lists)
    arguments.push_back(l.elementAt(list, at));
  FailureOr<SmallVector<Lifted>> next =
      liftStep(l, r.op->getRegion(0).front(), arguments);
  if (failed(next) || failed(checkStates(r, *next)))
    return failure();
  l.b.setLoc(r.op->getLoc());
  Lifted list = r.step.lists.front();
  list.setPresence(0, r.step.presence);
  SmallVector<Value> after;
  for (auto [number, state, value] : llvm::enumerate(r.states, *next))
    after.push_back(
        r.masks ? kept(l, list, at, value, arguments[number], state.axes)
                : l.aligned(value, state.axes));
  for (auto [place, number] : llvm::enumerate(r.listed))
    after.push_back(
        insertAt(l, after[number], carried[r.states.size() + place], at));
  for (auto [value, arg] : llvm::zip_equal(after, carried))
    value = castTo(l, value, arg.getType());
  return after;
}

/// The last states, or the lists of all of them that are read.
static void defineStates(Lifter &l, const Recurrence &r, scf::ForOp loop) {
  if (!r.scans) {
    for (auto [number, state] : llvm::enumerate(r.states))
      l.define(r.op->getResult(number), state.with(loop.getResult(number)));
    return;
  }
  for (auto [place, number] : llvm::enumerate(r.listed)) {
    Lifted list = r.states[number].with({}).repeated(r.step.length);
    list.axes.insert(list.axes.begin(), levelAxis(0));
    list.tensor = loop.getResult(r.states.size() + place);
    if (r.step.presence)
      list.setPresence(0, r.step.presence);
    l.define(r.op->getResult(number), list);
  }
}

LogicalResult tilewright::liftLoop(Lifter &l, Operation *op, ValueRange inits,
                                   ValueRange arrays, bool right, bool scans) {
  for (Value init : inits)
    l.define(init, compacted(l, l.lookup(init)));
  SmallVector<Axis> around = l.loopsOf(op);
  Recurrence r = {op, inStep(l, arrays), {}, right, scans, {}};
  r.states = llvm::map_to_vector(
      inits, [&](Value init) { return stateOf(l, init, around); });
  SmallVector<Value> carried;
  for (auto [init, state] : llvm::zip_equal(inits, r.states))
    carried.push_back(l.aligned(l.lookup(init), state.axes));
  OpFoldResult steps = r.step.length;
  if (const Presence &presence = r.step.presence) {
    steps = longestOf(l, presence, steps);
    r.masks = presence.isMask() || !presence.axes.empty();
  }
  auto known = getConstantIntValue(steps);
  bool isFull = steps == r.step.length ||
                (known && known == getConstantIntValue(r.step.length));
  for (auto [number, state] : llvm::enumerate(r.states)) {
    if (!scans || op->getResult(number).use_empty())
      continue;
    r.listed.push_back(number);
    carried.push_back(emptyList(l, state, r.step.length, isFull));
  }
  Value zero = l.index(l.b.getIndexAttr(0)), one = l.index(l.b.getIndexAttr(1));
  Value count = l.index(steps);
  auto loop = scf::ForOp::create(l.b, zero, count, one, carried);
  {
    OpBuilder::InsertionGuard guard(l.b);
    l.b.setInsertionPointToEnd(loop.getBody());
    FailureOr<SmallVector<Value>> after = stepValues(l, r, loop);
    if (failed(after))
      return failure();
    scf::YieldOp::create(l.b, *after);
  }
  defineStates(l, r, loop);
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
      .Case([&](FilterOp filter) { return liftFilter(l, filter); })
      .Default([](Operation *) { return std::nullopt; });
}

//===- UnrollRecurrences.cpp - steps one after the other ------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDecisions.h"
#include "lib/Transforms/Recurrences/Passes.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace tilewright {
#define GEN_PASS_DEF_UNROLLRECURRENCES
#include "lib/Transforms/Recurrences/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;
using namespace tilewright::fractal;

/// A list of these elements.
static Value listOf(ImplicitLocOpBuilder &b, ArrayRef<Value> elements,
                    Type type) {
  SmallVector<Value> parts;
  for (Value element : elements)
    parts.push_back(RepeatOp::create(b, ArrayType::listOf(1, element.getType()),
                                     element, Value(), b.getI64IntegerAttr(1)));
  return JoinOp::create(b, type, parts);
}

/// Steps on `count` elements of lists from `begin` on, one after the other;
/// `all` are the states after each element, in the order of the elements.
template <typename Op> struct Steps {
  Steps(ImplicitLocOpBuilder &b, Op op, ValueRange arrays, ValueRange inits,
        int64_t begin, int64_t count)
      : states(inits), all(inits.size(), SmallVector<Value>(count)) {
    for (int64_t number : llvm::seq(count)) {
      int64_t place = op.isLeft() ? number : count - 1 - number;
      step(b, op, arrays, begin + place);
      for (auto [list, state] : llvm::zip_equal(all, states))
        list[place] = state;
    }
  }

  void step(ImplicitLocOpBuilder &b, Op op, ValueRange arrays, int64_t place) {
    IRMapping now;
    now.map(op.getStates(), states);
    Value index = arith::ConstantIndexOp::create(b, place);
    for (auto [array, element] : llvm::zip_equal(arrays, op.getElements())) {
      Value read = AtOp::create(b, element.getType(), array, index);
      now.map(element, read);
    }
    for (Operation &inner : op.getBodyBlock().without_terminator())
      b.clone(inner, now);
    states = llvm::map_to_vector(op.getYield().getValues(), [&](Value value) {
      return now.lookupOrDefault(value);
    });
  }

  SmallVector<Value> states;
  SmallVector<SmallVector<Value>> all;
};

static Type elementOf(Value array) {
  return cast<ArrayType>(array.getType()).getElementType();
}

/// Elements of a list that a loop goes through: groups of `steps` from `begin`.
struct Groups {
  int64_t begin, count, steps;

  Value of(ImplicitLocOpBuilder &b, Value array) const {
    Type element = elementOf(array);
    auto part = ArrayType::listOf(count * steps, element);
    if (array.getType() != part)
      array = SliceOp::create(b, part, array, ValueRange(), ValueRange(), begin,
                              count * steps, /*stride=*/1);
    auto type = ArrayType::listOf(count, ArrayType::listOf(steps, element));
    return SplitOp::create(b, type, array, count);
  }
};

/// An empty recurrence like `op` over groups of its elements; the builder
/// stands in it.
template <typename Op>
static Op makeLoop(ImplicitLocOpBuilder &b, Op op, const Groups &groups,
                   ArrayRef<Value> inits) {
  SmallVector<Value> lists;
  for (Value array : op.getArrays())
    lists.push_back(groups.of(b, array));
  SmallVector<Type> types, arguments(ValueRange(inits).getTypes());
  for (Type state : arguments)
    types.push_back(std::is_same_v<Op, ScanOp>
                        ? ArrayType::listOf(groups.count, state)
                        : state);
  for (Value list : lists)
    arguments.push_back(elementOf(list));
  auto loop = Op::create(b, types, inits, lists, op.getRight());
  SmallVector<Location> places(arguments.size(), b.getLoc());
  b.createBlock(&loop.getBody(), {}, arguments, places);
  return loop;
}

/// The states after the groups.
static SmallVector<Value> overGroups(ImplicitLocOpBuilder &b, FoldOp op,
                                     const Groups &groups) {
  FoldOp loop = makeLoop(b, op, groups, SmallVector<Value>(op.getInits()));
  Steps<FoldOp> inner(b, op, ValueRange(loop.getElements()),
                      ValueRange(loop.getStates()), 0, groups.steps);
  YieldOp::create(b, inner.states);
  b.setInsertionPointAfter(loop);
  return loop.getResults();
}

/// Lists of the states after each element of the groups: an iteration hands on
/// those of a whole group, as the results are made of them.
static SmallVector<Value> overGroups(ImplicitLocOpBuilder &b, ScanOp op,
                                     const Groups &groups) {
  SmallVector<Value> inits, states, lists;
  for (Value init : op.getInits())
    inits.push_back(
        RepeatOp::create(b, ArrayType::listOf(groups.steps, init.getType()),
                         init, Value(), b.getI64IntegerAttr(groups.steps)));
  ScanOp loop = makeLoop(b, op, groups, inits);
  Value last =
      arith::ConstantIndexOp::create(b, op.isLeft() ? groups.steps - 1 : 0);
  for (Value list : loop.getStates())
    states.push_back(AtOp::create(b, elementOf(list), list, last));
  Steps<ScanOp> inner(b, op, ValueRange(loop.getElements()), states, 0,
                      groups.steps);
  for (auto [list, state] : llvm::zip_equal(inner.all, loop.getStates()))
    lists.push_back(listOf(b, list, state.getType()));
  YieldOp::create(b, lists);
  b.setInsertionPointAfter(loop);
  lists.clear();
  for (auto [init, result] : llvm::zip_equal(op.getInits(), loop.getResults()))
    lists.push_back(FlattenOp::create(
        b, ArrayType::listOf(groups.count * groups.steps, init.getType()),
        result));
  return lists;
}

static SmallVector<Value> results(ImplicitLocOpBuilder &, FoldOp,
                                  const Steps<FoldOp> &rest, ValueRange) {
  return rest.states;
}

/// The list of all states: those of the groups beside the others.
static SmallVector<Value> results(ImplicitLocOpBuilder &b, ScanOp op,
                                  const Steps<ScanOp> &rest,
                                  ValueRange looped) {
  SmallVector<Value> lists;
  for (auto [number, all] : llvm::enumerate(rest.all)) {
    Type type = op.getResult(number).getType();
    if (looped.empty()) {
      lists.push_back(listOf(b, all, type));
      continue;
    }
    Value list = looped[number];
    if (!all.empty()) {
      Value other =
          listOf(b, all, ArrayType::listOf(all.size(), elementOf(list)));
      SmallVector<Value> parts = {list, other};
      if (!op.isLeft())
        std::swap(parts[0], parts[1]);
      list = JoinOp::create(b, type, parts);
    }
    lists.push_back(list);
  }
  return lists;
}

/// The states from which the steps go on that no loop does.
static SmallVector<Value> after(ImplicitLocOpBuilder &, FoldOp, const Groups &,
                                ArrayRef<Value> looped) {
  return SmallVector<Value>(looped);
}
static SmallVector<Value> after(ImplicitLocOpBuilder &b, ScanOp op,
                                const Groups &groups, ArrayRef<Value> looped) {
  Value last = arith::ConstantIndexOp::create(
      b, op.isLeft() ? groups.count * groups.steps - 1 : 0);
  return llvm::map_to_vector(looped, [&](Value list) -> Value {
    return AtOp::create(b, elementOf(list), list, last);
  });
}

/// How many steps are written out; fails where they cannot be.
template <typename Op> static FailureOr<int64_t> stepsOf(Op op) {
  StringRef name = tile::decisions::kUnroll.name;
  int64_t length = op.getLength();
  if (!ArrayType::isKnown(length) || length == 0)
    return op.emitOpError("cannot be unrolled, as '")
           << name << "' asks: its length is zero or not known";
  auto asked = dyn_cast<IntegerAttr>(tile::decisions::kUnroll.get(op));
  if (asked && asked.getInt() < 1)
    return op.emitOpError("has a '") << name << "' of " << asked.getInt()
                                     << ": an iteration has one step or more";
  return asked ? std::min(asked.getInt(), length) : length;
}

/// Writes steps of the recurrence one after the other. Where it has more, they
/// are an iteration of a loop, behind which stands what is left.
template <typename Op> static LogicalResult unroll(Op op) {
  FailureOr<int64_t> steps = stepsOf(op);
  if (failed(steps))
    return failure();
  ImplicitLocOpBuilder b(op.getLoc(), op);
  int64_t length = op.getLength(), count = length / *steps;
  int64_t rest = count > 1 ? length % *steps : length;
  SmallVector<Value> states(op.getInits()), looped;
  if (count > 1) {
    Groups groups{op.isLeft() ? 0 : rest, count, *steps};
    looped = overGroups(b, op, groups);
    states = after(b, op, groups, looped);
  }
  Steps<Op> others(b, op, op.getArrays(), states,
                   op.isLeft() ? length - rest : 0, rest);
  op.replaceAllUsesWith(results(b, op, others, looped));
  op.erase();
  return success();
}

namespace {
struct UnrollRecurrences
    : tilewright::impl::UnrollRecurrencesBase<UnrollRecurrences> {
  void runOnOperation() override {
    SmallVector<Operation *> asked;
    getOperation()->walk([&](Operation *op) {
      if (tile::decisions::kUnroll.get(op))
        asked.push_back(op);
    });
    for (Operation *op : asked) {
      auto scan = dyn_cast<ScanOp>(op);
      if (failed(scan ? unroll(scan) : unroll(cast<FoldOp>(op))))
        return signalPassFailure();
    }
  }
};
} // namespace

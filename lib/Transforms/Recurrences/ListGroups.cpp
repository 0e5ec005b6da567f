//===- ListGroups.cpp - recurrences over groups of elements ---------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Recurrences/ListGroups.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::fractal;

static Type elementOf(Value array) {
  return cast<ArrayType>(array.getType()).getElementType();
}

Value Part::of(ImplicitLocOpBuilder &b, Value array) const {
  auto part = ArrayType::listOf(count, elementOf(array));
  if (array.getType() == part)
    return array;
  return SliceOp::create(b, part, array, ValueRange(), ValueRange(), begin,
                         count, /*stride=*/1);
}

/// Lists cut into `count` groups of `steps` elements from `begin` on.
static SmallVector<Value> inGroups(ImplicitLocOpBuilder &b, ValueRange arrays,
                                   int64_t begin, int64_t count,
                                   int64_t steps) {
  Part part{begin, count * steps};
  return llvm::map_to_vector(arrays, [&](Value array) -> Value {
    auto group = ArrayType::listOf(steps, elementOf(array));
    return SplitOp::create(b, ArrayType::listOf(count, group),
                           part.of(b, array), count);
  });
}

/// An empty recurrence like `op` over lists; the builder stands in it.
template <typename Op>
static Op makeLoop(ImplicitLocOpBuilder &b, Op op, ArrayRef<Value> inits,
                   ArrayRef<Value> lists) {
  int64_t count = cast<ArrayType>(lists.front().getType()).getLength();
  SmallVector<Type> types, arguments(ValueRange(inits).getTypes());
  for (Type state : arguments)
    types.push_back(std::is_same_v<Op, ScanOp> ? ArrayType::listOf(count, state)
                                               : state);
  for (Value list : lists)
    arguments.push_back(elementOf(list));
  auto loop = Op::create(b, types, inits, lists, op.getRight());
  SmallVector<Location> places(arguments.size(), b.getLoc());
  b.createBlock(&loop.getBody(), {}, arguments, places);
  return loop;
}

/// The state after the last element that a recurrence comes to.
static Value lastOf(ImplicitLocOpBuilder &b, Value list, bool left) {
  auto type = cast<ArrayType>(list.getType());
  Value place =
      arith::ConstantIndexOp::create(b, left ? type.getLength() - 1 : 0);
  return AtOp::create(b, type.getElementType(), list, place);
}

/// The states after the groups.
static SmallVector<Value> loopOver(ImplicitLocOpBuilder &b, FoldOp op,
                                   ArrayRef<Value> lists, Part group,
                                   GroupBody body) {
  FoldOp loop = makeLoop(b, op, SmallVector<Value>(op.getInits()), lists);
  YieldOp::create(b, body(b, ValueRange(loop.getStates()),
                          ValueRange(loop.getElements()), group));
  b.setInsertionPointAfter(loop);
  return loop.getResults();
}

/// Lists of the states after each element of the groups: an iteration hands on
/// those of a whole group, as the results are made of them.
static SmallVector<Value> loopOver(ImplicitLocOpBuilder &b, ScanOp op,
                                   ArrayRef<Value> lists, Part group,
                                   GroupBody body) {
  SmallVector<Value> inits, states, results;
  for (Value init : op.getInits())
    inits.push_back(
        RepeatOp::create(b, ArrayType::listOf(group.count, init.getType()),
                         init, Value(), b.getI64IntegerAttr(group.count)));
  ScanOp loop = makeLoop(b, op, inits, lists);
  for (Value list : loop.getStates())
    states.push_back(lastOf(b, list, op.isLeft()));
  YieldOp::create(b, body(b, states, ValueRange(loop.getElements()), group));
  b.setInsertionPointAfter(loop);
  for (Value list : loop.getResults()) {
    auto type = cast<ArrayType>(list.getType());
    auto flat =
        ArrayType::listOf(type.getLength() * group.count,
                          cast<ArrayType>(elementOf(list)).getElementType());
    results.push_back(FlattenOp::create(b, flat, list));
  }
  return results;
}

/// The states that what follows the loop begins with.
static SmallVector<Value> statesBehind(ImplicitLocOpBuilder &, FoldOp,
                                       ArrayRef<Value> looped) {
  return SmallVector<Value>(looped);
}
static SmallVector<Value> statesBehind(ImplicitLocOpBuilder &b, ScanOp op,
                                       ArrayRef<Value> looped) {
  return llvm::map_to_vector(
      looped, [&](Value list) { return lastOf(b, list, op.isLeft()); });
}

static SmallVector<Value> both(ImplicitLocOpBuilder &, FoldOp, ArrayRef<Value>,
                               ArrayRef<Value> rest) {
  return SmallVector<Value>(rest);
}

/// The lists of all states: those of the groups beside the others.
static SmallVector<Value> both(ImplicitLocOpBuilder &b, ScanOp op,
                               ArrayRef<Value> looped, ArrayRef<Value> rest) {
  SmallVector<Value> lists;
  for (auto [result, list, other] :
       llvm::zip_equal(op.getResults(), looped, rest)) {
    SmallVector<Value> parts = {list, other};
    if (!op.isLeft())
      std::swap(parts[0], parts[1]);
    lists.push_back(JoinOp::create(b, result.getType(), parts));
  }
  return lists;
}

template <typename Op>
static SmallVector<Value> loopAndRest(ImplicitLocOpBuilder &b, Op op,
                                      int64_t steps, GroupBody body) {
  int64_t length = op.getLength(), count = length / steps,
          rest = length % steps, first = op.isLeft() ? 0 : rest;
  SmallVector<Value> looped =
      count > 1
          ? loopOver(b, op, inGroups(b, op.getArrays(), first, count, steps),
                     {0, steps}, body)
          : body(b, op.getInits(), op.getArrays(), {first, steps});
  if (rest == 0)
    return looped;
  SmallVector<Value> states = statesBehind(b, op, looped);
  Part left{op.isLeft() ? length - rest : 0, rest};
  return both(b, op, looped, body(b, states, op.getArrays(), left));
}

template <typename Op>
SmallVector<Value> tilewright::overGroups(ImplicitLocOpBuilder &b, Op op,
                                          int64_t steps, GroupBody body) {
  SmallVector<Value> results = loopAndRest(b, op, steps, body);
  for (auto [value, result] : llvm::zip_equal(results, op.getResults()))
    if (value.getType() != result.getType())
      value = CastOp::create(b, result.getType(), value);
  return results;
}

template SmallVector<Value>
tilewright::overGroups<FoldOp>(ImplicitLocOpBuilder &, FoldOp, int64_t,
                               GroupBody);
template SmallVector<Value>
tilewright::overGroups<ScanOp>(ImplicitLocOpBuilder &, ScanOp, int64_t,
                               GroupBody);

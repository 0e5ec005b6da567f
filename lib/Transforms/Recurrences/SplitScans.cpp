//===- SplitScans.cpp - what needs no state, before the recurrence --------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Recurrences/SplitScans.h"
#include "lib/Analysis/UsedValues.h"
#include "lib/Transforms/Recurrences/ListBuilder.h"
#include "lib/Transforms/Recurrences/Passes.h"

#include "mlir/IR/IRMapping.h"

namespace tilewright {
#define GEN_PASS_DEF_SPLITSCANS
#include "lib/Transforms/Recurrences/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;
using namespace tilewright::fractal;

/// Whether an op, or one in its regions, multiplies and sums.
static bool holdsContraction(Operation *op) {
  return op
      ->walk([](linalg::LinalgOp inner) {
        return linalg::isaContractionOpInterface(inner)
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Adds what follows from values of the set in a body, and in those of maps in
/// it.
static void addDependent(Block &body, DenseSet<Value> &states) {
  for (Operation &op : body.without_terminator()) {
    if (auto map = dyn_cast<MapOp>(op)) {
      for (auto [array, element] :
           llvm::zip_equal(map.getArrays(), map.getElements()))
        if (states.contains(array))
          states.insert(element);
      addDependent(map.getBodyBlock(), states);
      for (auto [value, result] :
           llvm::zip_equal(map.getYield().getValues(), map.getResults()))
        if (states.contains(value))
          states.insert(result);
      continue;
    }
    bool depends = !isMemoryEffectFree(&op);
    for (Value value : getUsedValues(&op))
      depends |= states.contains(value);
    if (depends)
      states.insert_range(op.getResults());
  }
}

/// Ops of the body that depend on no state, in their order.
static SetVector<Operation *> independent(Block &body,
                                          const DenseSet<Value> &states) {
  SetVector<Operation *> found;
  for (Operation &op : body.without_terminator()) {
    bool depends = !isMemoryEffectFree(&op);
    for (Value value : getUsedValues(&op)) {
      depends |= states.contains(value);
      Operation *maker = value.getDefiningOp();
      depends |= maker && maker->getBlock() == &body && !found.contains(maker);
    }
    if (!depends)
      found.insert(&op);
  }
  return found;
}

/// The contractions among them that read an element, and all that these need.
static SetVector<Operation *> worthMoving(Block &body,
                                          const SetVector<Operation *> &free) {
  SetVector<Operation *> needed;
  DenseSet<Value> varying;
  for (BlockArgument argument : body.getArguments())
    varying.insert(argument);
  for (Operation *op : free)
    if (llvm::any_of(getUsedValues(op),
                     [&](Value v) { return varying.contains(v); }))
      varying.insert_range(op->getResults());
  for (Operation *op : llvm::reverse(free)) {
    bool used = llvm::any_of(op->getUsers(), [&](Operation *user) {
      Operation *own = body.findAncestorOpInBlock(*user);
      return own && needed.contains(own);
    });
    bool moves = holdsContraction(op) && varying.contains(op->getResult(0));
    if (used || moves)
      needed.insert(op);
  }
  SmallVector<Operation *> ordered(llvm::reverse(needed.getArrayRef()));
  return SetVector<Operation *>(ordered.begin(), ordered.end());
}

/// Results of moved ops that ops that stay read; of those, only ones that are
/// worth a list: what is cheap is made again.
static SmallVector<Value> crossing(Block &body,
                                   const SetVector<Operation *> &moved) {
  SmallVector<Value> values;
  for (Operation *op : moved)
    for (Value result : op->getResults()) {
      bool outside = llvm::any_of(result.getUsers(), [&](Operation *user) {
        return !moved.contains(body.findAncestorOpInBlock(*user));
      });
      if (outside && holdsContraction(op))
        values.push_back(result);
    }
  return values;
}

/// A map in front of the op that computes `values`, over those of its lists
/// that depend on no state; null where there are none.
template <typename Op>
static MapOp makeMap(Op op, const SetVector<Operation *> &moved,
                     ArrayRef<Value> values, const DenseSet<Value> &states) {
  ImplicitLocOpBuilder b(values.front().getLoc(), op);
  SmallVector<Value> arrays, elements;
  for (auto [array, element] :
       llvm::zip_equal(op.getArrays(), op.getElements()))
    if (!states.contains(element)) {
      arrays.push_back(array);
      elements.push_back(element);
    }
  if (arrays.empty())
    return {};
  return buildMap(b, op.getLength(), arrays,
                  [&](ImplicitLocOpBuilder &in, ValueRange arguments) {
                    IRMapping now;
                    now.map(elements, arguments);
                    for (Operation *inner : moved)
                      in.clone(*inner, now);
                    return llvm::map_to_vector(
                        values, [&](Value value) { return now.lookup(value); });
                  });
}

/// The recurrence with these lists beside its own.
template <typename Op>
static void readLists(Op op, MapOp map, ArrayRef<Value> values) {
  Block &body = op.getBodyBlock();
  for (auto [value, list] : llvm::zip_equal(values, map.getResults())) {
    op.getArraysMutable().append(list);
    Value moved = value;
    moved.replaceAllUsesWith(body.addArgument(moved.getType(), moved.getLoc()));
  }
}

/// Moves what depends on no state from the body of a recurrence, or of a map
/// in one, to a map in front of it.
template <typename Op> static void split(Op op, const DenseSet<Value> &states) {
  Block &body = op.getBodyBlock();
  SetVector<Operation *> free = independent(body, states);
  SetVector<Operation *> moved = worthMoving(body, free);
  SmallVector<Value> values = crossing(body, moved);
  if (values.empty())
    return;
  MapOp map = makeMap(op, moved, values, states);
  if (!map)
    return;
  readLists(op, map, values);
  for (Operation *inner : llvm::reverse(moved))
    if (isOpTriviallyDead(inner))
      inner->erase();
}

/// Maps in the body that depend on states in part are split, inner ones first:
/// what they leave in front of them is then a whole op without a state.
static void splitMaps(Block &body, const DenseSet<Value> &states) {
  SmallVector<MapOp> maps(body.getOps<MapOp>());
  for (MapOp map : maps) {
    bool depends = llvm::any_of(getUsedValues(map), [&](Value value) {
      return states.contains(value);
    });
    if (!depends)
      continue;
    splitMaps(map.getBodyBlock(), states);
    split(map, states);
  }
}

/// `more`: what is as good as a state.
template <typename Op>
static void splitRecurrence(Op op, ArrayRef<Value> more = {}) {
  DenseSet<Value> states(op.getStates().begin(), op.getStates().end());
  states.insert_range(more);
  addDependent(op.getBodyBlock(), states);
  splitMaps(op.getBodyBlock(), states);
  split(op, states);
}

/// Splits what is a scan or fold.
static void splitOp(Operation *op) {
  if (auto scan = dyn_cast<ScanOp>(op))
    splitRecurrence(scan);
  else if (auto fold = dyn_cast<FoldOp>(op))
    splitRecurrence(fold);
}

void tilewright::splitPair(const RecurrencePair &pair) {
  SmallVector<Value> below;
  ScanOp inner = pair.inner;
  for (auto [array, element] :
       llvm::zip_equal(inner.getArrays(), inner.getElements()))
    if (llvm::is_contained(pair.states, array))
      below.push_back(element);
  splitRecurrence(inner, below);
  splitOp(pair.outer);
}

namespace {
struct SplitScans : tilewright::impl::SplitScansBase<SplitScans> {
  void runOnOperation() override {
    // Inner recurrences first: what they leave in front may move on.
    getOperation()->walk(splitOp);
  }
};
} // namespace

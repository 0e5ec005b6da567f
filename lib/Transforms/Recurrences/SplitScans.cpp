//===- SplitScans.cpp - what needs no state, before the recurrence --------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

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

/// Values that an op or its regions read from outside of it.
static SetVector<Value> readBy(Operation *op) {
  SetVector<Value> values;
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (!op->isAncestor(operand.getParentBlock()->getParentOp()))
        values.insert(operand);
  });
  return values;
}

/// Ops of the body that depend on no state, in their order.
static SetVector<Operation *> independent(Block &body,
                                          ArrayRef<BlockArgument> states) {
  SetVector<Operation *> found;
  for (Operation &op : body.without_terminator()) {
    bool depends = !isMemoryEffectFree(&op);
    for (Value value : readBy(&op)) {
      depends |= llvm::is_contained(states, value);
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
    if (llvm::any_of(readBy(op), [&](Value v) { return varying.contains(v); }))
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

/// A map in front of the recurrence that computes `values`.
template <typename Op>
static MapOp makeMap(Op op, const SetVector<Operation *> &moved,
                     ArrayRef<Value> values) {
  ImplicitLocOpBuilder b(values.front().getLoc(), op);
  return buildMap(b, op.getLength(), op.getArrays(),
                  [&](ImplicitLocOpBuilder &in, ValueRange arguments) {
                    IRMapping now;
                    now.map(op.getElements(), arguments);
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

template <typename Op> static void splitRecurrence(Op op) {
  Block &body = op.getBodyBlock();
  SetVector<Operation *> free = independent(body, op.getStates());
  SetVector<Operation *> moved = worthMoving(body, free);
  SmallVector<Value> values = crossing(body, moved);
  if (values.empty())
    return;
  MapOp map = makeMap(op, moved, values);
  readLists(op, map, values);
  for (Operation *inner : llvm::reverse(moved))
    if (isOpTriviallyDead(inner))
      inner->erase();
}

namespace {
struct SplitScans : tilewright::impl::SplitScansBase<SplitScans> {
  void runOnOperation() override {
    // Inner recurrences first: what they leave in front may move on.
    getOperation()->walk([](Operation *op) {
      if (auto scan = dyn_cast<ScanOp>(op))
        splitRecurrence(scan);
      else if (auto fold = dyn_cast<FoldOp>(op))
        splitRecurrence(fold);
    });
  }
};
} // namespace

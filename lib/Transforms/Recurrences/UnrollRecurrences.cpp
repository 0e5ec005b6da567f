//===- UnrollRecurrences.cpp - steps one after the other ------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDecisions.h"
#include "lib/Transforms/Recurrences/ListGroups.h"
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

/// The states after the steps.
static SmallVector<Value> resultsOf(ImplicitLocOpBuilder &, FoldOp,
                                    const Steps<FoldOp> &steps) {
  return steps.states;
}
/// Lists of the states after each of them.
static SmallVector<Value> resultsOf(ImplicitLocOpBuilder &b, ScanOp op,
                                    const Steps<ScanOp> &steps) {
  SmallVector<Value> lists;
  for (auto [all, init] : llvm::zip_equal(steps.all, op.getInits()))
    lists.push_back(
        listOf(b, all, ArrayType::listOf(all.size(), init.getType())));
  return lists;
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
  FailureOr<int64_t> count = stepsOf(op);
  if (failed(count))
    return failure();
  ImplicitLocOpBuilder b(op.getLoc(), op);
  auto steps = [&](ImplicitLocOpBuilder &in, ValueRange states,
                   ValueRange lists, Part part) {
    return resultsOf(in, op,
                     Steps<Op>(in, op, lists, states, part.begin, part.count));
  };
  int64_t length = op.getLength();
  bool loops = length >= 2 * *count;
  op.replaceAllUsesWith(overGroups(b, op, loops ? *count : length, steps));
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

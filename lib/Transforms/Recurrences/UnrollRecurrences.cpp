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

/// One step: the states after it.
template <typename Op>
static SmallVector<Value> step(ImplicitLocOpBuilder &b, Op op,
                               ArrayRef<Value> states, int64_t place) {
  IRMapping now;
  now.map(op.getStates(), states);
  Value index = arith::ConstantIndexOp::create(b, place);
  for (auto [array, element] :
       llvm::zip_equal(op.getArrays(), op.getElements())) {
    Value read = AtOp::create(b, element.getType(), array, index);
    now.map(element, read);
  }
  for (Operation &inner : op.getBodyBlock().without_terminator())
    b.clone(inner, now);
  return llvm::map_to_vector(op.getYield().getValues(), [&](Value value) {
    return now.lookupOrDefault(value);
  });
}

template <typename Op> static LogicalResult unroll(Op op) {
  int64_t length = op.getLength();
  if (!ArrayType::isKnown(length) || length == 0)
    return op.emitOpError("cannot be unrolled, as '")
           << tile::decisions::kUnroll.name
           << "' asks: its length is zero or not known";
  ImplicitLocOpBuilder b(op.getLoc(), op);
  SmallVector<Value> states(op.getInits());
  SmallVector<SmallVector<Value>> all(states.size(),
                                      SmallVector<Value>(length));
  for (int64_t number : llvm::seq(length)) {
    int64_t place = op.isLeft() ? number : length - 1 - number;
    states = step(b, op, states, place);
    for (auto [list, state] : llvm::zip_equal(all, states))
      list[place] = state;
  }
  if (std::is_same_v<Op, ScanOp>)
    for (auto [state, list, result] :
         llvm::zip_equal(states, all, op.getResults()))
      state = listOf(b, list, result.getType());
  op.replaceAllUsesWith(states);
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

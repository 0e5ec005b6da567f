//===- NestFusion.cpp - two tasks in one loop -----------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/GroupToKernel/NestFusion.h"

#include "dialects/Tile/Tile.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tilewright;

Value tilewright::applyIndex(OpBuilder &b, Location loc, AffineExpr expr,
                             ValueRange values) {
  return affine::makeComposedAffineApply(
      b, loc, expr, SmallVector<OpFoldResult>(values.begin(), values.end()));
}

scf::ForOp tilewright::createOpenLoop(OpBuilder &b, Location loc, Value from,
                                      Value to, Value step, ValueRange values) {
  return scf::ForOp::create(
      b, loc, from, to, step, values,
      [](OpBuilder &, Location, Value, ValueRange) { /* no terminator */ });
}

namespace {

int64_t stepOf(Nest nest) {
  return *getConstantIntValue(nest.back().getStep());
}

template <typename AccessOp>
void shift(AccessOp access, const DenseMap<Value, Value> &slots) {
  Value slot = slots.lookup(access.getMemref());
  if (!slot)
    return;
  OpBuilder b(access);
  OpOperand &first = access.getOffsetsMutable()[0];
  first.set(applyIndex(b, access.getLoc(),
                       b.getAffineDimExpr(0) + b.getAffineDimExpr(1),
                       {first.get(), slot}));
}

/// Two nests that walk alike, as one that does the steps of both.
class Fusion {
public:
  Fusion(Nest late, Nest early, TaskStage &now, TaskStage &before)
      : host(std::move(late)), guest(std::move(early)), now(now),
        before(before) {}

  void run(OpBuilder &b) { fuse(b, 0); }

private:
  /// Makes the loop at `depth` of both; what stands around its own inner loop
  /// keeps its place before or after it.
  void fuse(OpBuilder &b, size_t depth) {
    scf::ForOp late = host[depth], early = guest[depth];
    if (depth + 1 == host.size())
      return fuseInner(b, late, early);
    auto loop = createOpenLoop(
        b, late.getLoc(), now.map.lookupOrDefault(late.getLowerBound()),
        now.map.lookupOrDefault(late.getUpperBound()),
        now.map.lookupOrDefault(late.getStep()), starts(late, early));
    OpBuilder inside = OpBuilder::atBlockBegin(loop.getBody());
    enter(loop, late, early, loop.getInductionVar());
    cloneRange(inside, now, late, nullptr, host[depth + 1]);
    cloneRange(inside, before, early, nullptr, guest[depth + 1]);
    fuse(inside, depth + 1);
    cloneRange(inside, before, early, guest[depth + 1], nullptr);
    cloneRange(inside, now, late, host[depth + 1], nullptr);
    leave(inside, loop, late, early);
  }

  void fuseInner(OpBuilder &b, scf::ForOp late, scf::ForOp early) {
    int64_t from = *getConstantIntValue(late.getLowerBound());
    int64_t end = from + sharedSteps(host, guest);
    int64_t wide = std::max(stepOf(host), stepOf(guest));
    Location loc = late.getLoc();
    auto number = [&](int64_t value) -> Value {
      return arith::ConstantIndexOp::create(b, loc, value);
    };
    auto loop = createOpenLoop(b, loc, number(from), number(end), number(wide),
                               starts(late, early));
    OpBuilder inside = OpBuilder::atBlockBegin(loop.getBody());
    enter(loop, late, early, loop.getInductionVar());
    unroll(inside, loop, now, late, wide / stepOf(host));
    unroll(inside, loop, before, early, wide / stepOf(guest));
    leave(inside, loop, late, early);
    rest(b, now, late, end);
    rest(b, before, early, end);
  }

  /// The steps of `loop` from `begin` on, which its partner does not have.
  void rest(OpBuilder &b, TaskStage &stage, scf::ForOp loop, int64_t begin) {
    if (begin == *getConstantIntValue(loop.getUpperBound()))
      return;
    for (Value argument : loop.getBody()->getArguments())
      stage.map.erase(argument); // a clone leaves out what is known
    auto copy = cast<scf::ForOp>(b.clone(*loop, stage.map));
    b.setInsertionPoint(copy);
    copy.setLowerBound(arith::ConstantIndexOp::create(b, loop.getLoc(), begin));
    b.setInsertionPointAfter(copy);
    copy.getInitArgsMutable().assign(results[loop]);
    stage.move(copy);
    results[loop].assign(copy.result_begin(), copy.result_end());
    stage.map.map(loop.getResults(), copy.getResults());
  }

  SmallVector<Value> starts(scf::ForOp late, scf::ForOp early) {
    SmallVector<Value> values;
    for (Value value : late.getInitArgs())
      values.push_back(now.map.lookupOrDefault(value));
    for (Value value : early.getInitArgs())
      values.push_back(before.map.lookupOrDefault(value));
    return values;
  }

  /// Inside of `loop`, the two have its variable and their carried values.
  void enter(scf::ForOp loop, scf::ForOp late, scf::ForOp early, Value at) {
    size_t own = late.getNumRegionIterArgs();
    now.map.map(late.getInductionVar(), at);
    before.map.map(early.getInductionVar(), at);
    now.map.map(late.getRegionIterArgs(),
                loop.getRegionIterArgs().take_front(own));
    before.map.map(early.getRegionIterArgs(),
                   loop.getRegionIterArgs().drop_front(own));
  }

  /// Several steps of a loop after each other, in one of a wider loop.
  void unroll(OpBuilder &b, scf::ForOp wide, TaskStage &stage, scf::ForOp loop,
              int64_t times) {
    int64_t step = *getConstantIntValue(loop.getStep());
    for (int64_t number = 0; number < times; ++number) {
      if (number) {
        stage.map.map(loop.getInductionVar(),
                      applyIndex(b, loop.getLoc(),
                                 b.getAffineDimExpr(0) + number * step,
                                 {wide.getInductionVar()}));
        SmallVector<Value> carried = yielded(stage, loop);
        stage.map.map(loop.getRegionIterArgs(), carried);
      }
      cloneRange(b, stage, loop, nullptr, nullptr);
    }
  }

  static SmallVector<Value> yielded(TaskStage &stage, scf::ForOp loop) {
    return llvm::map_to_vector(loop.getYieldedValues(), [&](Value value) {
      return stage.map.lookupOrDefault(value);
    });
  }

  void leave(OpBuilder &b, scf::ForOp loop, scf::ForOp late, scf::ForOp early) {
    SmallVector<Value> values = yielded(now, late);
    llvm::append_range(values, yielded(before, early));
    scf::YieldOp::create(b, loop.getLoc(), values);
    size_t own = late.getNumResults();
    results[late] = loop.getResults().take_front(own);
    results[early] = loop.getResults().drop_front(own);
    now.map.map(late.getResults(), results[late]);
    before.map.map(early.getResults(), results[early]);
  }

  /// Copies a loop's operations between `after` and `until` (null: the ends).
  static void cloneRange(OpBuilder &b, TaskStage &stage, scf::ForOp loop,
                         Operation *after, Operation *until) {
    Block *body = loop.getBody();
    auto from = after ? std::next(after->getIterator()) : body->begin();
    auto to =
        until ? until->getIterator() : body->getTerminator()->getIterator();
    for (Operation &op : llvm::make_range(from, to))
      stage.clone(b, &op);
  }

  Nest host, guest;
  TaskStage &now, &before;
  DenseMap<Operation *, SmallVector<Value>> results;
};

} // namespace

void TaskStage::clone(OpBuilder &b, Operation *op) { move(b.clone(*op, map)); }

void TaskStage::move(Operation *copy) {
  copy->walk([&](Operation *op) {
    if (auto load = dyn_cast<tile::LoadOp>(op))
      shift(load, slots);
    else if (auto store = dyn_cast<tile::StoreOp>(op))
      shift(store, slots);
  });
}

int64_t tilewright::sharedSteps(Nest host, Nest guest) {
  auto [step, wide] = std::minmax({stepOf(host), stepOf(guest)});
  int64_t from = *getConstantIntValue(host.back().getLowerBound());
  int64_t to = std::min(*getConstantIntValue(host.back().getUpperBound()),
                        *getConstantIntValue(guest.back().getUpperBound()));
  return wide % step ? 0 : (to - from) / wide * wide;
}

void tilewright::fuseNests(OpBuilder &b, Nest host, Nest guest, TaskStage &now,
                           TaskStage &before) {
  Fusion(std::move(host), std::move(guest), now, before).run(b);
}

//===- FuseShifted.cpp - loops as one, each some iterations behind --------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDecisions.h"
#include "lib/Transforms/Recurrences/Passes.h"
#include "lib/Transforms/Recurrences/RowMaker.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace tilewright {
#define GEN_PASS_DEF_FUSESHIFTED
#include "lib/Transforms/Recurrences/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;

namespace {
/// Makes one loop of a group, with what begins before it and ends after it.
class Fusion {
public:
  explicit Fusion(const ShiftedLoops &group)
      : group(group), loops(group.getLoops()), lags(group.getLags()),
        dependents(group.dependents()), b(loops.back().getLoc(), loops.back()) {
  }

  void run();

private:
  void single(int64_t iteration);
  void main();
  SmallVector<Value> step(size_t number, Value variable, const States &before);
  States statesOf(ValueRange values);
  int64_t trips() { return loops.front().getStaticTripCount()->getSExtValue(); }

  const ShiftedLoops &group;
  SmallVector<scf::ForOp> loops;
  SmallVector<int64_t> lags;
  llvm::SetVector<Operation *> dependents;
  ImplicitLocOpBuilder b;
  /// Of each loop, what it carries, where the builder stands.
  States now;
};
} // namespace

void Fusion::run() {
  for (scf::ForOp loop : loops)
    now.emplace_back(loop.getInitArgs());
  int64_t lag = lags.back();
  for (int64_t iteration : llvm::seq(lag))
    single(iteration);
  main();
  if (lag > 0)
    for (int64_t iteration : llvm::seq(trips(), trips() + lag))
      single(iteration);
  // What needed their results now needs the values behind the last loop.
  Operation *end = loops.back();
  for (Operation *op : dependents)
    if (op->isBeforeInBlock(end))
      op->moveBefore(end);
  for (auto [loop, states] : llvm::zip_equal(loops, now))
    loop.replaceAllUsesWith(states);
  for (scf::ForOp loop : llvm::reverse(loops))
    loop.erase();
}

/// An iteration in which some loops have not begun, or have ended.
void Fusion::single(int64_t iteration) {
  States before = now;
  for (size_t number : llvm::reverse(llvm::seq(loops.size()))) {
    int64_t own = iteration - lags[number];
    if (own < 0 || own >= trips())
      continue;
    Value variable = arith::ConstantIndexOp::create(b, own);
    now[number] = step(number, variable, before);
  }
}

/// All loops at once. Whoever reads a state runs before whoever makes the next
/// one, which may then lie in the same memory.
void Fusion::main() {
  scf::ForOp last = loops.back();
  Value end = last.getUpperBound();
  if (lags.back() > 0)
    end = arith::ConstantIndexOp::create(b, trips() - lags.back());
  SmallVector<Value> inits;
  for (ArrayRef<Value> states : now)
    llvm::append_range(inits, states);
  auto fused =
      scf::ForOp::create(b, last.getLowerBound(), end, last.getStep(), inits);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(fused.getBody());
  States before = statesOf(fused.getRegionIterArgs()), after(loops.size());
  for (size_t number : llvm::reverse(llvm::seq(loops.size()))) {
    Value variable = fused.getInductionVar();
    if (int64_t ahead = lags.back() - lags[number])
      variable = arith::AddIOp::create(
          b, variable, arith::ConstantIndexOp::create(b, ahead));
    after[number] = step(number, variable, before);
  }
  SmallVector<Value> yielded;
  for (ArrayRef<Value> states : after)
    llvm::append_range(yielded, states);
  scf::YieldOp::create(b, yielded);
  now = statesOf(fused.getResults());
}

/// Values of all loops, by loop.
States Fusion::statesOf(ValueRange values) {
  States found;
  for (scf::ForOp loop : loops) {
    found.emplace_back(values.take_front(loop.getNumResults()));
    values = values.drop_front(loop.getNumResults());
  }
  return found;
}

/// An iteration of one loop: what it carries after it.
SmallVector<Value> Fusion::step(size_t number, Value variable,
                                const States &before) {
  scf::ForOp loop = loops[number];
  IRMapping mapping;
  mapping.map(loop.getInductionVar(), variable);
  mapping.map(loop.getRegionIterArgs(), before[number]);
  for (Operation &op : loop.getBody()->without_terminator())
    b.clone(op, mapping);
  auto after = llvm::map_to_vector(loop.getYieldedValues(), [&](Value value) {
    return mapping.lookupOrDefault(value);
  });
  loop.getBody()->walk([&](tensor::ExtractSliceOp read) {
    Value source = read.getSource();
    if (group.makerOf(source) < 0 &&
        !dependents.contains(source.getDefiningOp()))
      return;
    auto slice = mapping.lookup(read.getResult())
                     .getDefiningOp<tensor::ExtractSliceOp>();
    unsigned dim = rowDimOf(read, loop.getInductionVar());
    Value row = RowMaker(group, dependents, number, before, slice).make(dim);
    llvm::replace(after, Value(slice), row);
    slice.replaceAllUsesWith(row);
    slice.erase();
  });
  return after;
}

/// The group that a loop begins, by the decisions on those behind it.
static FailureOr<ShiftedLoops> groupOf(scf::ForOp first) {
  ShiftedLoops group(first);
  for (Operation *op = first->getNextNode(); op; op = op->getNextNode()) {
    auto loop = dyn_cast<scf::ForOp>(op);
    if (!loop)
      continue;
    IntegerAttr shift = tile::decisions::kShift.get(loop);
    if (!shift)
      break;
    std::string reason;
    std::optional<int64_t> least = group.leastShift(loop, reason);
    if (least &&
        (shift.getInt() < *least || !group.mayLag(loop, shift.getInt())))
      reason = "at least " + std::to_string(*least) +
               " and fewer than all iterations are between them";
    if (!reason.empty())
      return loop.emitOpError("cannot follow the loop in front of it by ")
             << shift.getInt() << " iterations, as '"
             << tile::decisions::kShift.name << "' asks: " << reason;
    group.add(loop, shift.getInt());
  }
  return group;
}

namespace {
struct FuseShifted : tilewright::impl::FuseShiftedBase<FuseShifted> {
  void runOnOperation() override {
    SmallVector<scf::ForOp> firsts;
    WalkResult walked = getOperation()->walk([&](scf::ForOp loop) {
      if (!tile::decisions::kShift.get(loop))
        return WalkResult::advance();
      scf::ForOp front = loopInFront(loop);
      if (!front) {
        loop.emitOpError("has '") << tile::decisions::kShift.name
                                  << "', but there is no loop in front of it";
        return WalkResult::interrupt();
      }
      if (!tile::decisions::kShift.get(front))
        firsts.push_back(front);
      return WalkResult::advance();
    });
    if (walked.wasInterrupted())
      return signalPassFailure();
    for (scf::ForOp first : firsts) {
      FailureOr<ShiftedLoops> group = groupOf(first);
      if (failed(group))
        return signalPassFailure();
      Fusion(*group).run();
    }
  }
};
} // namespace

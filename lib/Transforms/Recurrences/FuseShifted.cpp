//===- FuseShifted.cpp - loops as one, each some iterations behind --------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDecisions.h"
#include "lib/Transforms/Recurrences/Passes.h"
#include "lib/Transforms/Recurrences/ShiftedLoops.h"

#include "mlir/Dialect/Tensor/Transforms/Transforms.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace tilewright {
#define GEN_PASS_DEF_FUSESHIFTED
#include "lib/Transforms/Recurrences/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;

namespace {
using States = SmallVector<SmallVector<Value>>;

/// Makes one loop of a group, with what begins before it and ends after it.
class Fusion {
public:
  explicit Fusion(const ShiftedLoops &group)
      : group(group), loops(group.getLoops()), lags(group.getLags()),
        dependents(group.dependents()), b(loops.back().getLoc(), loops.back()) {
  }

  LogicalResult run();

private:
  LogicalResult single(int64_t iteration);
  LogicalResult main();
  FailureOr<SmallVector<Value>> step(size_t number, Value variable,
                                     const States &before);
  LogicalResult readRows(size_t number, ArrayRef<Operation *> cloned,
                         const States &before);
  FailureOr<Value> rowOf(size_t number, tensor::ExtractSliceOp slice,
                         const States &before, SmallVectorImpl<Value> &slices);
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

LogicalResult Fusion::run() {
  for (scf::ForOp loop : loops)
    now.emplace_back(loop.getInitArgs());
  int64_t lag = lags.back();
  for (int64_t iteration : llvm::seq(lag))
    if (failed(single(iteration)))
      return failure();
  if (failed(main()))
    return failure();
  if (lag > 0)
    for (int64_t iteration : llvm::seq(trips(), trips() + lag))
      if (failed(single(iteration)))
        return failure();
  // What needed their results now needs the values behind the last loop.
  Operation *end = loops.back();
  for (Operation *op : dependents)
    if (op->isBeforeInBlock(end))
      op->moveBefore(end);
  for (auto [loop, states] : llvm::zip_equal(loops, now))
    loop.replaceAllUsesWith(states);
  for (scf::ForOp loop : llvm::reverse(loops))
    loop.erase();
  return success();
}

/// An iteration in which some loops have not begun, or have ended.
LogicalResult Fusion::single(int64_t iteration) {
  States before = now;
  for (size_t number : llvm::reverse(llvm::seq(loops.size()))) {
    int64_t own = iteration - lags[number];
    if (own < 0 || own >= trips())
      continue;
    Value variable = arith::ConstantIndexOp::create(b, own);
    FailureOr<SmallVector<Value>> after = step(number, variable, before);
    if (failed(after))
      return failure();
    now[number] = *after;
  }
  return success();
}

/// All loops at once. Whoever reads a state runs before whoever makes the next
/// one, which may then lie in the same memory.
LogicalResult Fusion::main() {
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
  States before;
  ValueRange arguments = fused.getRegionIterArgs();
  for (ArrayRef<Value> states : now) {
    before.emplace_back(arguments.take_front(states.size()));
    arguments = arguments.drop_front(states.size());
  }
  States after(loops.size());
  for (size_t number : llvm::reverse(llvm::seq(loops.size()))) {
    Value variable = fused.getInductionVar();
    if (int64_t ahead = lags.back() - lags[number])
      variable = arith::AddIOp::create(
          b, variable, arith::ConstantIndexOp::create(b, ahead));
    FailureOr<SmallVector<Value>> states = step(number, variable, before);
    if (failed(states))
      return failure();
    after[number] = *states;
  }
  SmallVector<Value> yielded;
  for (ArrayRef<Value> states : after)
    llvm::append_range(yielded, states);
  scf::YieldOp::create(b, yielded);
  ValueRange results = fused.getResults();
  for (SmallVector<Value> &states : now) {
    size_t count = states.size();
    states = SmallVector<Value>(results.take_front(count));
    results = results.drop_front(count);
  }
  return success();
}

/// An iteration of one loop: what it carries after it.
FailureOr<SmallVector<Value>> Fusion::step(size_t number, Value variable,
                                           const States &before) {
  scf::ForOp loop = loops[number];
  IRMapping mapping;
  mapping.map(loop.getInductionVar(), variable);
  mapping.map(loop.getRegionIterArgs(), before[number]);
  SmallVector<Operation *> cloned;
  for (Operation &op : loop.getBody()->without_terminator())
    cloned.push_back(b.clone(op, mapping));
  SmallVector<Value> after =
      llvm::map_to_vector(loop.getYieldedValues(), [&](Value value) {
        return mapping.lookupOrDefault(value);
      });
  if (failed(readRows(number, cloned, before)))
    return failure();
  return after;
}

/// Slices of what follows from other loops' results become what one iteration
/// needs: their rows, and what is computed of them.
LogicalResult Fusion::readRows(size_t number, ArrayRef<Operation *> cloned,
                               const States &before) {
  SmallVector<Value> slices;
  for (Operation *op : cloned)
    op->walk([&](tensor::ExtractSliceOp slice) { slices.push_back(slice); });
  size_t own = slices.size();
  for (size_t next = 0; next < slices.size(); ++next) {
    auto slice = slices[next].getDefiningOp<tensor::ExtractSliceOp>();
    Value source = slice.getSource();
    bool needed = group.makerOf(source) >= 0 ||
                  dependents.contains(source.getDefiningOp());
    // Initial values of sums are made for a row, too.
    bool initial =
        next >= own && isa_and_nonnull<linalg::FillOp, tensor::EmptyOp>(
                           source.getDefiningOp());
    if (!needed && !initial)
      continue;
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(slice);
    FailureOr<Value> row = rowOf(number, slice, before, slices);
    if (failed(row))
      return slice.emitOpError("cannot be made of a row, as '")
             << tile::decisions::kShift.name << "' asks";
    slice.replaceAllUsesWith(*row);
    slice.erase();
  }
  return success();
}

FailureOr<Value> Fusion::rowOf(size_t number, tensor::ExtractSliceOp slice,
                               const States &before,
                               SmallVectorImpl<Value> &slices) {
  Value source = slice.getSource();
  RankedTensorType type = slice.getType();
  if (source.getDefiningOp<tensor::EmptyOp>())
    return tensor::EmptyOp::create(b, type.getShape(), type.getElementType())
        .getResult();
  if (int64_t maker = group.makerOf(source); maker >= 0) {
    unsigned result = cast<OpResult>(source).getResultNumber();
    int64_t state = stateWithLastRow(loops[maker], result);
    if (state >= 0 && lags[number] - lags[maker] == 1) {
      Value last = before[maker][state];
      auto have = cast<RankedTensorType>(last.getType());
      if (have == type)
        return last;
      if (auto groups = getReassociationIndicesForReshape(have, type))
        return tensor::ExpandShapeOp::create(b, type, last, *groups)
            .getResult();
    }
    Value row = tensor::ExtractSliceOp::create(
        b, type, before[maker][result], slice.getMixedOffsets(),
        slice.getMixedSizes(), slice.getMixedStrides());
    return row;
  }
  FailureOr<TilingResult> tiled = tensor::replaceExtractSliceWithTiledProducer(
      b, slice, cast<OpResult>(source));
  if (failed(tiled))
    return failure();
  for (Operation *made : tiled->generatedSlices)
    slices.push_back(made->getResult(0));
  return tensor::createCanonicalRankReducingExtractSliceOp(
      b, slice.getLoc(), tiled->tiledValues.front(), type);
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
      if (failed(group) || failed(Fusion(*group).run()))
        return signalPassFailure();
    }
  }
};
} // namespace

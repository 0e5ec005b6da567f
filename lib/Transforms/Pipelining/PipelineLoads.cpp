//===- PipelineLoads.cpp - loops get rings of slots -----------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDecisions.h"
#include "lib/Transforms/Pipelining/FlatLoops.h"
#include "lib/Transforms/Pipelining/Passes.h"
#include "lib/Transforms/Pipelining/RingLoads.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_PIPELINELOADS
#include "lib/Transforms/Pipelining/Passes.h.inc"

namespace {

/// Makes the loop of one ring for each of some loads.
class PipelinedLoop {
public:
  PipelinedLoop(scf::ForOp loop, ArrayRef<RingLoad> loads, int64_t stages)
      : loop(loop), loads(loads), stages(stages), b(loop), loc(loop.getLoc()) {}

  void run() {
    for (const RingLoad &load : loads)
      rings.push_back(createRing(load, stages));
    Value steps = countSteps();
    if (getConstantIntValue(steps) || runsInBranch(loop)) {
      replace(makeLoop(steps));
      return;
    }
    // The first token needs a first step.
    Value some = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt, steps,
                                       constant(0));
    auto branch = scf::IfOp::create(b, loc, loop.getResultTypes(), some,
                                    /*addThenBlock=*/true,
                                    /*addElseBlock=*/true);
    b.setInsertionPointToStart(branch.thenBlock());
    scf::ForOp made = makeLoop(steps);
    if (loop.getNumResults()) {
      scf::YieldOp::create(b, loc, ownResults(made));
      b.setInsertionPointToStart(branch.elseBlock());
      scf::YieldOp::create(b, loc, loop.getInitArgs());
    }
    loop.replaceAllUsesWith(branch.getResults());
    loop.erase();
  }

private:
  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }

  ValueRange ownResults(scf::ForOp made) {
    return made.getResults().take_front(loop.getNumResults());
  }

  void replace(scf::ForOp made) {
    loop.replaceAllUsesWith(ownResults(made));
    loop.erase();
  }

  /// How often the loop runs.
  Value countSteps() {
    Value lower = loop.getLowerBound(), upper = loop.getUpperBound();
    if (runsInBranch(loop))
      return upper;
    if (std::optional<APInt> count = loop.getStaticTripCount())
      return constant(count->getSExtValue());
    Value span = b.createOrFold<arith::SubIOp>(loc, upper, lower);
    Value step = loop.getStep();
    Value last = b.createOrFold<arith::SubIOp>(loc, step, constant(1));
    Value raised = b.createOrFold<arith::AddIOp>(loc, span, last);
    Value positive = b.createOrFold<arith::MaxSIOp>(loc, raised, constant(0));
    return b.createOrFold<arith::DivUIOp>(loc, positive, step);
  }

  /// The variable of the old loop in step `step`.
  Value variableAt(Value step) {
    Value far = b.createOrFold<arith::MulIOp>(loc, step, loop.getStep());
    return b.createOrFold<arith::AddIOp>(loc, loop.getLowerBound(), far);
  }

  Value slotAt(Value step) {
    if (std::optional<int64_t> number = getConstantIntValue(step))
      return constant(*number % stages);
    return arith::RemUIOp::create(b, loc, step, constant(stages));
  }

  /// Starts the copies of step `step`; `same` is the same number, in a form
  /// that addresses follow from.
  Value issue(Value step, Value same) {
    IRMapping map;
    map.map(loop.getInductionVar(), variableAt(same));
    Value slot = slotAt(step);
    SmallVector<std::pair<Value, Value>> pairs;
    auto here = [&](Value value) { return cloneAddress(b, loop, value, map); };
    for (auto [ring, load] : llvm::zip_equal(rings, loads)) {
      Value source = viewSource(b, load, here);
      pairs.emplace_back(source,
                         viewSlot(b, load, ring, getAsOpFoldResult(slot)));
    }
    auto async = tile::AsyncOp::create(b, loc);
    OpBuilder inside(async.getBody().front().getTerminator());
    for (auto [pair, load] : llvm::zip_equal(pairs, loads))
      createCopy(inside, load, pair.first, pair.second);
    return async.getToken();
  }

  /// Starts them if there is such a step; else gives `otherwise`.
  Value issueIf(Value step, Value steps, Value otherwise) {
    auto total = getConstantIntValue(steps), number = getConstantIntValue(step);
    if (total && number)
      return *number < *total ? issue(step, step) : otherwise;
    Value more =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, step, steps);
    auto branch = scf::IfOp::create(b, loc, otherwise.getType(), more,
                                    /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    Value same = step;
    if (number) { // not a constant, which may lie outside of a buffer
      Value last = arith::SubIOp::create(b, loc, steps, constant(1));
      same = arith::MinSIOp::create(b, loc, step, last);
    }
    Value token = issue(step, same);
    scf::YieldOp::create(b, loc, token);
    b.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(b, loc, otherwise);
    return branch.getResult(0);
  }

  scf::ForOp makeLoop(Value steps) {
    SmallVector<Value> inits(loop.getInitArgs());
    Value first = constant(0);
    Value token = issue(first, first);
    inits.push_back(token);
    for (int64_t ahead = 1; ahead < stages - 1; ++ahead)
      inits.push_back(token = issueIf(constant(ahead), steps, token));
    auto made =
        scf::ForOp::create(b, loc, constant(0), steps, constant(1), inits);
    made->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
    made->removeAttr(tile::decisions::kStages);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(made.getBody());
    fillBody(made, steps);
    return made;
  }

  void fillBody(scf::ForOp made, Value steps) {
    Value step = made.getInductionVar();
    auto args = made.getRegionIterArgs();
    auto tokens = args.drop_front(loop.getNumResults());
    tile::AwaitOp::create(b, loc, ValueRange{tokens.front()});
    Value ahead = arith::AddIOp::create(b, loc, step, constant(stages - 1));
    Value next = issueIf(ahead, steps, tokens.front());
    IRMapping map;
    map.map(loop.getInductionVar(), variableAt(step));
    map.map(loop.getRegionIterArgs(), args.take_front(loop.getNumResults()));
    Value slot = slotAt(step);
    for (Operation &op : loop.getBody()->without_terminator()) {
      auto found = llvm::find_if(
          loads, [&](const RingLoad &load) { return load.load == &op; });
      if (found != loads.end())
        map.map(op.getResult(0),
                loadSlot(b, *found, rings[found - loads.begin()], slot));
      else if (isRows(&op))
        map.map(op.getResult(0), map.lookup(op.getOperand(0)));
      else
        b.clone(op, map);
    }
    SmallVector<Value> results = llvm::map_to_vector(
        loop.getBody()->getTerminator()->getOperands(),
        [&](Value value) { return map.lookupOrDefault(value); });
    llvm::append_range(results, tokens.drop_front());
    results.push_back(next);
    if (Block *body = made.getBody(); body->mightHaveTerminator())
      body->getTerminator()->erase();
    scf::YieldOp::create(b, loc, results);
  }

  /// Whether `op` makes rows of what comes as rows from its slot.
  bool isRows(Operation *op) {
    return llvm::any_of(loads,
                        [&](const RingLoad &load) { return load.rows == op; });
  }

  scf::ForOp loop;
  ArrayRef<RingLoad> loads;
  int64_t stages;
  SmallVector<Value> rings;
  OpBuilder b;
  Location loc;
};

struct PipelineLoads
    : public tilewright::impl::PipelineLoadsBase<PipelineLoads> {
  void runOnOperation() override {
    SmallVector<scf::ForOp> loops;
    getOperation()->walk([&](scf::ForOp loop) {
      if (loop->hasAttr(tile::decisions::kStages) &&
          loop->getParentOfType<tile::KernelOp>())
        loops.push_back(loop);
    });
    for (scf::ForOp loop : loops)
      if (failed(pipeline(flattened(loop))))
        return signalPassFailure();
  }

private:
  LogicalResult pipeline(scf::ForOp loop) {
    auto stages = tile::decisions::kStages.get(loop);
    if (!stages || stages.getInt() < 2)
      return loop.emitError("tile.stages is ")
             << loop->getAttr(tile::decisions::kStages)
             << ", but must be a number of slots, at least 2";
    if (std::optional<APInt> count = loop.getStaticTripCount();
        count && count->isZero())
      return success();
    SmallVector<RingLoad> loads;
    for (auto load : loop.getBody()->getOps<tile::LoadOp>()) {
      if (load->hasAttr(tile::decisions::kNoRing))
        continue;
      std::string reason;
      if (auto ring = analyzeRingLoad(loop, load, reason))
        loads.push_back(*ring);
      else
        load.emitRemark("goes through no ring, since it ") << reason;
    }
    if (loads.empty()) {
      loop.emitRemark("has tile.stages, but no load goes through a ring");
      return success();
    }
    PipelinedLoop(loop, loads, stages.getInt()).run();
    return success();
  }
};

} // namespace
} // namespace tilewright

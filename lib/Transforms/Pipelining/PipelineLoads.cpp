//===- PipelineLoads.cpp - loops get rings of slots -----------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Pipelining/Passes.h"
#include "lib/Transforms/Pipelining/RingLoads.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/Utils/Utils.h"

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
    makeRings();
    Value steps = countSteps();
    if (getConstantIntValue(steps)) {
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

  void makeRings() {
    auto kernel = loop->getParentOfType<tile::KernelOp>();
    OpBuilder start = OpBuilder::atBlockBegin(&kernel.getBody().front());
    for (const RingLoad &load : loads) {
      auto ring =
          tile::AllocOp::create(start, tile::LoadOp(load.load).getLoc(),
                                load.ringType(stages), load.alignment());
      if (tile::LayoutAttr layout = load.ringLayout(); !layout.isIdentity())
        ring->setAttr("tile.layouts", b.getArrayAttr({layout}));
      rings.push_back(ring);
    }
  }

  /// How often the loop runs.
  Value countSteps() {
    Value lower = loop.getLowerBound(), upper = loop.getUpperBound();
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

  /// The whole of slot `slot` of a ring.
  Value viewSlot(Value ring, const RingLoad &load, Value slot) {
    SmallVector<OpFoldResult> offsets{getAsOpFoldResult(slot)},
        sizes{b.getIndexAttr(1)},
        strides(load.shape.size() + 1, b.getIndexAttr(1));
    for (int64_t size : load.shape) {
      offsets.push_back(b.getIndexAttr(0));
      sizes.push_back(b.getIndexAttr(size));
    }
    MemRefType type = memref::SubViewOp::inferRankReducedResultType(
        load.shape, cast<MemRefType>(ring.getType()), offsets, sizes, strides);
    return memref::SubViewOp::create(b, loc, type, ring, offsets, sizes,
                                     strides);
  }

  static ArrayRef<int64_t> boundedDims(tile::LoadOp load) {
    auto dims = load->getAttrOfType<DenseI64ArrayAttr>("tile.bounded");
    return dims ? dims.asArrayRef() : ArrayRef<int64_t>();
  }

  /// How much of tile dimension `dim` is there, at most its size.
  OpFoldResult boundOf(tile::LoadOp load, int64_t dim, IRMapping &map) {
    int64_t size = load.getType().getShape()[dim];
    if (load.getValid().empty())
      return b.getIndexAttr(size);
    Value valid = cloneAddress(b, loop, load.getValid()[dim], map);
    if (std::optional<int64_t> known = getConstantIntValue(valid))
      return b.getIndexAttr(std::clamp<int64_t>(*known, 0, size));
    Value below = arith::MinSIOp::create(b, loc, valid, constant(size));
    return arith::MaxSIOp::create(b, loc, below, constant(0)).getResult();
  }

  /// What a load reads, in the order of memory. Where that may lie outside of
  /// the buffer, the view is as large as the tile, and the copy knows.
  Value viewSource(const RingLoad &ring, IRMapping &map) {
    tile::LoadOp load = ring.load;
    ArrayRef<int64_t> bounded = boundedDims(load);
    SmallVector<OpFoldResult> offsets,
        sizes(load.getOffsets().size(), b.getIndexAttr(1)), strides(sizes);
    for (auto [place, offset] : llvm::enumerate(load.getOffsets())) {
      Value at = cloneAddress(b, loop, offset, map);
      offsets.push_back(llvm::is_contained(bounded, place)
                            ? OpFoldResult(at) // constants may be outside
                            : getAsOpFoldResult(at));
    }
    for (auto [dim, place] : llvm::enumerate(load.getTileDims())) {
      sizes[place] =
          llvm::is_contained(bounded, place)
              ? OpFoldResult(b.getIndexAttr(load.getType().getShape()[dim]))
              : boundOf(load, dim, map);
      strides[place] = b.getIndexAttr(load.getTileSteps()[dim]);
    }
    SmallVector<int64_t> shape;
    for (int64_t dim : ring.dims)
      shape.push_back(
          getConstantIntValue(sizes[dim]).value_or(ShapedType::kDynamic));
    MemRefType type = memref::SubViewOp::inferRankReducedResultType(
        shape, load.getMemRefType(), offsets, sizes, strides);
    return memref::SubViewOp::create(b, loc, type, load.getMemref(), offsets,
                                     sizes, strides);
  }

  /// Starts the copies of step `step`; `same` is the same number, in a form
  /// that addresses follow from.
  Value issue(Value step, Value same) {
    IRMapping map;
    map.map(loop.getInductionVar(), variableAt(same));
    Value slot = slotAt(step);
    SmallVector<std::pair<Value, Value>> pairs;
    for (auto [ring, load] : llvm::zip_equal(rings, loads))
      pairs.emplace_back(viewSource(load, map), viewSlot(ring, load, slot));
    auto async = tile::AsyncOp::create(b, loc);
    OpBuilder inside(async.getBody().front().getTerminator());
    for (auto [pair, load] : llvm::zip_equal(pairs, loads)) {
      auto [source, target] = pair;
      auto copy =
          tile::CopyOp::create(inside, loc, source, target, ValueRange());
      auto from = cast<MemRefType>(source.getType()).getShape();
      copy.setFill(from != cast<MemRefType>(target.getType()).getShape());
      if (ArrayRef<int64_t> dims = boundedDims(load.load); !dims.empty())
        copy->setDiscardableAttr("tile.bounded", b.getDenseI64ArrayAttr(dims));
    }
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
    made->removeAttr("tile.stages");
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
      if (found == loads.end())
        b.clone(op, map);
      else
        map.map(op.getResult(0),
                loadSlot(*found, rings[found - loads.begin()], slot));
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

  Value loadSlot(const RingLoad &ring, Value buffer, Value slot) {
    tile::LoadOp load = ring.load;
    SmallVector<Value> offsets(ring.shape.size() + 1, constant(0));
    offsets.front() = slot;
    SmallVector<int64_t> dims;
    for (int64_t dim = 0; dim < load.getType().getRank(); ++dim)
      dims.push_back(1 + ring.slotDim(dim));
    if (llvm::is_sorted(dims))
      dims.clear();
    return tile::LoadOp::create(b, load.getLoc(), load.getType(), buffer,
                                offsets, dims);
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
      if (loop->hasAttr("tile.stages") &&
          loop->getParentOfType<tile::KernelOp>())
        loops.push_back(loop);
    });
    for (scf::ForOp loop : loops)
      if (failed(pipeline(flattened(loop))))
        return signalPassFailure();
  }

private:
  /// Whether all that a loop does besides running `inner` is to compute, for
  /// that one.
  static bool computesFor(scf::ForOp loop, scf::ForOp inner) {
    return llvm::all_of(
        loop.getBody()->without_terminator(), [&](Operation &op) {
          return &op == inner || (op.getNumRegions() == 0 && isPure(&op) &&
                                  op.isBeforeInBlock(inner));
        });
  }

  /// The loop around `loop` if it does nothing else than run it, a known number
  /// of times: what the inner one carries is what it carries itself.
  static scf::ForOp outerOf(scf::ForOp loop) {
    auto outer = dyn_cast<scf::ForOp>(loop->getParentOp());
    if (!outer || !outer.getStaticTripCount() || !loop.getStaticTripCount() ||
        !computesFor(outer, loop) || outer->hasAttr("tile.stages") ||
        !llvm::equal(loop.getInitArgs(), outer.getRegionIterArgs()) ||
        !llvm::equal(outer.getYieldedValues(), loop.getResults()))
      return {};
    return outer;
  }

  /// Moves what stands before a loop into it, in order.
  static void sinkInto(scf::ForOp loop, Block &outer) {
    SmallVector<Operation *> before;
    for (Operation &op : llvm::make_range(outer.begin(), loop->getIterator()))
      before.push_back(&op);
    for (Operation *op : llvm::reverse(before))
      op->moveBefore(loop.getBody(), loop.getBody()->begin());
  }

  /// One loop in place of a nest of them: a ring that is emptied and filled
  /// anew for each place of a window hides nothing.
  static scf::ForOp flattened(scf::ForOp loop) {
    Attribute stages = loop->getAttr("tile.stages");
    SmallVector<scf::ForOp> nest{loop};
    while (scf::ForOp outer = outerOf(nest.back()))
      nest.push_back(outer);
    std::reverse(nest.begin(), nest.end());
    for (auto [outer, inner] : llvm::zip(nest, ArrayRef(nest).drop_front()))
      sinkInto(inner, *scf::ForOp(outer).getBody());
    IRRewriter rewriter(loop->getContext());
    if (nest.size() == 1 || failed(coalesceLoops(rewriter, nest)))
      return loop;
    nest.front()->setAttr("tile.stages", stages);
    return nest.front();
  }

  LogicalResult pipeline(scf::ForOp loop) {
    auto stages = loop->getAttrOfType<IntegerAttr>("tile.stages");
    if (!stages || stages.getInt() < 2)
      return loop.emitError("tile.stages is ")
             << loop->getAttr("tile.stages")
             << ", but must be a number of slots, at least 2";
    if (std::optional<APInt> count = loop.getStaticTripCount();
        count && count->isZero())
      return success();
    SmallVector<RingLoad> loads;
    for (auto load : loop.getBody()->getOps<tile::LoadOp>()) {
      if (auto wanted = load->getAttrOfType<BoolAttr>("tile.ring");
          wanted && !wanted.getValue())
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

//===- Producer.cpp - the warps that fill slots -===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDecisions.h"
#include "lib/Conversion/AsyncToGPU/BranchResults.h"
#include "lib/Conversion/AsyncToGPU/WarpRoles.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace tilewright {

namespace {

/// Writes the producers' part of a kernel.
class Producer {
public:
  Producer(OpBuilder &b, ArrayRef<RoleRing> rings, ArrayRef<RoleLoad> loads,
           gpu::GPUFuncOp kernel, Value rank, Value parity)
      : b(b), rings(rings), loads(loads), kernel(kernel), rank(rank),
        parity(parity) {
    // The phase before the first counts as over: all slots are empty.
    Location loc = kernel.getLoc();
    states.assign(rings.size(), {makeI32(b, loc, 0), makeI32(b, loc, 1)});
  }

  LogicalResult emit(Block &source, IRMapping map) {
    for (Operation &op : source) {
      if (const RoleRing *ring = ringOf(&op)) {
        if (failed(emitLoop(*ring, map)))
          return failure();
      } else if (const RoleLoad *load = loadOf(&op)) {
        if (failed(emitLoad(*load, map)))
          return failure();
      } else if (op.hasAttr(tile::decisions::kTasks)) {
        if (holdsCopies(&op) && failed(emitTasks(cast<scf::ForOp>(op), map)))
          return failure();
      } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
        if (holdsCopies(&op) && failed(emitBranch(branch, map)))
          return failure();
      }
    }
    return success();
  }

private:
  const RoleRing *ringOf(Operation *op) {
    auto found = llvm::find_if(
        rings, [&](const RoleRing &ring) { return ring.ring.loop == op; });
    return found == rings.end() ? nullptr : found;
  }

  const RoleLoad *loadOf(Operation *op) {
    auto found = llvm::find_if(
        loads, [&](const RoleLoad &load) { return load.async == op; });
    return found == loads.end() ? nullptr : found;
  }

  bool holdsCopies(Operation *op) {
    return llvm::any_of(rings,
                        [&](const RoleRing &ring) {
                          return op->isProperAncestor(ring.ring.loop);
                        }) ||
           llvm::any_of(loads, [&](const RoleLoad &load) {
             return op->isProperAncestor(load.async);
           });
  }

  LogicalResult emitBranch(scf::IfOp branch, IRMapping &map) {
    Value condition = need(branch.getCondition(), map);
    if (!condition)
      return failure();
    auto made = scf::IfOp::create(b, branch.getLoc(), condition,
                                  /*withElseRegion=*/!!branch.elseBlock());
    SmallVector<SlotState> before = states, then;
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(made.thenBlock());
      if (failed(emit(*branch.thenBlock(), map)))
        return failure();
      then = std::exchange(states, before);
      if (branch.elseBlock()) {
        b.setInsertionPointToStart(made.elseBlock());
        if (failed(emit(*branch.elseBlock(), map)))
          return failure();
      }
    }
    if (tasksAround(branch) && (then != before || states != before))
      meetStates(made, then);
    return success();
  }

  /// Behind a branch the states of rings are `then` of its one block, and those
  /// of now of the other: the next task goes on from there.
  void meetStates(scf::IfOp made, ArrayRef<SlotState> then) {
    SmallVector<Value> first, second;
    for (auto [one, other] : llvm::zip_equal(then, states)) {
      first.append({one.first, one.second});
      second.append({other.first, other.second});
    }
    SmallVector<Value> after = addResults(made, first, second);
    for (auto [index, state] : llvm::enumerate(states))
      state = {after[2 * index], after[2 * index + 1]};
    b.setInsertionPointAfter(made);
  }

  /// All tasks of the block: rings go on from one to the next, so that the
  /// copies of a task begin while the one before is computed.
  LogicalResult emitTasks(scf::ForOp tasks, IRMapping &map) {
    SmallVector<Value> bounds, inits;
    for (Value bound :
         {tasks.getLowerBound(), tasks.getUpperBound(), tasks.getStep()}) {
      bounds.push_back(need(bound, map));
      if (!bounds.back())
        return failure();
    }
    for (auto [slot, phase] : states)
      inits.append({slot, phase});
    // Where copies are started in each task: nobody reads before the first.
    bool repeats = anyRepeats(loads);
    if (repeats)
      inits.push_back(makeI32(b, tasks.getLoc(), 1));
    auto made = scf::ForOp::create(b, tasks.getLoc(), bounds[0], bounds[1],
                                   bounds[2], inits);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(made.getBody());
    for (auto [index, state] : llvm::enumerate(states))
      state = {made.getRegionIterArg(2 * index),
               made.getRegionIterArg(2 * index + 1)};
    if (repeats)
      parity = made.getRegionIterArgs().back();
    map.map(tasks.getInductionVar(), made.getInductionVar());
    if (failed(emit(*tasks.getBody(), map)))
      return failure();
    SmallVector<Value> results;
    for (auto [slot, phase] : states)
      results.append({slot, phase});
    if (repeats)
      results.push_back(arith::XOrIOp::create(b, tasks.getLoc(), parity,
                                              makeI32(b, tasks.getLoc(), 1)));
    scf::YieldOp::create(b, tasks.getLoc(), results);
    return success();
  }

  /// `value` for the producers: what it follows from is computed again.
  Value need(Value value, IRMapping &map) {
    if (Value known = map.lookupOrNull(value))
      return known;
    Operation *op = value.getDefiningOp();
    if (!op)
      return isa<gpu::GPUFuncOp>(value.getParentBlock()->getParentOp())
                 ? value
                 : refuse(value);
    if (op->getBlock() == &kernel.getBody().front())
      return value; // before the roles part
    bool reads = isa<memref::LoadOp>(op);
    if (op->getNumRegions() || !(reads || isMemoryEffectFree(op)))
      return refuse(value);
    for (Value operand : op->getOperands()) {
      Value made = need(operand, map);
      if (!made)
        return Value();
      map.map(operand, made);
    }
    b.clone(*op, map);
    return map.lookup(value);
  }

  Value refuse(Value value) {
    emitError(value.getLoc())
        << "the place of a copy in the background depends on this value, which "
           "the warps that start the copies do not know";
    return Value();
  }

  /// Descriptors of the sources, and addresses of the buffers, of some copies.
  LogicalResult findEnds(Location loc, ArrayRef<TensorCopy> copies,
                         IRMapping &map, SmallVectorImpl<Value> &maps,
                         SmallVectorImpl<Value> &bases) {
    for (const TensorCopy &copy : copies) {
      FailureOr<Value> descriptor = tensorMapOf(kernel, copy);
      Value base = need(copy.target.base, map);
      if (failed(descriptor) || !base)
        return failure();
      NVVM::PrefetchOp::create(b, loc, NVVM::PrefetchCacheLevelAttr(),
                               NVVM::CacheEvictionPriorityAttr(), *descriptor,
                               Value(), /*tensormap=*/true);
      maps.push_back(*descriptor);
      bases.push_back(sharedPointer(b, loc, base));
    }
    return success();
  }

  /// Starts copies that no slot has to be empty for, or that of the task before
  /// has to be read for.
  LogicalResult emitLoad(const RoleLoad &load, IRMapping map) {
    Location loc = tile::AsyncOp(load.async).getLoc();
    SmallVector<Value> maps, bases;
    if (failed(findEnds(loc, load.copies, map, maps, bases)))
      return failure();
    if (load.repeats())
      waitBarrier(b, loc, load.emptyBarrier(b, loc), parity);
    return start(loc, load.copies, maps, bases, load.barrier, map);
  }

  /// Waits for each slot to be empty and has it filled.
  LogicalResult emitLoop(const RoleRing &ring, IRMapping map) {
    Location loc = scf::ForOp(ring.ring.loop).getLoc();
    Value steps = need(ring.ring.getSteps(), map);
    SmallVector<Value> maps, bases;
    if (!steps || failed(findEnds(loc, ring.copies, map, maps, bases)))
      return failure();
    Value zero = arith::ConstantIndexOp::create(b, loc, 0);
    Value one = arith::ConstantIndexOp::create(b, loc, 1);
    SlotState &state = states[&ring - rings.data()];
    if (ring.memory)
      state = recallRing(b, loc, ring.memory);
    auto loop = scf::ForOp::create(b, loc, zero, steps, one,
                                   ValueRange{state.first, state.second});
    state = {loop.getResult(0), loop.getResult(1)};
    if (ring.memory)
      rememberRing(b, loc, ring.memory, state);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value slot = loop.getRegionIterArg(0), phase = loop.getRegionIterArg(1);
    map.map(ring.ring.ahead, loop.getInductionVar());
    if (failed(fillSlot(ring, maps, bases, slot, phase, map)))
      return failure();
    auto [next, nextPhase] =
        nextSlot(b, loc, slot, phase, ring.ring.getStages());
    scf::YieldOp::create(b, loc, ValueRange{next, nextPhase});
    return success();
  }

  LogicalResult fillSlot(const RoleRing &ring, ArrayRef<Value> maps,
                         ArrayRef<Value> bases, Value slot, Value phase,
                         IRMapping &map) {
    Location loc = scf::ForOp(ring.ring.loop).getLoc();
    waitBarrier(b, loc, ring.emptyBarrier(b, loc, slot), phase,
                ring.blocks > 1);
    SmallVector<Value> places;
    for (auto [copy, base] : llvm::zip_equal(ring.copies, bases)) {
      Value bytes =
          arith::MulIOp::create(b, loc, slot, makeI32(b, loc, copy.getBytes()));
      places.push_back(offsetPointer(b, loc, base, bytes));
    }
    return start(loc, ring.copies, maps, places, ring.fullBarrier(b, loc, slot),
                 map);
  }

  /// Starts copies to `places`, whose bytes `barrier` counts.
  LogicalResult start(Location loc, ArrayRef<TensorCopy> copies,
                      ArrayRef<Value> maps, ArrayRef<Value> places,
                      Value barrier, IRMapping &map) {
    NVVM::MBarrierArriveExpectTxOp::create(
        b, loc, Type(), barrier, makeI32(b, loc, bytesOf(copies)),
        NVVM::MemScopeKind::CTA, /*relaxed=*/false, Value());
    for (auto [copy, descriptor, place] :
         llvm::zip_equal(copies, maps, places)) {
      for (OpFoldResult offset : copy.origin) {
        auto value = dyn_cast<Value>(offset);
        if (value && !need(value, map))
          return failure();
      }
      auto valueOf = [&](OpFoldResult offset) -> Value {
        if (auto value = dyn_cast<Value>(offset))
          return map.lookupOrDefault(value);
        return arith::ConstantIndexOp::create(b, loc,
                                              *getConstantIntValue(offset));
      };
      emitTensorCopy(b, copy, descriptor, place, barrier, valueOf, rank);
    }
    return success();
  }

  OpBuilder &b;
  ArrayRef<RoleRing> rings;
  ArrayRef<RoleLoad> loads;
  gpu::GPUFuncOp kernel;
  Value rank;
  /// Of each ring, where the builder stands.
  SmallVector<SlotState> states;
  /// Of the phase in which what the task before, or launch, brought is read.
  Value parity;
};

} // namespace

LogicalResult emitProducer(OpBuilder &b, Block &source,
                           ArrayRef<RoleRing> rings, ArrayRef<RoleLoad> loads,
                           gpu::GPUFuncOp kernel, Value rank, Value parities) {
  Location loc = kernel.getLoc();
  Value parity = parities ? recallParity(b, loc, parities) : Value();
  Producer producer(b, rings, loads, kernel, rank, parity);
  if (failed(producer.emit(source, IRMapping())))
    return failure();
  if (parities)
    turnParity(b, loc, parities, parity);
  return success();
}

} // namespace tilewright

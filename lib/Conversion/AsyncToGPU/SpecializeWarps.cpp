//===- SpecializeWarps.cpp - warps that move data, warps that compute -===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDecisions.h"
#include "lib/Analysis/Device.h"
#include "lib/Conversion/AsyncToGPU/BranchResults.h"
#include "lib/Conversion/AsyncToGPU/Passes.h"
#include "lib/Conversion/AsyncToGPU/RoleRegisters.h"
#include "lib/Conversion/AsyncToGPU/WarpRoles.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/UB/IR/UBOps.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_SPECIALIZEWARPS
#include "lib/Conversion/AsyncToGPU/Passes.h.inc"

Value RoleRing::fullBarrier(OpBuilder &b, Location loc, Value slot) const {
  Value bytes = arith::MulIOp::create(b, loc, slot, makeI32(b, loc, 8));
  return offsetPointer(b, loc, barriers, bytes);
}

Value RoleRing::emptyBarrier(OpBuilder &b, Location loc, Value slot,
                             Value base) const {
  Value bytes = arith::MulIOp::create(b, loc, slot, makeI32(b, loc, 8));
  Value first = offsetPointer(b, loc, base ? base : barriers, bytes);
  return offsetPointer(b, loc, first, 8 * ring.getStages());
}

/// Upstream's operation looks no further than the block: here those of other
/// blocks of the cluster have arrived, too (PTX ISA, "mbarrier.try_wait").
static constexpr llvm::StringLiteral kClusterWait =
    "{ .reg .pred P1; LAB_WAIT: "
    "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 "
    "P1, [$0], $1, $2; "
    "@P1 bra.uni DONE; bra.uni LAB_WAIT; DONE: }";

void waitBarrier(OpBuilder &b, Location loc, Value barrier, Value phase,
                 bool cluster) {
  // Ticks after which the hardware looks again at the latest.
  constexpr int64_t kTicks = 10000000;
  Value ticks = makeI32(b, loc, kTicks);
  if (!cluster) {
    NVVM::MBarrierTryWaitParityOp::create(b, loc, barrier, phase, ticks);
    return;
  }
  LLVM::InlineAsmOp::create(
      b, loc, TypeRange(), ValueRange{barrier, phase, ticks}, kClusterWait,
      "r,r,r,~{memory}", /*has_side_effects=*/true, /*is_align_stack=*/false,
      LLVM::TailCallKind::None,
      LLVM::AsmDialectAttr::get(b.getContext(), LLVM::AsmDialect::AD_ATT),
      ArrayAttr());
}

scf::ForOp tasksAround(Operation *op) {
  for (auto loop = op->getParentOfType<scf::ForOp>(); loop;
       loop = loop->getParentOfType<scf::ForOp>())
    if (loop->hasAttr(tile::decisions::kTasks))
      return loop;
  return {};
}

SlotState nextSlot(OpBuilder &b, Location loc, Value slot, Value phase,
                   int64_t stages) {
  Value one = makeI32(b, loc, 1);
  Value next = arith::AddIOp::create(b, loc, slot, one);
  Value wraps = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, next,
                                      makeI32(b, loc, stages));
  Value flipped = arith::XOrIOp::create(b, loc, phase, one);
  Value zero = makeI32(b, loc, 0);
  return {arith::SelectOp::create(b, loc, wraps, zero, next),
          arith::SelectOp::create(b, loc, wraps, flipped, phase)};
}

namespace {

/// Splits one kernel.
class RoleSplit {
public:
  RoleSplit(gpu::GPUFuncOp kernel, int64_t threads)
      : kernel(kernel), threads(threads), b(kernel.getContext()),
        loc(kernel.getLoc()) {}

  /// Finds the rings; the reason where there are others than can be split.
  std::string analyze() {
    std::string reason;
    kernel.walk([&](scf::ForOp loop) {
      if (reason.empty() && carriesTokens(loop))
        reason = addRing(loop);
    });
    kernel.walk([&](tile::AsyncOp async) {
      if (reason.empty() && !isOfRing(async))
        reason = addLoad(async);
    });
    if (reason.empty() && rings.empty() && loads.empty())
      reason = "loads nothing ahead of time";
    kernel.walk([&](tile::AwaitOp await) {
      if (reason.empty() && !isKnown(await))
        reason = "waits for copies outside of such loops";
    });
    return reason;
  }

  LogicalResult run() {
    Block &entry = kernel.getBody().front();
    Operation *last = entry.getTerminator();
    Operation *first = hoistBuffers(entry);
    b.setInsertionPoint(first);
    setUp();
    Value warp = warpNumber();
    Value producing = arith::CmpIOp::create(
        b, loc, arith::CmpIPredicate::uge, warp, makeI32(b, loc, threads / 32));
    if (isLaunched(kernel)) {
      Value memory = rememberRings(b, loc, rings, producing);
      parities = anyRepeats(loads) ? memory : Value();
    }
    auto roles = scf::IfOp::create(b, loc, producing, /*withElseRegion=*/true);
    roles->setAttr(tile::decisions::kRoles, b.getUnitAttr());
    if (sharesCopies())
      meetCluster(/*aligned=*/false);
    Block *consumer = roles.elseBlock();
    consumer->getOperations().splice(consumer->getTerminator()->getIterator(),
                                     entry.getOperations(),
                                     first->getIterator(), last->getIterator());
    if (failed(fillProducer(roles, warp)))
      return failure();
    rewriteConsumers();
    b.setInsertionPointToStart(consumer);
    if (parities)
      parity = recallParity(b, loc, parities);
    for (RoleLoad &load : loads)
      rewriteLoad(load, parity, thread);
    if (!isLaunched(kernel)) // else the kernel that launches it says so
      takeRegisters(b, loc, groups(), kernel);
    b.setInsertionPoint(consumer->getTerminator());
    if (parities)
      turnParity(b, loc, parities, parity);
    kernel.setKnownBlockSizeAttr(b.getDenseI32ArrayAttr(
        {static_cast<int32_t>(threads + kWarpgroup), 1, 1}));
    return success();
  }

private:
  /// Both branches know the rings' buffers. Gives the first op behind them.
  Operation *hoistBuffers(Block &entry) {
    auto hoist = [&](ArrayRef<TensorCopy> copies) {
      for (const TensorCopy &copy : copies)
        if (auto alloc = copy.target.base.getDefiningOp<tile::AllocOp>())
          alloc->moveBefore(&entry.front());
    };
    for (RoleRing &ring : rings)
      hoist(ring.copies);
    for (RoleLoad &load : loads)
      hoist(load.copies);
    Operation *first = &entry.front();
    while (isa<tile::AllocOp>(first))
      first = first->getNextNode();
    return first;
  }

  int64_t groups() const { return threads / kWarpgroup; }

  std::string addRing(scf::ForOp loop) {
    std::string reason;
    std::optional<Ring> ring = matchRing(loop, reason);
    if (!ring)
      return "has a loop with tokens that " + reason;
    scf::ForOp tasks = tasksAround(loop);
    for (Operation *op = loop->getParentOp(); op != kernel;
         op = op->getParentOp())
      if (!isa<scf::IfOp>(op) && op != tasks)
        return "loads ahead of time in a loop inside of another";
    auto copies = findTensorCopies(ring->async, reason);
    if (!copies)
      return reason;
    for (const TensorCopy &copy : *copies)
      if (reason = checkLaunches(kernel, copy); !reason.empty())
        return reason;
    RoleRing roles{*ring, *copies, {}, 0, false};
    analyzeReaders(roles);
    shareCopies(roles);
    rings.push_back(roles);
    return "";
  }

  /// Copies that bring the same to all blocks of the cluster are cut into
  /// parts.
  void shareCopies(RoleRing &ring) {
    auto sizes = tile::decisions::kCluster.get(kernel);
    int64_t blocks = sizes ? llvm::product_of(sizes.asArrayRef()) : 1;
    if (blocks == 1)
      return;
    for (TensorCopy &copy : ring.copies) {
      if (!copy.copy->hasAttr(tile::decisions::kMulticast))
        continue;
      if (cutForCluster(copy, blocks))
        ring.blocks = blocks;
      else
        copy.copy.emitRemark("is done by each block of the cluster, since its "
                             "box cannot be cut into ")
            << blocks << " parts";
    }
  }

  bool sharesCopies() const {
    return llvm::any_of(rings,
                        [](const RoleRing &ring) { return ring.blocks > 1; });
  }

  /// All threads of all blocks of the cluster wait for each other.
  void meetCluster(bool aligned) {
    UnitAttr attribute = aligned ? b.getUnitAttr() : UnitAttr();
    NVVM::ClusterArriveOp::create(b, loc, attribute);
    NVVM::ClusterWaitOp::create(b, loc, attribute);
  }

  /// Whether a ring's loop starts the copies, or begins with them under way.
  bool isOfRing(tile::AsyncOp async) {
    return llvm::any_of(rings, [&](RoleRing &ring) {
      return ring.ring.async == async ||
             llvm::any_of(async->getUsers(), [&](Operation *user) {
               return user == ring.ring.loop ||
                      isa<scf::YieldOp>(user); // of a branch before the loop
             });
    });
  }

  std::string addLoad(tile::AsyncOp async) {
    std::string reason;
    std::optional<RoleLoad> load = matchLoad(async, reason);
    if (!load)
      return reason;
    for (const TensorCopy &copy : load->copies)
      if (reason = checkLaunches(kernel, copy); !reason.empty())
        return reason;
    loads.push_back(*load);
    return "";
  }

  bool isKnown(tile::AwaitOp await) {
    return llvm::any_of(rings,
                        [&](RoleRing &ring) {
                          return llvm::is_contained(ring.ring.awaits, await);
                        }) ||
           llvm::any_of(loads, [&](RoleLoad &load) {
             return llvm::is_contained(load.awaits, await);
           });
  }

  void rewriteConsumers() {
    scf::ForOp tasks = rings.empty() ? tasksAround(loads.front().async)
                                     : tasksAround(rings.front().ring.loop);
    if (tasks)
      return carryRings(tasks);
    for (RoleRing &ring : rings) {
      b.setInsertionPoint(ring.ring.loop);
      SlotState start{makeI32(b, loc, 0), makeI32(b, loc, 0)};
      if (ring.memory)
        start = recallRing(b, loc, ring.memory);
      SlotState state = rewriteConsumer(ring, thread, start);
      b.setInsertionPointAfterValue(state.first);
      if (ring.memory)
        rememberRing(b, loc, ring.memory, state);
    }
  }

  /// Where a block runs several tasks, the state of each ring goes on from one
  /// to the next, and so does the parity of the task's number where copies are
  /// started in each of them.
  void carryRings(scf::ForOp tasks) {
    b.setInsertionPoint(tasks);
    bool repeats = anyRepeats(loads);
    SmallVector<Value> inits(2 * rings.size() + repeats, makeI32(b, loc, 0));
    auto made =
        scf::ForOp::create(b, tasks.getLoc(), tasks.getLowerBound(),
                           tasks.getUpperBound(), tasks.getStep(), inits);
    made->setDiscardableAttrs(tasks->getDiscardableAttrDictionary());
    tasks.getInductionVar().replaceAllUsesWith(made.getInductionVar());
    tasks.getBody()->getTerminator()->erase();
    made.getBody()->getOperations().splice(made.getBody()->end(),
                                           tasks.getBody()->getOperations());
    b.setInsertionPointToEnd(made.getBody());
    auto yield = scf::YieldOp::create(b, loc, made.getRegionIterArgs());
    for (auto [index, ring] : llvm::enumerate(rings)) {
      Value start = made.getRegionIterArg(2 * index),
            startPhase = made.getRegionIterArg(2 * index + 1);
      Block *block = scf::ForOp(ring.ring.loop)->getBlock();
      auto [slot, phase] = rewriteConsumer(ring, thread, {start, startPhase});
      // A part of the task that is left out leaves the ring as it is.
      SmallVector<Value> state =
          handOut(block, made, {slot, phase}, {start, startPhase});
      yield.setOperand(2 * index, state[0]);
      yield.setOperand(2 * index + 1, state[1]);
    }
    if (repeats) {
      parity = made.getRegionIterArgs().back();
      b.setInsertionPoint(yield);
      Value next = arith::XOrIOp::create(b, loc, parity, makeI32(b, loc, 1));
      yield.setOperand(2 * rings.size(), next);
    }
    tasks.erase();
  }

  Value warpNumber() {
    Value warp = arith::ShRUIOp::create(b, loc, thread, makeI32(b, loc, 5));
    // One value for the whole warp, so that branches on it are uniform.
    return NVVM::ShflOp::create(b, loc, b.getI32Type(), makeI32(b, loc, -1),
                                warp, makeI32(b, loc, 0), makeI32(b, loc, 31),
                                NVVM::ShflKind::idx, UnitAttr());
  }

  /// Memory for the mbarriers of all rings, behind what is there.
  Value barrierMemory(int64_t words) {
    const TensorCopy &copy = rings.empty() ? loads.front().copies.front()
                                           : rings.front().copies.front();
    Value base = copy.target.base;
    Type word = b.getI64Type();
    if (auto view = base.getDefiningOp<memref::ViewOp>()) {
      int64_t used = 0;
      if (auto bytes = tile::decisions::kSharedBytes.get(kernel))
        used = llvm::alignTo(bytes.getInt(), 8);
      kernel->setAttr(tile::decisions::kSharedBytes,
                      b.getI64IntegerAttr(used + 8 * words));
      Operation *whole = b.clone(*view.getSource().getDefiningOp());
      Value at = arith::ConstantIndexOp::create(b, loc, used);
      auto type =
          MemRefType::get({words}, word, MemRefLayoutAttrInterface(),
                          cast<MemRefType>(base.getType()).getMemorySpace());
      return memref::ViewOp::create(b, loc, type, whole->getResult(0), at,
                                    ValueRange());
    }
    auto type =
        MemRefType::get({words}, word, MemRefLayoutAttrInterface(),
                        cast<MemRefType>(base.getType()).getMemorySpace());
    return tile::AllocOp::create(b, loc, type, 8);
  }

  /// The first thread makes the mbarriers; all wait for it.
  void setUp() {
    Value id = gpu::ThreadIdOp::create(b, loc, gpu::Dimension::x);
    thread = arith::IndexCastUIOp::create(b, loc, b.getI32Type(), id);
    int64_t words = 0;
    for (const RoleLoad &load : loads)
      words += wordsOf(load);
    for (RoleRing &ring : rings)
      words += 2 * ring.ring.getStages();
    Value memory = sharedPointer(b, loc, barrierMemory(words));
    for (RoleRing &ring : rings) {
      ring.barriers = memory;
      memory = offsetPointer(b, loc, memory, 16 * ring.ring.getStages());
    }
    for (RoleLoad &load : loads) {
      load.barrier = memory;
      memory = offsetPointer(b, loc, memory, 8 * wordsOf(load));
    }
    Value isFirst = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                          thread, makeI32(b, loc, 0));
    auto branch = scf::IfOp::create(b, loc, isFirst, /*withElseRegion=*/false);
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(branch.thenBlock());
      for (RoleRing &ring : rings)
        makeBarriers(ring);
      for (const RoleLoad &load : loads)
        makeBarriers(load);
      NVVM::FenceMbarrierInitOp::create(b, loc);
    }
    if (!sharesCopies()) {
      gpu::BarrierOp::create(b, loc);
      return;
    }
    meetCluster(/*aligned=*/true);
    rank = NVVM::ClusterId::create(b, loc, b.getI32Type());
  }

  /// One tells that copies have come, another one that they have been read.
  static int64_t wordsOf(const RoleLoad &load) {
    return load.repeats() ? 2 : 1;
  }

  void makeBarriers(const RoleLoad &load) {
    NVVM::MBarrierInitOp::create(b, loc, load.barrier, makeI32(b, loc, 1),
                                 Value());
    if (load.repeats())
      NVVM::MBarrierInitOp::create(b, loc, load.emptyBarrier(b, loc),
                                   makeI32(b, loc, threads / 32), Value());
  }

  void makeBarriers(const RoleRing &ring) {
    int64_t readers = ring.byWarpgroup ? groups() : threads / 32;
    readers *= ring.blocks;
    Value one = makeI32(b, loc, 1), many = makeI32(b, loc, readers);
    for (int64_t slot = 0; slot < 2 * ring.ring.getStages(); ++slot)
      NVVM::MBarrierInitOp::create(
          b, loc, offsetPointer(b, loc, ring.barriers, 8 * slot),
          slot < ring.ring.getStages() ? one : many, Value());
  }

  /// One thread of the first producing warp starts all copies.
  LogicalResult fillProducer(scf::IfOp roles, Value warp) {
    b.setInsertionPointToStart(roles.thenBlock());
    if (!isLaunched(kernel))
      dropRegisters(b, loc, groups());
    Value isFirst = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                          warp, makeI32(b, loc, threads / 32));
    auto branch = scf::IfOp::create(b, loc, isFirst, /*withElseRegion=*/false);
    b.setInsertionPointToStart(branch.thenBlock());
    Value elected = NVVM::ElectSyncOp::create(b, loc, b.getI1Type(), Value());
    auto one = scf::IfOp::create(b, loc, elected, /*withElseRegion=*/false);
    b.setInsertionPointToStart(one.thenBlock());
    return emitProducer(b, *roles.elseBlock(), rings, loads, kernel, rank,
                        parities);
  }

  gpu::GPUFuncOp kernel;
  int64_t threads;
  OpBuilder b;
  Location loc;
  std::vector<RoleRing> rings;
  std::vector<RoleLoad> loads;
  /// Numbers of the thread, and of the block in its cluster (null: not asked).
  Value thread, rank;
  /// Parity of the number of the block's task or launch (null: not asked), and
  /// where it is kept from one launch to the next.
  Value parity, parities;
};

struct SpecializeWarps
    : public tilewright::impl::SpecializeWarpsBase<SpecializeWarps> {
  void runOnOperation() override {
    if (Device(getOperation()).lacksHopper())
      return;
    WalkResult result = getOperation()->walk([&](gpu::GPUFuncOp kernel) {
      return failed(specialize(kernel)) ? WalkResult::interrupt()
                                        : WalkResult::skip();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }

private:
  LogicalResult specialize(gpu::GPUFuncOp kernel) {
    if (!kernel->hasAttr(tile::decisions::kSpecialized))
      return success();
    auto threads = tile::decisions::kThreads.get(kernel);
    if (!threads || threads.getInt() % kWarpgroup != 0 ||
        threads.getInt() > 3 * kWarpgroup)
      return kernel.emitError("is tile.specialized, but has tile.threads = ")
             << kernel->getAttr(tile::decisions::kThreads)
             << ": warps that compute come in one to three groups of 128 "
                "threads";
    RoleSplit split(kernel, threads.getInt());
    std::string reason = split.analyze();
    if (reason.empty())
      return split.run();
    kernel->removeAttr(tile::decisions::kSpecialized);
    kernel.emitRemark("gets no warps that only move data, since it ") << reason;
    return success();
  }
};

} // namespace
} // namespace tilewright

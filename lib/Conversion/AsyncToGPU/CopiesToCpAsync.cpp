//===- CopiesToCpAsync.cpp - copies of all threads, in groups -===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDecisions.h"
#include "lib/Conversion/AsyncToGPU/CpAsyncCopy.h"
#include "lib/Conversion/AsyncToGPU/Passes.h"
#include "lib/Conversion/AsyncToGPU/Rings.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_COPIESTOCPASYNC
#include "lib/Conversion/AsyncToGPU/Passes.h.inc"

namespace {

/// Groups that may be under way when the ring's loop waits: those of later
/// steps. Each step must have one of its own, before the loop and in it.
int64_t groupsAhead(const Ring &ring) {
  llvm::SmallDenseSet<Value> starts;
  for (unsigned place : ring.tokens) {
    Value init = scf::ForOp(ring.loop).getInitArgs()[place];
    if (!isa_and_nonnull<tile::AsyncOp, scf::IfOp>(init.getDefiningOp()) ||
        !starts.insert(init).second)
      return 0;
  }
  return ring.getStages() - 2;
}

struct CopiesToCpAsync
    : public tilewright::impl::CopiesToCpAsyncBase<CopiesToCpAsync> {
  void runOnOperation() override {
    getOperation()->walk([&](gpu::GPUFuncOp kernel) {
      if (kernel->hasAttr(tile::decisions::kSpecialized))
        return;
      auto threads = tile::decisions::kThreads.get(kernel);
      lower(kernel, threads ? threads.getInt() : 128);
    });
  }

private:
  void lower(gpu::GPUFuncOp kernel, int64_t threads) {
    bool byWarpgroups = false;
    kernel.walk([&](tile::MmaOp product) {
      auto unit = tile::decisions::kUnit.get(product);
      byWarpgroups |= unit && unit.getValue() == "wgmma";
    });
    kernel.walk([&](tile::AwaitOp await) { waitAll(await, byWarpgroups); });
    kernel.walk([](scf::ForOp loop) {
      std::string reason;
      if (!carriesTokens(loop))
        return;
      if (std::optional<Ring> ring = matchRing(loop, reason)) {
        relaxWaits(*ring);
        freeBuffers(*ring);
      } else {
        loop.emitRemark("waits for all copies in each step, since it ")
            << reason;
      }
      if (loop->getParentOfType<scf::ForOp>()) {
        // Slots may still be read, from when the loop ran last.
        OpBuilder b(firstIssue(loop));
        gpu::BarrierOp::create(b, loop.getLoc());
      }
    });
    kernel.walk([&](tile::AsyncOp async) { start(async, threads); });
    kernel.walk([](tile::AwaitOp await) { await.erase(); });
    dropTokens(kernel);
  }

  /// Waits for all groups, and for the other threads' as well. Warpgroups read
  /// by the asynchronous proxy what threads have copied by the generic one.
  static void waitAll(tile::AwaitOp await, bool byWarpgroups) {
    OpBuilder b(await);
    NVVM::CpAsyncWaitGroupOp::create(b, await.getLoc(), 0);
    if (byWarpgroups)
      NVVM::FenceProxyOp::create(
          b, await.getLoc(), NVVM::ProxyKind::async_shared,
          NVVM::SharedSpaceAttr::get(b.getContext(),
                                     NVVM::SharedSpace::shared_cta));
    gpu::BarrierOp::create(b, await.getLoc());
  }

  static void relaxWaits(const Ring &ring) {
    for (tile::AwaitOp await : ring.awaits) {
      Operation *wait = await;
      while (!isa<NVVM::CpAsyncWaitGroupOp>(wait))
        wait = wait->getPrevNode();
      cast<NVVM::CpAsyncWaitGroupOp>(wait).setN(groupsAhead(ring));
    }
  }

  /// What follows may use the slots for something else, once all are here.
  static void freeBuffers(const Ring &ring) {
    scf::ForOp loop = ring.loop;
    OpBuilder b(loop->getContext());
    b.setInsertionPointAfter(loop);
    gpu::BarrierOp::create(b, loop.getLoc());
    for (auto copy : tile::AsyncOp(ring.async).getBody().getOps<tile::CopyOp>())
      if (auto place = findSharedPlace(b, copy.getDst()))
        if (auto view = place->base.getDefiningOp<memref::ViewOp>())
          view->setAttr(tile::decisions::kRing, b.getUnitAttr());
  }

  /// The first op before the loop that starts copies for it.
  static Operation *firstIssue(scf::ForOp loop) {
    Operation *first = loop;
    for (Value init : loop.getInitArgs()) {
      Operation *op = init.getDefiningOp();
      if (isa<tile::TokenType>(init.getType()) && op &&
          op->getBlock() == first->getBlock() && op->isBeforeInBlock(first))
        first = op;
    }
    return first;
  }

  static void start(tile::AsyncOp async, int64_t threads) {
    OpBuilder b(async);
    Location loc = async.getLoc();
    // Addresses of the copies may be computed inside.
    for (Operation &op : llvm::make_early_inc_range(
             async.getBody().front().without_terminator())) {
      op.moveBefore(async);
      auto copy = dyn_cast<tile::CopyOp>(op);
      if (!copy)
        continue;
      if (succeeded(emitCpAsync(b, copy, threads)))
        copy.erase();
      else
        copy.emitRemark("is done at once: cp.async moves rows that start at "
                        "multiples of 4 bytes, from memory to whole slots");
    }
    OpBuilder behind(async->getContext());
    if (Operation *branch = branchFor(async))
      behind.setInsertionPointAfter(branch);
    else
      behind.setInsertionPoint(async);
    NVVM::CpAsyncCommitGroupOp::create(behind, loc);
    Value none = arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(0));
    Value token = async.getToken();
    token.setType(b.getI32Type());
    token.replaceAllUsesWith(none);
    async.erase();
  }

  /// The branch that does nothing with a token but hand it on: the group is
  /// closed behind it, whichever way the run takes, so that groups count steps.
  static Operation *branchFor(tile::AsyncOp async) {
    auto branch = dyn_cast<scf::IfOp>(async->getParentOp());
    bool handsOn = async.getToken().hasOneUse() &&
                   isa<scf::YieldOp>(*async.getToken().user_begin());
    return branch && handsOn && branch.getNumResults() == 1
               ? branch.getOperation()
               : nullptr;
  }

  /// Tokens say nothing any more: zeros take their places.
  static void dropTokens(gpu::GPUFuncOp kernel) {
    Type none = IntegerType::get(kernel.getContext(), 32);
    auto drop = [&](Value value) {
      if (isa<tile::TokenType>(value.getType()))
        value.setType(none);
    };
    kernel.walk([&](Operation *op) {
      llvm::for_each(op->getResults(), drop);
      for (Region &region : op->getRegions())
        llvm::for_each(region.getArguments(), drop);
    });
  }
};

} // namespace
} // namespace tilewright

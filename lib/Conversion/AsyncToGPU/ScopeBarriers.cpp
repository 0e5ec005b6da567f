//===- ScopeBarriers.cpp - barriers of the warps that compute -===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/AsyncToGPU/ScopeBarriers.h"
#include "dialects/Tile/TileDecisions.h"
#include "lib/Conversion/AsyncToGPU/Passes.h"
#include "lib/Conversion/AsyncToGPU/SharedPlaces.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_SCOPEBARRIERS
#include "lib/Conversion/AsyncToGPU/Passes.h.inc"

/// The barrier that the computing warps use; 0 is that of all.
static constexpr int64_t kBarrier = 1;

void meetConsumers(OpBuilder &b, Location loc, int64_t threads) {
  NVVM::BarrierOp::create(b, loc, Type(), makeI32(b, loc, kBarrier),
                          makeI32(b, loc, threads),
                          NVVM::BarrierReductionAttr(), Value());
}

void scopeBarriers(Block &block, int64_t threads) {
  block.walk([&](gpu::BarrierOp barrier) {
    OpBuilder b(barrier);
    meetConsumers(b, barrier.getLoc(), threads);
    barrier.erase();
  });
}

namespace {

struct ScopeBarriers
    : public tilewright::impl::ScopeBarriersBase<ScopeBarriers> {
  void runOnOperation() override {
    getOperation()->walk([&](gpu::GPUFuncOp kernel) {
      auto threads = tile::decisions::kThreads.get(kernel);
      auto block = kernel.getKnownBlockSize();
      if (!kernel->hasAttr(tile::decisions::kSpecialized) || !threads || !block)
        return;
      kernel.walk([&](scf::IfOp roles) {
        if (roles->hasAttr(tile::decisions::kRoles))
          scopeBarriers(*roles.elseBlock(), threads.getInt());
      });
      if (kernel->hasAttr(tile::decisions::kCode))
        return; // the kernel that launches it has all threads
      kernel->setAttr(tile::decisions::kThreads,
                      IntegerAttr::get(threads.getType(), block->front()));
    });
  }
};

} // namespace
} // namespace tilewright

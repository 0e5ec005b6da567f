//===- ScopeBarriers.cpp - barriers of the warps that compute -===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

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

namespace {

/// The barrier that the computing warps use; 0 is that of all.
constexpr int64_t kBarrier = 1;

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
          scope(*roles.elseBlock(), threads.getInt());
      });
      kernel->setAttr(tile::decisions::kThreads,
                      IntegerAttr::get(threads.getType(), block->front()));
    });
  }

private:
  static void scope(Block &block, int64_t threads) {
    block.walk([&](gpu::BarrierOp barrier) {
      OpBuilder b(barrier);
      Location loc = barrier.getLoc();
      NVVM::BarrierOp::create(b, loc, Type(), makeI32(b, loc, kBarrier),
                              makeI32(b, loc, threads),
                              NVVM::BarrierReductionAttr(), Value());
      barrier.erase();
    });
  }
};

} // namespace
} // namespace tilewright

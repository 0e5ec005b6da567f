//===- KeepLoops.cpp - loops of products stay loops -----------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToGPU/MatrixProducts.h"
#include "lib/Conversion/TileToGPU/Passes.h"

namespace tilewright {
#define GEN_PASS_DEF_KEEPLOOPS
#include "lib/Conversion/TileToGPU/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;

static bool isProduct(Operation *op) {
  if (auto call = dyn_cast<LLVM::CallIntrinsicOp>(op))
    return call.getIntrin().contains(".mma.");
  auto assembly = dyn_cast<LLVM::InlineAsmOp>(op);
  return assembly && assembly.getAsmString().contains("mma");
}

bool tilewright::holdsMatrixProduct(Operation *op) {
  auto visit = [](Operation *inner) {
    return isProduct(inner) ? WalkResult::interrupt() : WalkResult::advance();
  };
  return op->walk(visit).wasInterrupted();
}

namespace {

/// `mma.sync` anywhere inside. Products by wgmma wait for each other anyway.
bool holdsWarpProduct(scf::ForOp loop) {
  auto visit = [](LLVM::CallIntrinsicOp call) {
    return isProduct(call) ? WalkResult::interrupt() : WalkResult::advance();
  };
  return loop.walk(visit).wasInterrupted();
}

struct KeepLoops : public tilewright::impl::KeepLoopsBase<KeepLoops> {
  using KeepLoopsBase::KeepLoopsBase;

  void runOnOperation() override {
    MLIRContext *context = &getContext();
    auto unroll = LLVM::LoopUnrollAttr::get(
        context, /*disable=*/BoolAttr::get(context, true), {}, {}, {}, {}, {},
        {});
    auto keep =
        LLVM::LoopAnnotationAttr::get(context, {}, {}, {}, unroll, {}, {}, {},
                                      {}, {}, {}, {}, {}, {}, {}, {});
    getOperation()->walk([&](gpu::GPUModuleOp device) {
      device.walk([&](scf::ForOp loop) {
        if (holdsWarpProduct(loop))
          loop->setAttr("loop_annotation", keep);
      });
    });
  }
};

} // namespace

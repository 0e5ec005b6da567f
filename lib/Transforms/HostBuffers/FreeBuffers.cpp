//===- FreeBuffers.cpp - ownership, where anything is allocated -----------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/HostBuffers/Passes.h"

#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Pass/PassManager.h"

namespace tilewright {
#define GEN_PASS_DEF_FREEBUFFERS
#include "lib/Transforms/HostBuffers/Passes.h.inc"
} // namespace tilewright

using namespace mlir;

namespace {

bool mayAllocate(Operation *op) {
  return hasEffect<MemoryEffects::Allocate>(op) || isa<CallOpInterface>(op);
}

struct FreeBuffers : public tilewright::impl::FreeBuffersBase<FreeBuffers> {
  void runOnOperation() override {
    WalkResult found = getOperation().walk([](Operation *op) {
      return mayAllocate(op) ? WalkResult::interrupt() : WalkResult::advance();
    });
    if (!found.wasInterrupted())
      return;
    OpPassManager passes(func::FuncOp::getOperationName());
    passes.addPass(bufferization::createOwnershipBasedBufferDeallocationPass());
    if (failed(runPipeline(passes, getOperation())))
      signalPassFailure();
  }
};

} // namespace

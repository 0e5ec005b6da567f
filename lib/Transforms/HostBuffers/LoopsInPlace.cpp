//===- LoopsInPlace.cpp - what a loop carries stays where it is -----------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/HostBuffers/Passes.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"

namespace tilewright {
#define GEN_PASS_DEF_LOOPSINPLACE
#include "lib/Transforms/HostBuffers/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;

namespace {

struct LoopsInPlace : public tilewright::impl::LoopsInPlaceBase<LoopsInPlace> {
  void runOnOperation() override {
    func::FuncOp main = findHostFunction(getOperation());
    if (!main)
      return signalPassFailure();
    main.walk([](scf::ForOp loop) {
      Operation *yield = loop.getBody()->getTerminator();
      OpBuilder b(yield);
      for (auto [operand, argument] :
           llvm::zip_equal(yield->getOpOperands(), loop.getRegionIterArgs())) {
        auto type = dyn_cast<RankedTensorType>(argument.getType());
        if (!type || !type.hasStaticShape() || operand.get() == argument)
          continue;
        auto placed = bufferization::MaterializeInDestinationOp::create(
            b, operand.get().getLoc(), argument.getType(), operand.get(),
            argument);
        operand.set(placed.getResult());
      }
    });
  }
};

} // namespace

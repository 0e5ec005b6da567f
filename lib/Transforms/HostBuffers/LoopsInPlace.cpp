//===- LoopsInPlace.cpp - what a loop carries stays where it is -----------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/HostBuffers/Passes.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace tilewright {
#define GEN_PASS_DEF_LOOPSINPLACE
#include "lib/Transforms/HostBuffers/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;

namespace {

/// A tensor from before the loop whose contents do not matter becomes one of
/// the iteration's own: tile-rotate-states can exchange its buffer.
void makeAnew(Value next) {
  auto launch = next.getDefiningOp<tile::LaunchOp>();
  if (!launch)
    return;
  OpOperand &place =
      launch.getOutputsMutable()[cast<OpResult>(next).getResultNumber()];
  auto empty = place.get().getDefiningOp<tensor::EmptyOp>();
  if (!empty || empty->getBlock() == launch->getBlock())
    return;
  OpBuilder b(launch);
  place.set(b.clone(*empty)->getResult(0));
}

/// Makes what a loop hands on appear in the buffer that it got.
void place(OpOperand &operand, Value argument) {
  auto type = dyn_cast<RankedTensorType>(argument.getType());
  if (!type || !type.hasStaticShape() || operand.get() == argument)
    return;
  makeAnew(operand.get());
  OpBuilder b(operand.getOwner());
  auto placed = bufferization::MaterializeInDestinationOp::create(
      b, operand.get().getLoc(), argument.getType(), operand.get(), argument);
  operand.set(placed.getResult());
}

void placeStates(scf::ForOp loop) {
  Operation *yield = loop.getBody()->getTerminator();
  for (auto [operand, argument] :
       llvm::zip_equal(yield->getOpOperands(), loop.getRegionIterArgs()))
    place(operand, argument);
}

/// The state that the condition passes on as it is comes back in its buffer.
void placeStates(scf::WhileOp loop) {
  ValueRange passed = loop.getConditionOp().getArgs();
  for (auto [operand, state] : llvm::zip_equal(
           loop.getYieldOp()->getOpOperands(), loop.getBeforeArguments())) {
    auto found = llvm::find(passed, state);
    if (found != passed.end())
      place(operand, loop.getAfterArguments()[found - passed.begin()]);
  }
}

struct LoopsInPlace : public tilewright::impl::LoopsInPlaceBase<LoopsInPlace> {
  void runOnOperation() override {
    func::FuncOp main = findHostFunction(getOperation());
    if (!main)
      return signalPassFailure();
    main.walk([](Operation *op) {
      if (auto loop = dyn_cast<scf::ForOp>(op))
        placeStates(loop);
      else if (auto loop = dyn_cast<scf::WhileOp>(op))
        placeStates(loop);
    });
  }
};

} // namespace

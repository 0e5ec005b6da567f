//===- ReuseOperands.cpp - results that take the place of an operand ------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/HostBuffers/Passes.h"

#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace tilewright {
#define GEN_PASS_DEF_REUSEOPERANDS
#include "lib/Transforms/HostBuffers/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;

namespace {

/// Whether a launch made the value in a place that is the value's alone: new,
/// or that of an operand which ended there.
bool hasOwnPlace(Value value) {
  while (auto launch = value.getDefiningOp<tile::LaunchOp>()) {
    Value place = launch.getOutputs()[cast<OpResult>(value).getResultNumber()];
    if (place.getDefiningOp<tensor::EmptyOp>())
      return true;
    value = place;
  }
  return false;
}

/// Whether only launches of one block read the value, `last` after all others
/// and once.
bool endsAt(Value value, tile::LaunchOp last) {
  return llvm::all_of(
             value.getUses(),
             [&](OpOperand &use) {
               auto reader = dyn_cast<tile::LaunchOp>(use.getOwner());
               return reader && reader->getBlock() == last->getBlock() &&
                      (reader == last || reader->isBeforeInBlock(last));
             }) &&
         llvm::count(last->getOperands(), value) == 1;
}

/// Whether all that becomes of a result is read by launches.
bool isReadByLaunches(Value result) {
  return llvm::all_of(result.getUsers(), llvm::IsaPred<tile::LaunchOp>);
}

struct ReuseOperands
    : public tilewright::impl::ReuseOperandsBase<ReuseOperands> {
  void runOnOperation() override {
    func::FuncOp main = findHostFunction(getOperation());
    if (!main)
      return signalPassFailure();
    bufferization::BufferizationOptions options;
    bufferization::AnalysisState state(options);
    for (auto launch : main.getBody().getOps<tile::LaunchOp>())
      for (OpOperand &place : launch.getOutputsMutable())
        reuse(launch, place, state);
  }

  static void reuse(tile::LaunchOp launch, OpOperand &place,
                    const bufferization::AnalysisState &state) {
    auto empty = place.get().getDefiningOp<tensor::EmptyOp>();
    auto type = dyn_cast<RankedTensorType>(place.get().getType());
    unsigned first = launch.getOutputsMutable().begin()->getOperandNumber();
    if (!empty || !type.hasStaticShape() ||
        !isReadByLaunches(launch->getResult(place.getOperandNumber() - first)))
      return;
    auto model = cast<bufferization::BufferizableOpInterface>(*launch);
    for (OpOperand &input : launch.getInputsMutable()) {
      Value value = input.get();
      if (value.getType() != type || !hasOwnPlace(value) ||
          !endsAt(value, launch) ||
          !model.bufferizesToElementwiseAccess(state, {&input, &place}))
        continue;
      place.set(value);
      return;
    }
  }
};

} // namespace

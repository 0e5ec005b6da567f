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
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/ADT/TypeSwitch.h"

namespace tilewright {
#define GEN_PASS_DEF_LOOPSINPLACE
#include "lib/Transforms/HostBuffers/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;

namespace {

Value getOrigin(Value value);
bool staysIn(Value value, Value place);

/// Whether an operation, or the one around it, is over when another begins.
bool runsBefore(Operation *first, Operation *second) {
  for (Operation *here = second; here; here = here->getParentOp())
    if (Operation *there = here->getBlock()->findAncestorOpInBlock(*first))
      return there->isBeforeInBlock(here);
  return false;
}

/// Whether a use reads a tensor, itself or a part of it, and never after
/// `writer` has begun to overwrite it.
bool isReadBefore(OpOperand &use, Operation *writer) {
  Operation *reader = use.getOwner();
  if (insideMutuallyExclusiveRegions(reader, writer))
    return true;
  if (!runsBefore(reader, writer))
    return false;
  if (isa<tensor::ExtractSliceOp, tensor::CastOp, tensor::CollapseShapeOp,
          tensor::ExpandShapeOp>(reader))
    return llvm::all_of(reader->getResult(0).getUses(), [&](OpOperand &part) {
      return isReadBefore(part, writer);
    });
  auto made = dyn_cast<DestinationStyleOpInterface>(reader);
  return isa<tensor::ExtractOp, tensor::DimOp>(reader) ||
         (made && made.isDpsInput(&use));
}

/// Whether nobody reads a tensor after the operation that overwrites it.
bool endsAt(OpOperand &overwritten) {
  return llvm::all_of(overwritten.get().getUses(), [&](OpOperand &use) {
    return &use == &overwritten || isReadBefore(use, overwritten.getOwner());
  });
}

/// The tensor from before a branch that becomes `value` in it.
Value getOrigin(Value value, Region &branch) {
  while (value && branch.isAncestor(value.getParentRegion()))
    value = getOrigin(value);
  return value;
}

Value getCommonOrigin(scf::IfOp branches, unsigned result) {
  Value origin = getOrigin(branches.thenYield().getOperand(result),
                           branches.getThenRegion());
  Value other = getOrigin(branches.elseYield().getOperand(result),
                          branches.getElseRegion());
  return origin == other ? origin : nullptr;
}

/// What a loop starts from, where its iterations keep the result there.
OpOperand *getStart(scf::ForOp loop, OpResult result) {
  BlockArgument state = loop.getTiedLoopRegionIterArg(result);
  return staysIn(loop.getTiedLoopYieldedValue(state)->get(), state)
             ? loop.getTiedLoopInit(state)
             : nullptr;
}

/// Bufferization keeps those states that have one number everywhere.
OpOperand *getStart(scf::WhileOp loop, OpResult result) {
  unsigned number = result.getResultNumber();
  if (number >= loop.getBeforeArguments().size() ||
      loop.getConditionOp().getArgs()[number] !=
          loop.getBeforeArguments()[number])
    return nullptr;
  return staysIn(loop.getYieldOp().getOperand(number),
                 loop.getAfterArguments()[number])
             ? &loop->getOpOperand(number)
             : nullptr;
}

/// The tensor whose place an operation on the host takes over with a result,
/// loops and branches too; null where the result is a tensor of its own.
Value getOrigin(Value value) {
  auto result = dyn_cast<OpResult>(value);
  if (!result)
    return nullptr;
  if (auto branches = dyn_cast<scf::IfOp>(result.getOwner()))
    return getCommonOrigin(branches, result.getResultNumber());
  auto *overwritten =
      llvm::TypeSwitch<Operation *, OpOperand *>(result.getOwner())
          .Case<tensor::InsertOp, tensor::InsertSliceOp>(
              [](auto op) { return &op.getDestMutable(); })
          .Case<scf::ForOp, scf::WhileOp>(
              [&](auto loop) { return getStart(loop, result); })
          .Default(nullptr);
  return overwritten && endsAt(*overwritten) ? overwritten->get() : nullptr;
}

/// Whether a tensor is what became of `place` by overwriting it step by step,
/// none of which spoils what is read later. Bufferization keeps such a tensor
/// in its buffer by itself, through inner loops too. To place it where an inner
/// loop has started would be a conflict: that buffers are equal is known only
/// at the end of the analysis.
bool staysIn(Value value, Value place) {
  while (value && value != place)
    value = getOrigin(value);
  return value != nullptr;
}

/// What a value overwrites, or what the loop that makes it starts from; whether
/// that is read later does not matter here.
OpOperand *getStarted(OpResult result) {
  unsigned number = result.getResultNumber();
  return llvm::TypeSwitch<Operation *, OpOperand *>(result.getOwner())
      .Case<tensor::InsertOp, tensor::InsertSliceOp>(
          [](auto op) { return &op.getDestMutable(); })
      .Case([&](scf::ForOp loop) {
        return loop.getTiedLoopInit(loop.getTiedLoopRegionIterArg(result));
      })
      .Case([&](scf::WhileOp loop) {
        return number < loop->getNumOperands() ? &loop->getOpOperand(number)
                                               : nullptr;
      })
      .Default(nullptr);
}

/// Lets each inner loop between `place` and a value that is to be placed there
/// start from a copy: its own steps must not write there.
void copyStarts(Value value, Value place) {
  auto result = dyn_cast<OpResult>(value);
  if (!result)
    return;
  if (auto branches = dyn_cast<scf::IfOp>(result.getOwner())) {
    unsigned number = result.getResultNumber();
    copyStarts(branches.thenYield().getOperand(number), place);
    copyStarts(branches.elseYield().getOperand(number), place);
    return;
  }
  OpOperand *started = getStarted(result);
  if (!started)
    return;
  copyStarts(started->get(), place);
  if (started->get() != place || !isa<LoopLikeOpInterface>(result.getOwner()))
    return;
  OpBuilder b(result.getOwner());
  auto type = cast<RankedTensorType>(place.getType());
  started->set(bufferization::AllocTensorOp::create(
      b, value.getLoc(), type, /*dynamicSizes=*/ValueRange(), /*copy=*/place));
}

/// A tensor from before the loop whose contents do not matter becomes one of
/// the iteration's own: tile-ping-pong-buffers can exchange its buffer.
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
  copyStarts(operand.get(), argument);
  OpBuilder b(operand.getOwner());
  auto placed = bufferization::MaterializeInDestinationOp::create(
      b, operand.get().getLoc(), argument.getType(), operand.get(), argument);
  operand.set(placed.getResult());
}

void placeStates(scf::ForOp loop) {
  Operation *yield = loop.getBody()->getTerminator();
  for (auto [operand, argument] :
       llvm::zip_equal(yield->getOpOperands(), loop.getRegionIterArgs()))
    if (!staysIn(operand.get(), argument))
      place(operand, argument);
}

/// The state that the condition passes on as it is comes back in its buffer.
void placeStates(scf::WhileOp loop) {
  ValueRange passed = loop.getConditionOp().getArgs();
  for (auto [operand, state] : llvm::zip_equal(
           loop.getYieldOp()->getOpOperands(), loop.getBeforeArguments())) {
    auto found = llvm::find(passed, state);
    if (found == passed.end())
      continue;
    unsigned number = found - passed.begin();
    Value argument = loop.getAfterArguments()[number];
    if (number != operand.getOperandNumber() ||
        !staysIn(operand.get(), argument))
      place(operand, argument);
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

//===- BranchesInPlace.cpp - branches make their result in one place ------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/HostBuffers/Passes.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"

namespace tilewright {
#define GEN_PASS_DEF_BRANCHESINPLACE
#include "lib/Transforms/HostBuffers/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;

namespace {

/// Collects the operands that operations of a branch make a value in, followed
/// to the empty tensors that it began as: one, or more where branches in the
/// branch make it. False where it began as anything else, or a step between is
/// used twice.
bool findPlaces(Value value, Region &branch, SmallVector<OpOperand *> &places) {
  OpOperand *place = nullptr;
  while (auto result = dyn_cast<OpResult>(value)) {
    Operation *owner = result.getOwner();
    if (isa<tensor::EmptyOp>(owner)) {
      if (place)
        places.push_back(place);
      return place;
    }
    if (owner->getParentRegion() != &branch || !value.hasOneUse())
      return false;
    if (auto inner = dyn_cast<scf::IfOp>(owner)) {
      return llvm::all_of(inner->getRegions(), [&](Region &region) {
        Value yielded = region.front().getTerminator()->getOperand(
            result.getResultNumber());
        return findPlaces(yielded, region, places);
      });
    }
    auto made = dyn_cast<DestinationStyleOpInterface>(owner);
    if (!made)
      return false;
    place = made.getTiedOpOperand(result);
    value = place->get();
  }
  return false;
}

/// Lets both branches make a result in the same new tensor from before them.
void placeResult(scf::IfOp branches, unsigned number) {
  auto type = dyn_cast<RankedTensorType>(branches.getResult(number).getType());
  if (!type || !type.hasStaticShape())
    return;
  SmallVector<OpOperand *> places;
  for (Region *branch :
       {&branches.getThenRegion(), &branches.getElseRegion()}) {
    Value yielded = branch->front().getTerminator()->getOperand(number);
    if (!findPlaces(yielded, *branch, places))
      return;
  }
  OpBuilder b(branches);
  Value place = tensor::EmptyOp::create(b, branches.getLoc(), type.getShape(),
                                        type.getElementType());
  for (OpOperand *operand : places)
    operand->set(place);
}

struct BranchesInPlace
    : public tilewright::impl::BranchesInPlaceBase<BranchesInPlace> {
  void runOnOperation() override {
    func::FuncOp main = findHostFunction(getOperation());
    if (!main)
      return signalPassFailure();
    main.walk([](scf::IfOp branches) {
      for (unsigned number = 0; number < branches.getNumResults(); ++number)
        placeResult(branches, number);
    });
  }
};

} // namespace

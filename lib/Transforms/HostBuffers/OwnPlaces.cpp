//===- OwnPlaces.cpp - tensors that parts are put into are told apart -----===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/HostBuffers/Passes.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"

namespace tilewright {
#define GEN_PASS_DEF_OWNPLACES
#include "lib/Transforms/HostBuffers/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;

namespace {

/// The operand in whose place a value is made; null where it has none.
OpOperand *getPlace(Value value) {
  auto result = dyn_cast<OpResult>(value);
  if (!result)
    return nullptr;
  if (auto launch = dyn_cast<tile::LaunchOp>(result.getOwner()))
    return &launch.getOutputsMutable()[result.getResultNumber()];
  auto op = dyn_cast<DestinationStyleOpInterface>(result.getOwner());
  return op ? op.getDpsInitOperand(result.getResultNumber()) : nullptr;
}

/// The slice of `whole` in whose place a part is made that is inserted there.
tensor::ExtractSliceOp getCut(OpOperand *place, Value whole,
                              tensor::InsertSliceOp insert) {
  auto cut = place ? place->get().getDefiningOp<tensor::ExtractSliceOp>()
                   : tensor::ExtractSliceOp();
  bool same = cut && cut.getSource() == whole &&
              cut.isSameAs(cast<OffsetSizeAndStrideOpInterface>(*insert),
                           isEqualConstantIntOrValue);
  return same ? cut : tensor::ExtractSliceOp();
}

/// Gives the first part that is put into an undefined tensor, and so all that
/// is put there behind it, a tensor of its own.
void separate(tensor::InsertSliceOp insert) {
  auto empty = insert.getDest().getDefiningOp<tensor::EmptyOp>();
  OpOperand *place = getPlace(insert.getSource());
  if (!empty || !place)
    return;
  tensor::ExtractSliceOp cut = getCut(place, empty.getResult(), insert);
  if (!cut)
    return;
  if (cut->hasOneUse() && empty.getResult().hasNUses(2))
    return; // its own already
  OpBuilder b(place->getOwner());
  Value own = b.clone(*empty)->getResult(0);
  auto part = cast<tensor::ExtractSliceOp>(b.clone(*cut));
  part.getSourceMutable().assign(own);
  place->set(part);
  insert.getDestMutable().assign(own);
}

/// Fills a tensor anew for parts that are put into it, where others are put
/// into one that is filled alike: that costs less than to copy it.
void refill(tensor::InsertSliceOp insert) {
  auto fill = insert.getDest().getDefiningOp<linalg::FillOp>();
  auto empty = fill ? fill.getOutputs().front().getDefiningOp<tensor::EmptyOp>()
                    : tensor::EmptyOp();
  if (!empty)
    return;
  OpOperand *place = getPlace(insert.getSource());
  tensor::ExtractSliceOp cut = getCut(place, fill->getResult(0), insert);
  if (fill->getResult(0).hasNUses(cut ? 2 : 1))
    return; // its own already
  OpBuilder b(cut ? place->getOwner() : insert.getOperation());
  auto own = cast<linalg::FillOp>(b.clone(*fill));
  b.setInsertionPoint(own);
  own.getOutputsMutable().assign(b.clone(*empty)->getResult(0));
  if (cut) {
    b.setInsertionPointAfter(own);
    auto part = cast<tensor::ExtractSliceOp>(b.clone(*cut));
    part.getSourceMutable().assign(own->getResult(0));
    place->set(part);
  }
  insert.getDestMutable().assign(own->getResult(0));
}

struct OwnPlaces : public tilewright::impl::OwnPlacesBase<OwnPlaces> {
  void runOnOperation() override {
    func::FuncOp main = findHostFunction(getOperation());
    if (!main)
      return signalPassFailure();
    main.walk([](tensor::InsertSliceOp insert) {
      separate(insert);
      refill(insert);
    });
  }
};

} // namespace

//===- DeferWaits.cpp - products that run on beside others ----------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDecisions.h"
#include "lib/Analysis/Device.h"
#include "lib/Conversion/AsyncToGPU/Passes.h"

#include "dialects/Tile/Tile.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_DEFERWAITS
#include "lib/Conversion/AsyncToGPU/Passes.h.inc"

namespace {

bool isBackgroundProduct(Operation &op) {
  auto unit = tile::decisions::kUnit.get(op);
  return isa<tile::MmaOp>(op) && unit && unit.getValue() == "wgmma" &&
         !op.hasAttr(tile::decisions::kPending);
}

/// The first statement of the block that reads a result of `op`; the block's
/// last one where there is none.
Operation *firstReader(Operation *op) {
  Operation *first = op->getBlock()->getTerminator();
  for (Operation *user : op->getUsers()) {
    Operation *statement = op->getBlock()->findAncestorOpInBlock(*user);
    if (statement && statement->isBeforeInBlock(first))
      first = statement;
  }
  return first;
}

/// Waits for all products but the last `pending` before `place`, for the value
/// of `product`, which itself waits for nothing: it is the last but `behind`.
void waitBefore(tile::MmaOp product, Operation *place, int64_t pending,
                int64_t behind) {
  OpBuilder b(place);
  product->setAttr(tile::decisions::kPending, b.getI64IntegerAttr(behind));
  auto wait = tile::MmaWaitOp::create(
      b, product.getLoc(), product.getResult().getType(), product.getResult());
  if (pending)
    wait->setAttr(tile::decisions::kPending, b.getI64IntegerAttr(pending));
  product.getResult().replaceAllUsesExcept(wait.getResult(), wait);
}

void deferWaits(Block &block) {
  SmallVector<tile::MmaOp> products;
  for (Operation &op : block)
    if (isBackgroundProduct(op))
      products.push_back(cast<tile::MmaOp>(op));
  for (size_t index = 0; index + 1 < products.size(); ++index) {
    tile::MmaOp first = products[index], second = products[index + 1];
    if (firstReader(first)->isBeforeInBlock(second->getNextNode()))
      continue;
    Operation *reader = firstReader(second);
    if (index + 2 < products.size() &&
        products[index + 2]->isBeforeInBlock(reader))
      reader = products[index + 2];
    waitBefore(first, second->getNextNode(), 1, 1);
    waitBefore(second, reader, 0, 2);
    ++index;
  }
}

struct DeferWaits : public tilewright::impl::DeferWaitsBase<DeferWaits> {
  void runOnOperation() override {
    if (Device(getOperation()).lacksHopper())
      return;
    getOperation()->walk([](tile::MmaOp product) {
      // Each block once, from its first product.
      Block *block = product->getBlock();
      auto products = block->getOps<tile::MmaOp>();
      if (*products.begin() == product)
        deferWaits(*block);
    });
  }
};

} // namespace
} // namespace tilewright

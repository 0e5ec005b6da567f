//===- HoistInvariants.cpp - what does not vary with elements, once -------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Recurrences/Passes.h"

#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/LoopInvariantCodeMotionUtils.h"
#include "mlir/Transforms/RegionUtils.h"

namespace tilewright {
#define GEN_PASS_DEF_HOISTINVARIANTS
#include "lib/Transforms/Recurrences/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;
using namespace tilewright::fractal;

/// Results of a map that are the same for all elements, as repeated values.
static void repeatInvariants(MapOp map) {
  int64_t length = map.getLength();
  if (!ArrayType::isKnown(length))
    return;
  OpBuilder b(map);
  for (auto [value, result] :
       llvm::zip_equal(map.getYield().getValues(), map.getResults())) {
    if (result.use_empty() ||
        map->isAncestor(value.getParentBlock()->getParentOp()))
      continue;
    auto repeated = RepeatOp::create(b, value.getLoc(), result.getType(), value,
                                     Value(), b.getI64IntegerAttr(length));
    result.replaceAllUsesWith(repeated.getResult());
  }
  if (map->use_empty())
    map->erase();
}

/// What depends on nothing in the body, in front of the op.
static void hoist(Operation *op) {
  moveLoopInvariantCode(
      {&op->getRegion(0)},
      [](Value value, Region *region) {
        return !region->isAncestor(value.getParentRegion());
      },
      [](Operation *inner, Region *) {
        return isMemoryEffectFree(inner) && isSpeculatable(inner);
      },
      [&](Operation *inner, Region *) { inner->moveBefore(op); });
}

namespace {
struct HoistInvariants
    : tilewright::impl::HoistInvariantsBase<HoistInvariants> {
  void runOnOperation() override {
    // Inner bodies first: what leaves them may leave outer ones, too.
    bool hasLists = false;
    getOperation()->walk([&](Operation *op) {
      if (!isa<MapOp, ScanOp, FoldOp, ReduceOp, FilterOp>(op))
        return;
      hasLists = true;
      hoist(op);
      if (auto map = dyn_cast<MapOp>(op))
        repeatInvariants(map);
    });
    if (!hasLists)
      return;
    // What nobody reads any more must not look like a reader of a state.
    IRRewriter rewriter(&getContext());
    (void)runRegionDCE(rewriter, getOperation()->getRegions());
  }
};
} // namespace

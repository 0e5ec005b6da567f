//===- VerifyPlan.cpp - tile-verify-plan
//------------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/Tile.h"
#include "lib/Transforms/Plan/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_VERIFYPLAN
#include "lib/Transforms/Plan/Passes.h.inc"

namespace {

/// Points of a loop nest that take about as long as starting a kernel.
constexpr int64_t kFewPoints = 512;

bool isLarge(linalg::GenericOp op) {
  int64_t points = 1;
  for (int64_t range : op.getStaticLoopRanges()) {
    if (ShapedType::isDynamic(range))
      return true;
    points *= range;
  }
  return points > kFewPoints;
}

struct VerifyPlan : public impl::VerifyPlanBase<VerifyPlan> {
  void runOnOperation() override {
    bool ok = true;
    getOperation().walk([&](linalg::GenericOp op) {
      auto function = op->getParentOfType<func::FuncOp>();
      if (function && function.getSymName() == "init")
        return;
      if (op->getParentOfType<tile::GroupOp>())
        return;
      if (auto reason = op->getAttrOfType<StringAttr>("tile.host")) {
        if (isLarge(op))
          op.emitRemark("runs as scalar loops on the host: ")
              << reason.getValue();
        return;
      }
      op.emitError("is in no tile.group after `plan`: no kernel would compute "
                   "it");
      ok = false;
    });
    getOperation().walk([&](tile::GroupOp group) {
      if (group.getLevel() != "register")
        return;
      auto ops = group.getBody().front().getOps<linalg::GenericOp>();
      if (llvm::count_if(ops, [](linalg::GenericOp op) {
            return op->hasAttr("tile.rtile");
          }) == 1)
        return;
      group.emitError("is a register group without exactly one root, the "
                      "operation that carries the tile.rtile of the nest");
      ok = false;
    });
    if (!ok)
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};

} // namespace
} // namespace tilewright

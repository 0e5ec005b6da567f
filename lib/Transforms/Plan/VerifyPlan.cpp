//===- VerifyPlan.cpp - tile-verify-plan ----------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/Tile.h"
#include "dialects/Tile/TileDecisions.h"
#include "lib/Transforms/Plan/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_VERIFYPLAN
#include "lib/Transforms/Plan/Passes.h.inc"

namespace {

/// Points of a loop nest that take about as long as starting a kernel.
constexpr int64_t kFewPoints = 512;

/// Product of sizes, or a large number where one is known at run time only.
int64_t countPoints(ArrayRef<int64_t> sizes) {
  int64_t points = 1;
  for (int64_t size : sizes) {
    if (ShapedType::isDynamic(size) || size > kFewPoints)
      return kFewPoints + 1;
    points = std::min(points * size, kFewPoints + 1);
  }
  return points;
}

/// Steps that a loop takes, those of the loops in it included.
int64_t countSteps(Operation *op) {
  int64_t inner = 1;
  for (Region &region : op->getRegions())
    for (Operation &nested : region.getOps())
      inner = std::max(inner, countSteps(&nested));
  if (isa<scf::WhileOp>(op))
    return kFewPoints + 1;
  auto loop = dyn_cast<scf::ForOp>(op);
  if (!loop)
    return inner;
  std::optional<APInt> steps = loop.getStaticTripCount();
  return countPoints(
      {steps ? steps->getSExtValue() : ShapedType::kDynamic, inner});
}

/// Multiply-adds that take about as long in f32 as starting a few kernels.
constexpr int64_t kFewProducts = 1 << 18;

/// What a size that is known at run time only counts as (EXPECTED in
/// structure.py).
constexpr int64_t kExpected = 128;

/// Whether a product is large enough for its speed to matter.
bool isLargeProduct(linalg::GenericOp op) {
  int64_t points = 1;
  for (int64_t size : op.getStaticLoopRanges()) {
    size = ShapedType::isDynamic(size) ? kExpected : size;
    if (size == 0)
      return false;
    points = std::min(points, kFewProducts) * std::min(size, kFewProducts);
  }
  return points > kFewProducts;
}

/// Tells which large product of small numbers no instruction takes, and what
/// else makes one slow.
void remarkOnProduct(linalg::GenericOp op) {
  auto reason = tile::decisions::kWidened.get(op);
  if (reason && isLargeProduct(op))
    op.emitRemark("multiplies ") << reason.getValue();
  reason = tile::decisions::kSlow.get(op);
  if (reason && isLargeProduct(op))
    op.emitRemark() << reason.getValue();
}

/// A loop that is no loop around kernels, but computes itself.
bool isScalarProgram(Operation *loop) {
  bool touches = false;
  WalkResult result = loop->walk([&](Operation *inner) {
    touches |= isa<tensor::ExtractOp, tensor::InsertOp>(inner);
    return isa<linalg::GenericOp, tile::GroupOp>(inner)
               ? WalkResult::interrupt()
               : WalkResult::advance();
  });
  return touches && !result.wasInterrupted();
}

/// Tells what runs on the host and is large; returns whether to look inside.
WalkResult remarkOnHost(Operation *op) {
  if (auto loop = dyn_cast<LoopLikeOpInterface>(op)) {
    if (!isScalarProgram(op))
      return WalkResult::advance();
    if (countSteps(op) > kFewPoints)
      op->emitRemark("runs on the host: a loop over single elements");
    return WalkResult::skip();
  }
  if (auto generate = dyn_cast<tensor::GenerateOp>(op)) {
    if (countPoints(generate.getType().getShape()) > kFewPoints)
      op->emitRemark("runs as scalar loops on the host: it makes each element "
                     "by a program");
    return WalkResult::skip();
  }
  return WalkResult::advance();
}

struct VerifyPlan : public impl::VerifyPlanBase<VerifyPlan> {
  void runOnOperation() override {
    bool ok = true;
    getOperation().walk([&](linalg::GenericOp op) {
      auto function = op->getParentOfType<func::FuncOp>();
      if (function && function.getSymName() == "init")
        return;
      remarkOnProduct(op);
      if (op->getParentOfType<tile::GroupOp>())
        return;
      if (auto reason = tile::decisions::kHost.get(op)) {
        if (countPoints(op.getStaticLoopRanges()) > kFewPoints)
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
            return op->hasAttr(tile::decisions::kRtile);
          }) == 1)
        return;
      group.emitError("is a register group without exactly one root, the "
                      "operation that carries the tile.rtile of the nest");
      ok = false;
    });
    if (!ok)
      return signalPassFailure();
    if (auto main = getOperation().lookupSymbol<func::FuncOp>("main"))
      main.walk<WalkOrder::PreOrder>(remarkOnHost);
    markAllAnalysesPreserved();
  }
};

} // namespace
} // namespace tilewright

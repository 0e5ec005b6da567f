//===- PromoteSums.cpp - sums that leave short accumulators in time -------===//
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

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_PROMOTESUMS
#include "lib/Conversion/AsyncToGPU/Passes.h.inc"

namespace {

Value makeZeros(OpBuilder &b, Location loc, tile::TileType type) {
  auto zero = b.getFloatAttr(type.getElementType(), 0.0);
  return arith::ConstantOp::create(b, loc, SplatElementsAttr::get(type, zero));
}

/// Whether a product's sum begins with zeros: the unit adds one product alone.
bool startsAtZero(tile::MmaOp mma) {
  auto constant = mma.getC().getDefiningOp<arith::ConstantOp>();
  auto elements =
      constant ? dyn_cast<SplatElementsAttr>(constant.getValue()) : nullptr;
  return elements && elements.getSplatValue<APFloat>().isPosZero();
}

/// The loop that carries a product's sum and nothing else does: null if there
/// is none.
scf::ForOp carrier(tile::MmaOp mma) {
  auto loop = dyn_cast<scf::ForOp>(mma->getParentOp());
  auto sum = dyn_cast<BlockArgument>(mma.getC());
  if (!loop || !sum || sum.getOwner() != loop.getBody() || !sum.hasOneUse() ||
      !mma->hasOneUse())
    return nullptr;
  return loop.getTiedLoopYieldedValue(sum)->get() == mma.getResult() ? loop
                                                                     : nullptr;
}

/// sum + a b: the unit begins anew at each product.
void promoteEach(tile::MmaOp mma) {
  OpBuilder b(mma);
  Location loc = mma.getLoc();
  Value sum = mma.getC();
  mma.getCMutable().assign(
      makeZeros(b, loc, cast<tile::TileType>(sum.getType())));
  b.setInsertionPointAfter(mma);
  auto total = arith::AddFOp::create(b, loc, sum, mma.getResult());
  mma.getResult().replaceAllUsesExcept(total, total);
}

/// Whether a loop is in the last of `steps` steps, of each so many, or of all.
Value isLast(OpBuilder &b, Location loc, scf::ForOp loop, int64_t steps) {
  Value step = loop.getInductionVar();
  auto count = [&](int64_t n) -> Value {
    return arith::ConstantOp::create(b, loc,
                                     b.getIntegerAttr(step.getType(), n));
  };
  Value done = arith::SubIOp::create(b, loc, step, loop.getLowerBound());
  done = arith::DivUIOp::create(b, loc, done, loop.getStep());
  Value rest = arith::RemUIOp::create(b, loc, done, count(steps));
  Value full = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, rest,
                                     count(steps - 1));
  Value next = arith::AddIOp::create(b, loc, step, loop.getStep());
  Value over = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, next,
                                     loop.getUpperBound());
  return arith::OrIOp::create(b, loc, full, over);
}

/// The loop carries what the unit has of the sum, too, and adds it to the rest
/// in every so manieth step and in the last one. It begins anew by itself
/// (`tile.starts`): registers that are cleared would be copied while the unit
/// still writes to them.
void promoteInSteps(scf::ForOp loop, tile::MmaOp mma, int64_t steps) {
  IRRewriter rewriter(mma.getContext());
  rewriter.setInsertionPoint(loop);
  Location loc = mma.getLoc();
  auto sum = cast<BlockArgument>(mma.getC());
  unsigned place = sum.getArgNumber() - loop.getNumInductionVars();
  Value nothing = ub::PoisonOp::create(rewriter, loc, sum.getType());
  auto made = cast<scf::ForOp>(*loop.replaceWithAdditionalYields(
      rewriter, nothing, /*replaceInitOperandUsesInLoop=*/false,
      [&](OpBuilder &, Location, ArrayRef<BlockArgument>) {
        return SmallVector<Value>{mma.getResult()};
      }));
  Value carried = made.getRegionIterArg(place);
  mma.getCMutable().assign(made.getRegionIterArgs().back());
  mma->setAttr(tile::decisions::kStarts, rewriter.getI64IntegerAttr(steps));
  Operation *yield = made.getBody()->getTerminator();
  OpBuilder b(yield);
  auto branch = scf::IfOp::create(
      b, loc, isLast(b, loc, made, steps),
      [&](OpBuilder &inner, Location at) {
        Value total =
            arith::AddFOp::create(inner, at, carried, mma.getResult());
        scf::YieldOp::create(inner, at, total);
      },
      [&](OpBuilder &inner, Location at) {
        scf::YieldOp::create(inner, at, carried);
      });
  yield->setOperand(place, branch.getResult(0));
}

void promote(tile::MmaOp mma) {
  int64_t terms = tile::decisions::kPromotion.get(mma).getInt();
  int64_t depth = mma.getA().getType().getShape()[1];
  mma->removeAttr(tile::decisions::kPromotion);
  if (terms == 0 || !isa<FloatType>(mma.getC().getType().getElementType()))
    return;
  if (depth > terms)
    mma.emitRemark("adds ")
        << depth << " terms in one product, where tile.promotion asks for "
        << terms << ": they are promoted after each product";
  if (startsAtZero(mma))
    return;
  scf::ForOp loop = carrier(mma);
  if (loop && terms >= 2 * depth)
    promoteInSteps(loop, mma, terms / depth);
  else
    promoteEach(mma);
}

struct PromoteSums : public tilewright::impl::PromoteSumsBase<PromoteSums> {
  void runOnOperation() override {
    if (Device(getOperation()).lacksHopper())
      return;
    SmallVector<tile::MmaOp> products;
    getOperation()->walk([&](tile::MmaOp mma) {
      auto unit = tile::decisions::kUnit.get(mma);
      if (unit && unit.getValue() == "wgmma" &&
          mma->hasAttr(tile::decisions::kPromotion))
        products.push_back(mma);
    });
    for (tile::MmaOp mma : products)
      promote(mma);
  }
};

} // namespace
} // namespace tilewright

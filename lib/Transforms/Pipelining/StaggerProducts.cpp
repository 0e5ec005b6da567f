//===- StaggerProducts.cpp - a product beside what makes its next operand -===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDecisions.h"
#include "lib/Analysis/Device.h"
#include "lib/Transforms/Pipelining/Passes.h"
#include "lib/Transforms/Pipelining/RingLoads.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_STAGGERPRODUCTS
#include "lib/Transforms/Pipelining/Passes.h.inc"

namespace {

/// A loop that makes an operand by a product, and multiplies it in a second
/// one.
struct TwoProducts {
  scf::ForOp loop;
  tile::MmaOp first, second;
  /// The load of the second product's right operand.
  tile::LoadOp load;
  /// Which of the loop's values the second product adds to.
  unsigned sum;
};

/// All ops of the loop's body that `value` follows from.
llvm::SetVector<Operation *> sliceOf(scf::ForOp loop, Value value) {
  llvm::SetVector<Operation *> slice;
  BackwardSliceOptions options;
  options.omitBlockArguments = true;
  options.inclusive = true;
  options.filter = [&](Operation *op) {
    return op->getBlock() == loop.getBody();
  };
  if (Operation *op = value.getDefiningOp();
      op && op->getBlock() == loop.getBody())
    (void)getBackwardSlice(op, &slice, options);
  return slice;
}

/// The two products; else why the loop has another form, in `reason`.
std::optional<TwoProducts> matchProducts(scf::ForOp loop, std::string &reason) {
  SmallVector<tile::MmaOp> products(loop.getBody()->getOps<tile::MmaOp>());
  reason = "has no two products, of which one makes an operand of the other";
  if (products.size() != 2)
    return std::nullopt;
  TwoProducts found{loop, products[0], products[1], {}, 0};
  if (!sliceOf(loop, found.second.getA()).contains(found.first))
    return std::nullopt;
  reason = "does more with its sums than to carry them to the next step";
  Operation *yield = loop.getBody()->getTerminator();
  if (!found.second->hasOneUse() || *found.second->user_begin() != yield)
    return std::nullopt;
  found.sum = found.second->use_begin()->getOperandNumber();
  reason = "has a right operand of the sums that is no load of its own";
  found.load = found.second.getB().getDefiningOp<tile::LoadOp>();
  if (!found.load || !found.load->hasOneUse() ||
      found.load->getBlock() != loop.getBody())
    return std::nullopt;
  reason = "has effects that are no loads";
  for (Operation &op : loop.getBody()->without_terminator())
    if (!isa<tile::LoadOp>(op) && (op.getNumRegions() || !isPure(&op)))
      return std::nullopt;
  reason =
      "computes the place of an operand of the sums from more than its step";
  for (Operation *op : sliceOf(loop, found.load.getResult()))
    if (op != found.load && (isa<tile::LoadOp>(op) ||
                             isa<tile::TileType>(op->getResult(0).getType())))
      return std::nullopt;
  return found;
}

/// Writes the loop anew: a step makes the next operand and multiplies the one
/// before.
class StaggeredLoop {
public:
  explicit StaggeredLoop(const TwoProducts &parts)
      : loop(parts.loop), first(parts.first), second(parts.second),
        load(parts.load), sum(parts.sum), b(loop), loc(loop.getLoc()) {}

  void run() {
    std::optional<APInt> count = loop.getStaticTripCount();
    if (count) {
      loop.replaceAllUsesWith(emit(lastStep(*count)));
      loop.erase();
      return;
    }
    // A first operand needs a first step.
    Value some =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                              loop.getLowerBound(), loop.getUpperBound());
    auto branch = scf::IfOp::create(b, loc, loop.getResultTypes(), some,
                                    /*addThenBlock=*/true,
                                    /*addElseBlock=*/true);
    b.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(b, loc, loop.getInitArgs());
    b.setInsertionPointToStart(branch.thenBlock());
    SmallVector<Value> results = emit(lastStep(std::nullopt));
    scf::YieldOp::create(b, loc, results);
    loop.replaceAllUsesWith(branch.getResults());
    loop.erase();
  }

private:
  /// The loop's variable in its last step.
  Value lastStep(std::optional<APInt> count) {
    Value lower = loop.getLowerBound(), step = loop.getStep(), steps;
    if (count) {
      steps = arith::ConstantIndexOp::create(b, loc, count->getSExtValue() - 1);
    } else {
      Value span =
          b.createOrFold<arith::SubIOp>(loc, loop.getUpperBound(), lower);
      Value one = arith::ConstantIndexOp::create(b, loc, 1);
      Value whole = b.createOrFold<arith::SubIOp>(loc, span, one);
      steps = b.createOrFold<arith::DivUIOp>(loc, whole, step);
    }
    Value far = b.createOrFold<arith::MulIOp>(loc, steps, step);
    return b.createOrFold<arith::AddIOp>(loc, lower, far);
  }

  /// All results of the old loop.
  SmallVector<Value> emit(Value last) {
    IRMapping start;
    start.map(loop.getInductionVar(), loop.getLowerBound());
    start.map(loop.getRegionIterArgs(), loop.getInitArgs());
    emitScores(start);
    emitRest(start);
    SmallVector<Value> inits = carried(start);
    inits.push_back(start.lookupOrDefault(second.getA()));
    Value lower = b.createOrFold<arith::AddIOp>(loc, loop.getLowerBound(),
                                                loop.getStep());
    auto made = scf::ForOp::create(b, loc, lower, loop.getUpperBound(),
                                   loop.getStep(), inits);
    made->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
    emitBody(made);
    SmallVector<Value> results(made.getResults().drop_back());
    results[sum] = multiply(last, made.getResults().back(), results[sum]);
    return results;
  }

  void emitBody(scf::ForOp made) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(made.getBody());
    auto args = made.getRegionIterArgs();
    IRMapping map;
    map.map(loop.getInductionVar(), made.getInductionVar());
    map.map(loop.getRegionIterArgs(), args.drop_back());
    emitScores(map);
    Value before = b.createOrFold<arith::SubIOp>(loc, made.getInductionVar(),
                                                 loop.getStep());
    Value sums = multiply(before, args.back(), args[sum]);
    map.map(loop.getRegionIterArg(sum), sums);
    emitRest(map);
    SmallVector<Value> results = carried(map);
    results.push_back(map.lookupOrDefault(second.getA()));
    if (Block *body = made.getBody(); body->mightHaveTerminator())
      body->getTerminator()->erase();
    scf::YieldOp::create(b, loc, results);
  }

  /// The first product, and what it follows from.
  void emitScores(IRMapping &map) {
    llvm::SetVector<Operation *> slice = sliceOf(loop, first.getResult());
    for (Operation &op : loop.getBody()->without_terminator())
      if (slice.contains(&op))
        b.clone(op, map);
  }

  /// What is left but the second product.
  void emitRest(IRMapping &map) {
    llvm::SetVector<Operation *> slice = sliceOf(loop, first.getResult());
    for (Operation &op : loop.getBody()->without_terminator())
      if (&op != second && &op != load && !slice.contains(&op))
        b.clone(op, map);
  }

  /// What a step hands on: for the sums, what the second product adds to.
  SmallVector<Value> carried(IRMapping &map) {
    SmallVector<Value> values;
    for (auto [place, value] : llvm::enumerate(loop.getYieldedValues()))
      values.push_back(
          map.lookupOrDefault(place == sum ? second.getC() : value));
    return values;
  }

  /// The second product of the step whose variable is `step`.
  Value multiply(Value step, Value operand, Value sums) {
    IRMapping map;
    map.map(loop.getInductionVar(), step);
    for (Operation *op : inOrder(sliceOf(loop, load.getResult())))
      b.clone(*op, map);
    map.map(second.getA(), operand);
    map.map(second.getC(), sums);
    return b.clone(*second, map)->getResult(0);
  }

  SmallVector<Operation *> inOrder(const llvm::SetVector<Operation *> &slice) {
    SmallVector<Operation *> ops(slice.begin(), slice.end());
    llvm::sort(
        ops, [](Operation *x, Operation *y) { return x->isBeforeInBlock(y); });
    return ops;
  }

  scf::ForOp loop;
  tile::MmaOp first, second;
  tile::LoadOp load;
  unsigned sum;
  OpBuilder b;
  Location loc;
};

struct StaggerProducts
    : public tilewright::impl::StaggerProductsBase<StaggerProducts> {
  void runOnOperation() override {
    if (Device(getOperation()).lacksHopper())
      return;
    getOperation()->walk([](tile::KernelOp kernel) {
      if (!kernel->removeAttr(tile::decisions::kStagger))
        return;
      SmallVector<scf::ForOp> loops;
      kernel.walk([&](scf::ForOp loop) {
        if (loop->hasAttr(tile::decisions::kStages))
          loops.push_back(loop);
      });
      for (scf::ForOp loop : loops)
        stagger(loop);
    });
  }

private:
  static void stagger(scf::ForOp loop) {
    std::string reason;
    std::optional<TwoProducts> parts = matchProducts(loop, reason);
    std::optional<APInt> count = loop.getStaticTripCount();
    if (parts && count && count->slt(2)) {
      reason = "has no second step";
      parts = std::nullopt;
    }
    if (parts)
      StaggeredLoop(*parts).run();
    else
      loop.emitRemark("computes its products one after the other, since it ")
          << reason;
  }
};

} // namespace
} // namespace tilewright

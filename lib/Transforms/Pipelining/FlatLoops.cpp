//===- FlatLoops.cpp - nests of loops as one ------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Pipelining/FlatLoops.h"
#include "dialects/Tile/TileDecisions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/Utils/Utils.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;

namespace tilewright {

/// Whether all that a loop does besides running `inner` is to compute, for
/// that one.
static bool computesFor(scf::ForOp loop, scf::ForOp inner) {
  return llvm::all_of(loop.getBody()->without_terminator(), [&](Operation &op) {
    return &op == inner || (op.getNumRegions() == 0 && isPure(&op) &&
                            op.isBeforeInBlock(inner));
  });
}

/// The loop around `loop` if it does nothing else than run it, a known number
/// of times: what the inner one carries is what it carries itself.
static scf::ForOp outerOf(scf::ForOp loop) {
  auto outer = dyn_cast<scf::ForOp>(loop->getParentOp());
  if (!outer || !outer.getStaticTripCount() || !loop.getStaticTripCount() ||
      !computesFor(outer, loop) || outer->hasAttr(tile::decisions::kStages) ||
      !llvm::equal(loop.getInitArgs(), outer.getRegionIterArgs()) ||
      !llvm::equal(outer.getYieldedValues(), loop.getResults()))
    return {};
  return outer;
}

/// Moves what stands before a loop into it, in order.
static void sinkInto(scf::ForOp loop, Block &outer) {
  SmallVector<Operation *> before;
  for (Operation &op : llvm::make_range(outer.begin(), loop->getIterator()))
    before.push_back(&op);
  for (Operation *op : llvm::reverse(before))
    op->moveBefore(loop.getBody(), loop.getBody()->begin());
}

scf::ForOp outermostOf(scf::ForOp loop) {
  while (scf::ForOp outer = outerOf(loop))
    loop = outer;
  return loop;
}

scf::ForOp flattened(scf::ForOp loop) {
  Attribute stages = loop->getAttr(tile::decisions::kStages);
  SmallVector<scf::ForOp> nest{loop};
  while (scf::ForOp outer = outerOf(nest.back()))
    nest.push_back(outer);
  std::reverse(nest.begin(), nest.end());
  for (auto [outer, inner] : llvm::zip(nest, ArrayRef(nest).drop_front()))
    sinkInto(inner, *scf::ForOp(outer).getBody());
  IRRewriter rewriter(loop->getContext());
  if (nest.size() == 1 || failed(coalesceLoops(rewriter, nest)))
    return loop;
  nest.front()->setAttr(tile::decisions::kStages, stages);
  return nest.front();
}

bool runsInBranch(scf::ForOp loop) {
  auto branch = dyn_cast<scf::IfOp>(loop->getParentOp());
  auto compare = branch ? branch.getCondition().getDefiningOp<arith::CmpIOp>()
                        : arith::CmpIOp();
  return compare && compare.getPredicate() == arith::CmpIPredicate::sgt &&
         compare.getLhs() == loop.getUpperBound() &&
         getConstantIntValue(compare.getRhs()) == 0 &&
         getConstantIntValue(loop.getLowerBound()) == 0 &&
         getConstantIntValue(loop.getStep()) == 1 &&
         loop->getBlock() == branch.thenBlock();
}

} // namespace tilewright

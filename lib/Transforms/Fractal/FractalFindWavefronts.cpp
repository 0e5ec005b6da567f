//===- FractalFindWavefronts.cpp - orders in which much may run at once ---===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Fractal/Passes.h"

#include "lib/Transforms/Fractal/Hyperplanes.h"

namespace tilewright {
#define GEN_PASS_DEF_FRACTALFINDWAVEFRONTS
#include "lib/Transforms/Fractal/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace mlir::presburger;
using namespace tilewright::fractal;

/// States go up, or down; a map waits for nothing.
static SmallVector<Sign> signsOf(BlockOp block) {
  SmallVector<Sign> signs;
  for (auto kind : block.getKinds().getAsValueRange<StringAttr>())
    signs.push_back(kind == "map"             ? Sign::Zero
                    : kind.ends_with("right") ? Sign::Negative
                                              : Sign::Positive);
  return signs;
}

/// Dimensions with a state, then maps: the rows behind the first.
static SmallVector<unsigned> orderOf(ArrayRef<Sign> signs) {
  SmallVector<unsigned> order, maps;
  for (auto [dim, sign] : llvm::enumerate(signs))
    (sign == Sign::Zero ? maps : order).push_back(dim);
  // The row has no unit at a map, which is why these may stand behind.
  llvm::append_range(order, maps);
  return order;
}

/// Each row as an expression of dimensions.
static Exprs exprsOf(MLIRContext *context, const IntMatrix &rows) {
  Exprs exprs;
  for (unsigned row : llvm::seq(rows.getNumRows())) {
    AffineExpr sum = getAffineConstantExpr(0, context);
    for (unsigned column : llvm::seq(rows.getNumColumns()))
      sum = sum +
            getAffineDimExpr(column, context) * int64_t(rows.at(row, column));
    exprs.push_back(sum);
  }
  return exprs;
}

/// The distances in the new order, each once.
static ArrayAttr transformed(BlockOp block, const IntMatrix &rows) {
  Builder b(block);
  SmallVector<Attribute> all;
  if (!block.getDistances())
    return nullptr;
  for (auto distance : block.getDistances()->getAsRange<DenseI64ArrayAttr>()) {
    auto column = getDynamicAPIntVec(distance.asArrayRef());
    all.push_back(b.getDenseI64ArrayAttr(
        getInt64Vec(rows.postMultiplyWithColumn(column))));
  }
  return b.getArrayAttr(all);
}

/// How many values the first dimension has, if one expression says it.
static AffineMap countOf(const Bounds &bounds) {
  AffineMap lower = bounds.lower.front(), upper = bounds.upper.front();
  if (lower.getNumResults() != 1 || upper.getNumResults() != 1)
    return {};
  return simplifyAffineMap(AffineMap::get(
      0, lower.getNumSymbols(), upper.getResult(0) - lower.getResult(0)));
}

/// Bounds in each region, as lists of maps.
static void setRegionBounds(BlockOp block, ArrayRef<AffineExpr> inverse) {
  if (!block.getRegionDomains())
    return;
  Builder b(block);
  SmallVector<Attribute> lower, upper;
  for (auto region : block.getRegionDomains()->getAsRange<IntegerSetAttr>()) {
    IntegerSet set = region.getValue();
    Bounds bounds =
        boundsOf(b.getContext(), {set.getNumDims(), set.getNumSymbols()},
                 replaced(constraintsOf(set), inverse));
    lower.push_back(b.getAffineMapArrayAttr(bounds.lower));
    upper.push_back(b.getAffineMapArrayAttr(bounds.upper));
  }
  block.setRegionLowerAttr(b.getArrayAttr(lower));
  block.setRegionUpperAttr(b.getArrayAttr(upper));
}

static void findWavefronts(BlockOp block) {
  SmallVector<Dependence> dependences = findDependences(block);
  if (dependences.empty())
    return;
  SmallVector<Sign> signs = signsOf(block);
  auto row = findHyperplane(signs, dependences);
  if (!row) {
    block.emitRemark("no row of integers orders what its iterations wait for: "
                     "the lengths that its distances depend on are not known");
    return;
  }
  Builder b(block);
  MLIRContext *context = b.getContext();
  IntegerSet domain = block.getDomain();
  Space space = {domain.getNumDims(), domain.getNumSymbols()};
  IntMatrix rows = completed(*row, orderOf(signs));
  Exprs inverse = exprsOf(context, inverseOf(rows));
  Bounds bounds =
      boundsOf(context, space, replaced(constraintsOf(domain), inverse));
  block.setSchedule(
      AffineMap::get(space.dims, 0, exprsOf(context, rows), context));
  if (ArrayAttr distances = transformed(block, rows))
    block.setScheduleDistancesAttr(distances);
  block.setScheduleLowerAttr(b.getAffineMapArrayAttr(bounds.lower));
  block.setScheduleUpperAttr(b.getAffineMapArrayAttr(bounds.upper));
  if (AffineMap count = countOf(bounds))
    block.setHyperplanes(count);
  setRegionBounds(block, inverse);
}

namespace {
struct FindWavefronts
    : tilewright::impl::FractalFindWavefrontsBase<FindWavefronts> {
  void runOnOperation() override { getOperation()->walk(findWavefronts); }
};
} // namespace

//===- FractalSplitRegions.cpp - first iterations and others --------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Fractal/Passes.h"

#include "lib/Transforms/Fractal/Dependences.h"

namespace tilewright {
#define GEN_PASS_DEF_FRACTALSPLITREGIONS
#include "lib/Transforms/Fractal/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright::fractal;

/// More dimensions with a state would make more than 256 regions.
static constexpr size_t kMostStates = 8;

/// Whether iteration `dim` is the first one, which reads the init, or not.
static Constraint side(BlockOp block, unsigned dim, bool isFirst) {
  AffineExpr place = getAffineDimExpr(dim, block.getContext());
  StringRef kind = cast<StringAttr>(block.getKinds()[dim]);
  // From its own end: zero is the first iteration.
  if (kind.ends_with("right"))
    place = block.getExtents().getResult(dim) - 1 - place;
  return isFirst ? Constraint{place, true} : Constraint{place - 1};
}

/// Reads that take place somewhere in a region.
static SmallVector<int64_t> readsIn(BlockOp block,
                                    ArrayRef<Constraint> region) {
  SmallVector<int64_t> reads;
  for (int64_t read : llvm::seq<int64_t>(block.getSources().size())) {
    AffineMap map = block.getMap(read);
    Constraints where = whereRead(block, read);
    llvm::append_range(where, region);
    if (!isEmpty({map.getNumDims(), map.getNumSymbols()}, where))
      reads.push_back(read);
  }
  return reads;
}

static void splitRegions(BlockOp block) {
  SmallVector<unsigned> states;
  for (auto [dim, kind] : llvm::enumerate(block.getKinds()))
    if (cast<StringAttr>(kind).getValue() != "map")
      states.push_back(dim);
  if (states.empty())
    return;
  if (states.size() > kMostStates) {
    block.emitRemark("has ") << states.size() << " dimensions with a state: "
                             << "regions are split for " << kMostStates;
    return;
  }
  Builder b(block);
  Space space = {block.getNumLoops(), block.getDomain().getNumSymbols()};
  SmallVector<Attribute> domains, reads;
  for (unsigned number : llvm::seq(1u << states.size())) {
    Constraints region;
    for (auto [i, dim] : llvm::enumerate(llvm::reverse(states)))
      region.insert(region.begin(), side(block, dim, !(number >> i & 1)));
    Constraints domain = region;
    llvm::append_range(domain, constraintsOf(block.getDomain()));
    if (isEmpty(space, domain))
      continue;
    domain = simplified(space, domain, {});
    domains.push_back(
        IntegerSetAttr::get(setOf(b.getContext(), space, domain)));
    reads.push_back(b.getDenseI64ArrayAttr(readsIn(block, region)));
  }
  block.setRegionDomainsAttr(b.getArrayAttr(domains));
  block.setRegionReadsAttr(b.getArrayAttr(reads));
}

namespace {
struct SplitRegions : tilewright::impl::FractalSplitRegionsBase<SplitRegions> {
  void runOnOperation() override { getOperation()->walk(splitRegions); }
};
} // namespace

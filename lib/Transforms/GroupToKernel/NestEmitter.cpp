//===- NestEmitter.cpp - the loops of a register group --------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/GroupToKernel/NestEmitter.h"
#include "dialects/Tile/TileDecisions.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace tilewright {

Value NestEmitter::lookup(Value tensor, const Access &access) const {
  for (const auto &scope : llvm::reverse(known))
    for (const Known &entry : scope)
      if (entry.tensor == tensor && entry.access == access)
        return entry.tile;
  return {};
}

LogicalResult NestEmitter::findTileDims() {
  for (unsigned dim = 0; dim < nest.extents.size(); ++dim) {
    if (nest.registerTile(dim) == 1)
      continue;
    if (nest.isDepth(dim))
      depthDim = dim;
    else
      tileDims[0].push_back(dim);
  }
  if (tileDims[0].empty())
    return success();
  if (nest.isPadded() && depthDim >= 0)
    return findProductDims();
  tileDims[1].push_back(tileDims[0].pop_back_val());
  if (tileDims[0].size() > 1)
    for (int dim : tileDims[0])
      if (nest.isReduction(dim))
        return nest.root()->emitError("has a register tile above 1 along its "
                                      "reduction d")
               << dim << " and two more loops; rows of several loops are "
               << "parallel ones";
  // Lanes lie side by side in the result, in whatever order the loops stand.
  if (tileDims[0].size() == 1) {
    linalg::GenericOp root = nest.root();
    AffineMap stored = root.getMatchingIndexingMap(root.getDpsInitOperand(0));
    auto position = [&](int dim) {
      return stored.getResultPosition(
          getAffineDimExpr(dim, builder.getContext()));
    };
    auto row = position(tileDims[0][0]), lane = position(tileDims[1][0]);
    if (row && lane && *row > *lane)
      std::swap(tileDims[0], tileDims[1]);
  }
  return success();
}

int NestEmitter::reducedDim(unsigned axis) const {
  ArrayRef<int> dims = tileDims[axis];
  return dims.size() == 1 && nest.isReduction(dims[0]) ? dims[0] : -1;
}

/// Position and size of a nest dimension from here inwards: `start` after the
/// task's offset, plus the loop's variable, which counts in `unit`s, if there
/// is one.
void NestEmitter::setDim(unsigned dim, Value iv, int64_t start, int64_t size,
                         int64_t unit) {
  position[dim] = box.offsets[dim] + start;
  if (iv) {
    if (loops.empty() || loops.back() != iv)
      loops.push_back(iv);
    position[dim] =
        position[dim] +
        getAffineDimExpr(loops.size() - 1, builder.getContext()) * unit;
  }
  sizes[dim] = size;
}

LogicalResult NestEmitter::emit() {
  if (failed(findTileDims()))
    return failure();
  for (unsigned dim : nest.order())
    (nest.isReduction(dim) ? reductionOrder : parallelOrder).push_back(dim);
  position.assign(nest.extents.size(),
                  getAffineConstantExpr(0, builder.getContext()));
  sizes.assign(nest.extents.size(), 1);
  return emitParallel(0);
}

/// Sizes of the tiles that cover a dimension of the task.
SmallVector<int64_t> NestEmitter::tileSizes(unsigned dim) const {
  int64_t step = nest.registerTile(dim);
  if (nest.isPadded())
    return {step};
  std::optional<int64_t> extent = staticSize(box.sizes[dim]);
  SmallVector<int64_t> sizes = {extent ? std::min(step, *extent) : step};
  if (!extent)
    llvm::append_range(sizes, nest.tails(dim));
  else if (*extent % sizes.front())
    sizes.push_back(*extent % sizes.front());
  return sizes;
}

/// Whole tiles of a known extent, in a loop where there are several rounds of
/// `unroll` of them; the remainder.
void NestEmitter::addStretches(SmallVectorImpl<Stretch> &result, int64_t extent,
                               ArrayRef<int64_t> tiles, int64_t unroll,
                               unsigned dim) {
  // Groups of a depth are counted, so that `floordiv` and `mod` fold.
  int64_t unit = int(dim) == depthDim ? tiles.front() : 1;
  int64_t tile = tiles.front(), body = tile * unroll;
  int64_t whole = extent / tile * tile, looped = whole / body * body;
  if (looped > body) {
    Location loc = nest.root().getLoc();
    Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
    Value upper = arith::ConstantIndexOp::create(builder, loc, looped / unit);
    result.push_back({tile, 0, zero, upper, unroll, unit});
  } else {
    looped = 0;
  }
  for (; looped < whole; looped += tile)
    result.push_back({tile, looped});
  if (tiles.size() == 1)
    return;
  // All blocks have the same rows: the last ones begin before the remainder,
  // and some rows are computed twice.
  int64_t rest = tiles.back();
  if (hasBlocks() && llvm::is_contained(tileDims[0], dim))
    rest = std::min<int64_t>(llvm::alignTo(rest, blockOf(dim)), extent);
  result.push_back({rest, extent - rest});
}

SmallVector<NestEmitter::Stretch> NestEmitter::stretches(unsigned dim,
                                                         int64_t unroll) {
  if (nest.isPadded())
    return {paddedStretch(dim)};
  SmallVector<int64_t> tiles = tileSizes(dim);
  SmallVector<Stretch> result;
  if (std::optional<int64_t> extent = staticSize(box.sizes[dim])) {
    addStretches(result, *extent, tiles, unroll, dim);
    return result;
  }
  Location loc = nest.root().getLoc();
  Value lower = arith::ConstantIndexOp::create(builder, loc, 0);
  Value size = index(loc, box.sizes[dim]);
  auto add = [&](int64_t tile, int64_t unroll) {
    AffineExpr at = builder.getAffineDimExpr(0);
    AffineExpr rest = builder.getAffineDimExpr(1) - at;
    AffineExpr end = at + rest.floorDiv(tile * unroll) * (tile * unroll);
    Value upper = size;
    if (tile * unroll != 1)
      upper = affine::makeComposedAffineApply(
          builder, loc, AffineMap::get(2, 0, end),
          ArrayRef<OpFoldResult>{lower, size});
    result.push_back({tile, 0, lower, upper, unroll});
    lower = upper;
  };
  if (unroll > 1)
    add(tiles.front(), unroll);
  for (int64_t tile : tiles)
    add(tile, 1);
  return result;
}

/// The loop over a stretch; what follows is emitted into it.
scf::ForOp NestEmitter::openLoop(const Stretch &stretch, ValueRange carried) {
  Location loc = nest.root().getLoc();
  Value by = arith::ConstantIndexOp::create(
      builder, loc, stretch.tile * stretch.unroll / stretch.unit);
  auto loop = scf::ForOp::create(builder, loc, stretch.lower, stretch.upper, by,
                                 carried);
  builder.setInsertionPointToStart(loop.getBody());
  return loop;
}

LogicalResult NestEmitter::emitParallel(unsigned level) {
  if (level == parallelOrder.size())
    return emitPoint();
  unsigned dim = parallelOrder[level];
  for (const Stretch &stretch : stretches(dim)) {
    OpBuilder::InsertionGuard guard(builder);
    Value variable;
    if (stretch.lower)
      variable = openLoop(stretch, {}).getInductionVar();
    setDim(dim, variable, stretch.start, stretch.tile);
    if (failed(emitParallel(level + 1)))
      return failure();
  }
  return success();
}

/// Everything at one tile of the parallel dimensions.
LogicalResult NestEmitter::emitPoint() {
  known.clear();
  known.emplace_back();
  if (part == Part::Init)
    return storeInit();
  if (!nest.hasReductions())
    return storeResults(/*inReduction=*/false);
  if (failed(preload()) || failed(emitReductions()))
    return failure();
  return storeResults(/*inReduction=*/false);
}

/// Stores the yielded values. Those that exist per point of the reduction are
/// stored inside its loops, the others after them.
LogicalResult NestEmitter::storeResults(bool inReduction) {
  tile::GroupOp group = nest.group;
  Operation *yield = group.getBody().front().getTerminator();
  for (auto [number, value] : llvm::enumerate(yield->getOperands())) {
    auto result = cast<OpResult>(value);
    Access access = nest.resultAccess(result);
    bool perPoint = dependsOnReduction(access);
    if (perPoint != inReduction)
      continue;
    FailureOr<Value> tile = evaluate(value, access);
    const Storage &place = storage.at(group->getResult(number));
    bool streamed =
        nest.root()->hasAttr(tile::decisions::kStream) && mayStream(place);
    if (failed(tile) || failed(store(result.getOwner()->getLoc(), *tile, place,
                                     access, streamed)))
      return failure();
  }
  return success();
}

} // namespace tilewright

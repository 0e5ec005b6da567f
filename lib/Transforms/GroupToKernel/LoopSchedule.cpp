//===- LoopSchedule.cpp - the loops of a register group -------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/GroupToKernel/LoopSchedule.h"
#include "dialects/Tile/TileDecisions.h"
#include "lib/Analysis/Device.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"

using namespace mlir;

namespace tilewright {

LogicalResult LoopSchedule::plan() {
  if (failed(findTileDims()))
    return failure();
  for (unsigned dim : nest.order())
    (nest.isReduction(dim) ? point.reductionOrder : point.parallelOrder)
        .push_back(dim);
  point.position.assign(nest.extents.size(),
                        getAffineConstantExpr(0, builder.getContext()));
  point.sizes.assign(nest.extents.size(), 1);
  return success();
}

LogicalResult LoopSchedule::findTileDims() {
  for (unsigned dim = 0; dim < nest.extents.size(); ++dim) {
    if (nest.registerTile(dim) == 1)
      continue;
    if (nest.isDepth(dim))
      point.depthDim = dim;
    else
      point.tileDims[0].push_back(dim);
  }
  if (point.tileDims[0].empty())
    return success();
  if (nest.isPadded() && point.depthDim >= 0)
    return findProductDims();
  point.tileDims[1].push_back(point.tileDims[0].pop_back_val());
  if (point.tileDims[0].size() > 1)
    for (int dim : point.tileDims[0])
      if (nest.isReduction(dim))
        return nest.root()->emitError("has a register tile above 1 along its "
                                      "reduction d")
               << dim << " and two more loops; rows of several loops are "
               << "parallel ones";
  // Lanes lie side by side in the result, in whatever order the loops stand.
  if (point.tileDims[0].size() == 1) {
    linalg::GenericOp root = nest.root();
    AffineMap map = root.getMatchingIndexingMap(root.getDpsInitOperand(0));
    auto stored = [&](int dim) {
      return map.getResultPosition(getAffineDimExpr(dim, builder.getContext()));
    };
    auto row = stored(point.tileDims[0][0]),
         lane = stored(point.tileDims[1][0]);
    if (row && lane && *row > *lane)
      std::swap(point.tileDims[0], point.tileDims[1]);
  }
  return success();
}

/// Of the tiled loops, those of the one operand become the rows and that of the
/// other one the lanes: the later one in the result, where both have one.
LogicalResult LoopSchedule::findProductDims() {
  linalg::GenericOp op = nest.root();
  SmallVector<int> tiled = point.tileDims[0];
  point.tileDims[0].clear();
  Operation *product = productOf(op);
  if (!product)
    return op.emitError("has tiles of level mma but sums no products");
  const Access binding = nest.bindings.lookup(op);
  std::array<SmallVector<int>, 2> own;
  for (int dim : tiled) {
    bool left = dependsOn(op, product->getOperand(0), binding, dim);
    bool right = dependsOn(op, product->getOperand(1), binding, dim);
    if (left == right)
      return op.emitError("has a register tile above 1 along d")
             << dim << ", which " << (left ? "both operands" : "no operand")
             << " of its product of tiles depend on";
    own[right].push_back(dim);
  }
  auto stored = [&](int dim) {
    AffineMap map = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
    return map.getResultPosition(getAffineDimExpr(dim, builder.getContext()))
        .value_or(0);
  };
  unsigned lanes = own[1].size() <= 1 ? 1 : 0;
  if (own[0].size() == 1 && own[1].size() == 1)
    lanes = stored(own[1][0]) > stored(own[0][0]) ? 1 : 0;
  else if (own[0].size() == 1)
    lanes = 0;
  if (own[lanes].size() > 1)
    return op.emitError("has register tiles above 1 along several loops of "
                        "both operands: lanes are those of one loop");
  point.tileDims[0] = own[1 - lanes];
  point.tileDims[1] = own[lanes];
  point.rowOperand = 1 - lanes;
  return success();
}

/// Whole tiles of a known extent, in a loop where there are several rounds of
/// `unroll` of them; the remainder.
void LoopSchedule::addStretches(SmallVectorImpl<Stretch> &result,
                                int64_t extent, ArrayRef<int64_t> tiles,
                                int64_t unroll, unsigned dim) {
  if (point.isShared(dim))
    return addShares(result, extent, tiles.front());
  // Groups of a depth are counted, so that `floordiv` and `mod` fold.
  int64_t unit = int(dim) == point.depthDim ? tiles.front() : 1;
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
  if (point.hasBlocks() && llvm::is_contained(point.tileDims[0], dim))
    rest = std::min<int64_t>(llvm::alignTo(rest, point.blockOf(dim)), extent);
  result.push_back({rest, extent - rest});
}

/// As few tiles as `tile` allows, as equal as they can be: first the taller
/// ones, then those of one row less.
void LoopSchedule::addShares(SmallVectorImpl<Stretch> &result, int64_t extent,
                             int64_t tile) {
  Location loc = nest.root().getLoc();
  int64_t count = llvm::divideCeil(extent, tile);
  int64_t rows = extent / count, taller = extent % count, start = 0;
  auto add = [&](int64_t tiles, int64_t size) {
    if (tiles == 1)
      result.push_back({size, start});
    if (tiles > 1) {
      Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
      Value end = arith::ConstantIndexOp::create(builder, loc, tiles * size);
      result.push_back({size, start, zero, end});
    }
    start += tiles * size;
  };
  add(taller, rows + 1);
  add(count - taller, rows);
}

/// The tiles of a dimension of the task, all of one size. None of them starts
/// behind the end of the loop: the last task of a ragged grid has fewer.
LoopSchedule::Stretch LoopSchedule::paddedStretch(unsigned dim) {
  Location loc = nest.root().getLoc();
  int64_t tile = nest.registerTile(dim);
  AffineExpr size = point.box.sizes[dim];
  std::optional<int64_t> known = staticSize(size);
  std::optional<int64_t> most = known ? known : nest.bound(dim);
  if (most && *most <= tile)
    return {tile};
  std::optional<int64_t> extent = staticSize(point.box.extents[dim]);
  AffineExpr offset = point.box.offsets[dim];
  SmallVector<AffineExpr> ends = {size};
  bool divides =
      known && extent && *extent % *known == 0 && offset.isMultipleOf(*known);
  bool whole = offset == 0 && size == point.box.extents[dim];
  if (!divides && !whole)
    ends.push_back(point.box.extents[dim] - offset);
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  return {tile, 0, zero, point.least(loc, ends)};
}

/// Rows of accumulators that the units work on for as long as on `rows` rows in
/// the largest of `tiles` that fit: few rows wait for their own sums.
static int64_t busyRows(ArrayRef<int64_t> tiles, int64_t rows, int64_t least) {
  int64_t busy = 0;
  for (int64_t tile : tiles) {
    busy += rows / tile * std::max(tile, least);
    rows %= tile;
  }
  return busy;
}

/// The remainders of rows, as bits, which one whole tile less leaves more
/// equal: 8 rows are 4 + 4, not 6 + 2, which take as long as 6 + 4.
uint64_t LoopSchedule::givenUp(unsigned dim, ArrayRef<int64_t> tiles) {
  bool isRow = point.tileDims[0].size() == 1 &&
               point.tileDims[0].front() == int(dim) &&
               point.tileDims[1].size() == 1;
  int64_t tall = tiles.front();
  if (!isRow || point.reductionOrder.empty() || tall >= 64 || tiles.size() == 1)
    return 0;
  Device device(nest.root());
  int64_t lanes = nest.registerTile(point.tileDims[1].front());
  int64_t least = llvm::divideCeil(device.getLimit("fma_latency", 4) *
                                       device.getLimit("fma_per_cycle", 32),
                                   lanes);
  uint64_t given = 0;
  for (int64_t rest = 0; rest < tall; ++rest)
    if (busyRows(tiles.drop_front(), tall + rest, least) <
        busyRows(tiles, tall + rest, least))
      given |= uint64_t(1) << rest;
  return given;
}

/// The end of whole tiles, a tile earlier where the remainder is one of
/// `given`.
Value LoopSchedule::lessOne(Value end, Value size, int64_t tile,
                            uint64_t given) {
  Location loc = nest.root().getLoc();
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  Value rest = arith::SubIOp::create(builder, loc, size, end);
  Value bits = arith::ShRUIOp::create(builder, loc, constant(given), rest);
  Value bit = arith::AndIOp::create(builder, loc, bits, constant(1));
  Value less = arith::SubIOp::create(
      builder, loc, end,
      arith::MulIOp::create(builder, loc, bit, constant(tile)));
  return arith::MaxSIOp::create(builder, loc, less, constant(0));
}

SmallVector<LoopSchedule::Stretch> LoopSchedule::stretches(unsigned dim,
                                                           int64_t unroll) {
  if (nest.isPadded())
    return {paddedStretch(dim)};
  SmallVector<int64_t> tiles = point.tileSizes(dim);
  SmallVector<Stretch> result;
  if (std::optional<int64_t> extent = staticSize(point.box.sizes[dim])) {
    addStretches(result, *extent, tiles, unroll, dim);
    return result;
  }
  Location loc = nest.root().getLoc();
  Value lower = arith::ConstantIndexOp::create(builder, loc, 0);
  Value size = point.index(loc, point.box.sizes[dim]);
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
  uint64_t given = unroll > 1 ? 0 : givenUp(dim, tiles);
  for (int64_t tile : tiles) {
    add(tile, 1);
    if (given && result.size() == 1)
      result.back().upper = lower = lessOne(lower, size, tile, given);
  }
  return result;
}

/// The loop over a stretch; what follows is emitted into it.
scf::ForOp LoopSchedule::openLoop(const Stretch &stretch, ValueRange carried) {
  Location loc = nest.root().getLoc();
  Value by = arith::ConstantIndexOp::create(
      builder, loc, stretch.tile * stretch.unroll / stretch.unit);
  auto loop = scf::ForOp::create(builder, loc, stretch.lower, stretch.upper, by,
                                 carried);
  builder.setInsertionPointToStart(loop.getBody());
  return loop;
}

LogicalResult LoopSchedule::overParallel(PointFn body, unsigned level) {
  if (level == point.parallelOrder.size())
    return body();
  unsigned dim = point.parallelOrder[level];
  for (const Stretch &stretch : stretches(dim)) {
    OpBuilder::InsertionGuard guard(builder);
    Value variable;
    if (stretch.lower)
      variable = openLoop(stretch, {}).getInductionVar();
    point.setDim(dim, variable, stretch.start, stretch.tile);
    if (failed(overParallel(body, level + 1)))
      return failure();
  }
  return success();
}

FailureOr<LoopSchedule::Carried> LoopSchedule::overReduced(unsigned level,
                                                           unsigned end,
                                                           Carried carried,
                                                           StepFn body) {
  if (level == end)
    return body(std::move(carried));
  unsigned dim = point.reductionOrder[level];
  bool innermost = level + 1 == point.reductionOrder.size();
  for (Stretch stretch : stretches(dim, innermost ? nest.unroll(dim) : 1)) {
    OpBuilder::InsertionGuard guard(builder);
    scf::ForOp loop;
    Value variable;
    if (stretch.lower) {
      if (failed(clip(dim, stretch)))
        return failure();
      loop = openLoop(stretch, carried);
      carried = SmallVector<Value>(loop.getRegionIterArgs());
      variable = loop.getInductionVar();
      if (innermost) {
        point.setDim(dim, variable, 0, stretch.tile, stretch.unit);
        memory.prefetch(dim, stretch.tile * stretch.unroll);
      }
    }
    for (int64_t step = 0; step < stretch.unroll; ++step) {
      point.setDim(dim, variable, stretch.start + step * stretch.tile,
                   stretch.tile, stretch.unit);
      auto next = overReduced(level + 1, end, carried, body);
      if (failed(next))
        return failure();
      carried = *next;
    }
    if (loop) {
      scf::YieldOp::create(builder, loop.getLoc(), carried);
      carried = SmallVector<Value>(loop.getResults());
      // A depth that is one step leaves the steps to the window around it.
      Attribute stages = nest.root()->getAttr(tile::decisions::kStages);
      if (stages && loop.getBody()->getOps<scf::ForOp>().empty())
        loop->setAttr(tile::decisions::kStages, stages);
    }
  }
  return carried;
}

} // namespace tilewright

//===- NestEdges.cpp - ragged edges of padded nests -----------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In a padded nest all tiles of a loop have the planned size, a power of two
// say. Where the last one reaches beyond what a task covers, or beyond the
// loop, loads and stores have bounds (`valid`). A load reads zeros there, which
// add nothing to a product; other reductions put their neutral element there.
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/GroupToKernel/NestEmitter.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"

using namespace mlir;

namespace tilewright {

/// Whether a tile along a dimension may reach beyond what exists. Tiles start
/// before the end of the loop, see paddedStretch.
bool NestEmitter::isRagged(unsigned dim) const {
  int64_t tile = nest.registerTile(dim);
  if (!nest.isPadded() || tile == 1)
    return false;
  std::optional<int64_t> size = staticSize(box.sizes[dim]);
  std::optional<int64_t> extent = staticSize(box.extents[dim]);
  return !size || *size % tile || !extent || *extent % tile ||
         !box.offsets[dim].isMultipleOf(tile);
}

/// The least of some expressions over nest dims and symbols, at the origin of
/// the current tile.
Value NestEmitter::least(Location loc, ArrayRef<AffineExpr> exprs) {
  SmallVector<AffineExpr> at;
  for (AffineExpr expr : exprs)
    at.push_back(simplifyAffineExpr(expr.replaceDims(position), loops.size(),
                                    symbols.size()));
  SmallVector<OpFoldResult> operands(loops.begin(), loops.end());
  llvm::append_range(operands, symbols);
  auto map =
      AffineMap::get(loops.size(), symbols.size(), at, builder.getContext());
  return getValueOrCreateConstantIndexOp(
      builder, loc,
      affine::makeComposedFoldedAffineMin(builder, loc, map, operands));
}

/// How many elements of the current tile exist along a dimension; null where
/// all of them do. May exceed the tile.
Value NestEmitter::validAlong(Location loc, unsigned dim) {
  if (!isRagged(dim))
    return {};
  AffineExpr here = getAffineDimExpr(dim, builder.getContext());
  SmallVector<AffineExpr> ends = {box.extents[dim] - here};
  std::optional<int64_t> size = staticSize(box.sizes[dim]);
  AffineExpr end = box.offsets[dim] + box.sizes[dim];
  if ((!size || *size % nest.registerTile(dim)) && end != box.extents[dim])
    ends.push_back(end - here);
  return least(loc, ends);
}

/// The tiles of a dimension of the task, all of one size. None of them starts
/// behind the end of the loop: the last task of a ragged grid has fewer.
NestEmitter::Stretch NestEmitter::paddedStretch(unsigned dim) {
  Location loc = nest.root().getLoc();
  int64_t tile = nest.registerTile(dim);
  AffineExpr size = box.sizes[dim];
  std::optional<int64_t> known = staticSize(size);
  std::optional<int64_t> most = known ? known : nest.bound(dim);
  if (most && *most <= tile)
    return {tile};
  std::optional<int64_t> extent = staticSize(box.extents[dim]);
  AffineExpr offset = box.offsets[dim];
  SmallVector<AffineExpr> ends = {size};
  bool divides =
      known && extent && *extent % *known == 0 && offset.isMultipleOf(*known);
  bool whole = offset == 0 && size == box.extents[dim];
  if (!divides && !whole)
    ends.push_back(box.extents[dim] - offset);
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  return {tile, 0, zero, least(loc, ends)};
}

/// Whether a tile of the reductions reaches beyond the end of their loops.
bool NestEmitter::endsInTile() const {
  return llvm::any_of(ArrayRef<unsigned>{0, 1}, [&](unsigned axis) {
    int dim = reducedDim(axis);
    return dim >= 0 && isRagged(dim);
  });
}

/// `tile` with `filler` behind the end of a loop that runs along an axis.
Value NestEmitter::maskAxis(Value tile, unsigned axis, unsigned dim,
                            TypedAttr filler) {
  Location loc = tile.getLoc();
  auto type = cast<tile::TileType>(tile.getType());
  int64_t size = type.getShape()[axis];
  Type number = builder.getI32Type();
  Value most = arith::ConstantIndexOp::create(builder, loc, size);
  Value valid =
      arith::MinSIOp::create(builder, loc, validAlong(loc, dim), most);
  valid = arith::IndexCastOp::create(builder, loc, number, valid);
  SmallVector<int64_t> along = {1, 1};
  along[axis] = size;
  Value ramp = tile::IotaOp::create(builder, loc, tileType({size}, number), 0);
  ramp = tile::ReshapeOp::create(builder, loc, tileType(along, number), ramp);
  Value bound =
      tile::SplatOp::create(builder, loc, tileType(along, number), valid);
  Value mask = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt,
                                     ramp, bound);
  return tile::SelectOp::create(
      builder, loc, broadcast(mask, type.getShape()), tile,
      broadcast(constant(loc, filler), type.getShape()));
}

/// A term of a reduction, with `filler` behind the end of the reduced loops.
Value NestEmitter::maskReduced(Value tile, TypedAttr filler) {
  for (unsigned axis : {0, 1})
    if (int dim = reducedDim(axis); dim >= 0 && isRagged(dim))
      tile = maskAxis(tile, axis, dim, filler);
  return tile;
}

/// The bounds of a load or store: none where all of the tile exists. In a
/// buffer of one dimension (`asRow`) a tile is a row.
SmallVector<Value> NestEmitter::bounds(Location loc, const Window &at,
                                       bool asRow) {
  if (llvm::none_of(at.valid, [](Value bound) { return bool(bound); }))
    return {};
  SmallVector<Value> result;
  for (auto [bound, size] : llvm::zip_equal(at.valid, at.shape))
    result.push_back(
        bound ? bound : arith::ConstantIndexOp::create(builder, loc, size));
  if (asRow)
    return {result[at.shape[0] > 1 ? 0 : 1]};
  return result;
}

} // namespace tilewright

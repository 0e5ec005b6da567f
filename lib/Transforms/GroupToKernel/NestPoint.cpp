//===- NestPoint.cpp - the register tile that is being emitted ------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/GroupToKernel/NestPoint.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"

using namespace mlir;

namespace tilewright {

Operation *productOf(linalg::GenericOp op) {
  Value yielded = op.getBody()->getTerminator()->getOperand(0);
  Operation *combiner = yielded.getDefiningOp();
  if (!isa_and_nonnull<arith::AddFOp, arith::AddIOp>(combiner))
    return nullptr;
  for (Value operand : combiner->getOperands())
    if (Operation *term = operand.getDefiningOp();
        isa_and_nonnull<arith::MulFOp, arith::MulIOp>(term))
      return term;
  return nullptr;
}

/// Position and size of a nest dimension from here inwards: `start` after the
/// task's offset, plus the loop's variable, which counts in `unit`s, if there
/// is one.
void NestPoint::setDim(unsigned dim, Value iv, int64_t start, int64_t size,
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

/// Sizes of the tiles that cover a dimension of the task.
SmallVector<int64_t> NestPoint::tileSizes(unsigned dim) const {
  int64_t step = nest.registerTile(dim);
  if (nest.isPadded())
    return {step};
  std::optional<int64_t> extent = staticSize(box.sizes[dim]);
  SmallVector<int64_t> tiles = {extent ? std::min(step, *extent) : step};
  if (!extent)
    llvm::append_range(tiles, nest.tails(dim));
  else if (*extent % tiles.front())
    tiles.push_back(*extent % tiles.front());
  return tiles;
}

/// Whether an operand is packed in blocks of a dimension, of whole tiles.
static bool hasPacked(const NestAnalysis &nest, unsigned dim, int64_t tile) {
  auto isBlock = [&](AffineExpr expr) {
    auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
    if (!binary || (binary.getKind() != AffineExprKind::FloorDiv &&
                    binary.getKind() != AffineExprKind::Mod))
      return false;
    return binary.getLHS().isFunctionOfDim(dim) &&
           binary.getRHS().isMultipleOf(tile);
  };
  for (const auto &[op, binding] : nest.bindings)
    for (AffineMap map : cast<linalg::GenericOp>(op).getIndexingMapsArray())
      for (AffineExpr expr : compose(map, binding)) {
        auto walked = expr.walk([&](AffineExpr part) {
          return isBlock(part) ? WalkResult::interrupt()
                               : WalkResult::advance();
        });
        if (walked.wasInterrupted())
          return true;
      }
  return false;
}

/// Whether tiles share a dimension evenly: rows of a product of a known number
/// that no whole number of tiles covers. Tiles that are not equal would cross
/// the blocks of a packed operand.
bool NestPoint::isShared(unsigned dim) const {
  if (nest.isPadded() || nest.isReduction(dim) || hasBlocks() ||
      !llvm::is_contained(tileDims[0], dim) || !productOf(nest.root()))
    return false;
  std::optional<int64_t> extent = staticSize(box.sizes[dim]);
  int64_t tile = nest.registerTile(dim);
  return extent && *extent > tile && *extent % tile &&
         !hasPacked(nest, dim, tile);
}

int NestPoint::reducedDim(unsigned axis) const {
  ArrayRef<int> dims = tileDims[axis];
  return dims.size() == 1 && nest.isReduction(dims[0]) ? dims[0] : -1;
}

/// Whether accumulators are held in blocks: the level `mma` tiles rows, too.
bool NestPoint::hasBlocks() const {
  return depthDim >= 0 && tileDims[0].size() == 1 && tileDims[1].size() == 1 &&
         blockOf(tileDims[0][0]) > 1;
}

int64_t NestPoint::blockOf(unsigned dim) const {
  auto tiles = nest.rtile.getSizes("mma");
  return tiles ? (*tiles)[dim] : 1;
}

bool NestPoint::dependsOnReduction(const Access &access) const {
  return llvm::any_of(access, [&](AffineExpr expr) {
    for (unsigned dim = 0; dim < nest.extents.size(); ++dim)
      if (nest.isReduction(dim) && expr.isFunctionOfDim(dim))
        return true;
    return false;
  });
}

/// An SSA index for an expression over nest dims (as dims) and the symbols of
/// the task, at the origin of the current tile.
Value NestPoint::index(Location loc, AffineExpr expr) const {
  AffineExpr at = simplifyAffineExpr(expr.replaceDims(position), loops.size(),
                                     symbols.size());
  SmallVector<OpFoldResult> operands(loops.begin(), loops.end());
  llvm::append_range(operands, symbols);
  auto map =
      AffineMap::get(loops.size(), symbols.size(), at, builder.getContext());
  return getValueOrCreateConstantIndexOp(
      builder, loc,
      affine::makeComposedFoldedAffineApply(builder, loc, map, operands));
}

/// The least of some expressions over nest dims and symbols, at the origin of
/// the current tile.
Value NestPoint::least(Location loc, ArrayRef<AffineExpr> exprs) const {
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

/// Whether a tile along a dimension may reach beyond what exists. Tiles start
/// before the end of the loop, see paddedStretch.
bool NestPoint::isRagged(unsigned dim) const {
  int64_t tile = nest.registerTile(dim);
  if (!nest.isPadded() || tile == 1)
    return false;
  std::optional<int64_t> size = staticSize(box.sizes[dim]);
  std::optional<int64_t> extent = staticSize(box.extents[dim]);
  return !size || *size % tile || !extent || *extent % tile ||
         !box.offsets[dim].isMultipleOf(tile);
}

/// How many elements of the current tile exist along a dimension; null where
/// all of them do. May exceed the tile.
Value NestPoint::validAlong(Location loc, unsigned dim) const {
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

Value NestPoint::broadcast(Value tile, ArrayRef<int64_t> shape) const {
  if (shapeOf(tile) == shape)
    return tile;
  Type element = cast<tile::TileType>(tile.getType()).getElementType();
  return tile::BroadcastOp::create(builder, tile.getLoc(),
                                   tileType(shape, element), tile);
}

Value NestPoint::constant(Location loc, TypedAttr value) const {
  auto type = tileType({1, 1}, value.getType());
  auto elements = DenseElementsAttr::get(cast<ShapedType>(Type(type)),
                                         ArrayRef<Attribute>(value));
  return arith::ConstantOp::create(builder, loc, type, elements);
}

} // namespace tilewright

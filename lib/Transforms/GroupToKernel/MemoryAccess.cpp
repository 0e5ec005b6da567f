//===- MemoryAccess.cpp - tile loads and stores of a nest -----------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/GroupToKernel/MemoryAccess.h"
#include "dialects/Tile/TileDecisions.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace tilewright {

/// By how much `expr` grows when the nest dimension `tileDim` grows by one
/// inside a tile. Packed operands are addressed by `n floordiv P, n mod P`:
/// a tile never crosses a block, since the register tile divides P.
FailureOr<int64_t> MemoryAccess::coefficient(AffineExpr expr, int tileDim) {
  if (tileDim < 0 || !expr.isFunctionOfDim(tileDim) ||
      point.sizes[tileDim] == 1)
    return 0;
  MLIRContext *context = builder.getContext();
  if (auto binary = dyn_cast<AffineBinaryOpExpr>(expr)) {
    bool floorDiv = binary.getKind() == AffineExprKind::FloorDiv;
    if (floorDiv || binary.getKind() == AffineExprKind::Mod) {
      auto block = dyn_cast<AffineConstantExpr>(binary.getRHS());
      int64_t full = nest.registerTile(tileDim);
      FailureOr<int64_t> inner = coefficient(binary.getLHS(), tileDim);
      if (failed(inner) || !block || *inner != 1 ||
          block.getValue() % full != 0)
        return nest.root()->emitError("reads a packed operand in blocks of ")
               << textOf(binary.getRHS()) << ", which its register tile of "
               << full << " does not divide";
      return floorDiv ? 0 : 1;
    }
  }
  AffineExpr dim = getAffineDimExpr(tileDim, context);
  AffineExpr next = expr.replace(dim, dim + 1);
  AffineExpr step = simplifyAffineExpr(next - expr, nest.extents.size(),
                                       point.symbols.size());
  if (auto constant = dyn_cast<AffineConstantExpr>(step))
    return constant.getValue();
  return nest.root()->emitError("accesses an operand by ")
         << textOf(expr) << ", which is not linear in its tiled loop d"
         << tileDim;
}

/// The dimension of an operand that the tiled loop `tileDim` walks, and in
/// which steps; -1 where there is none.
FailureOr<int> MemoryAccess::ownerOf(int tileDim, const Access &access,
                                     int64_t &step) {
  int owner = -1;
  for (auto [number, expr] : llvm::enumerate(access)) {
    FailureOr<int64_t> by = coefficient(expr, tileDim);
    if (failed(by))
      return failure();
    if (*by == 0)
      continue;
    if (owner >= 0)
      return nest.root()->emitError("walks an operand diagonally: the tiled "
                                    "loop d")
             << tileDim << " occurs in two of its dimensions";
    owner = number;
    step = *by;
  }
  return owner;
}

FailureOr<MemoryAccess::Window>
MemoryAccess::window(Location loc, const Storage &place, const Access &access) {
  Window result;
  for (auto [number, expr] : llvm::enumerate(access)) {
    AffineExpr relative = expr;
    if (!place.origin.empty())
      relative = simplifyAffineExpr(expr - place.origin[number],
                                    nest.extents.size(), point.symbols.size());
    result.offsets.push_back(point.index(loc, relative));
  }
  auto walk = [&](int dim) -> FailureOr<int64_t> {
    int64_t step = 1;
    FailureOr<int> owner = ownerOf(dim, access, step);
    if (failed(owner))
      return failure();
    if (*owner < 0)
      return 1;
    if (llvm::is_contained(result.dims, *owner))
      return nest.root()->emitError("walks the same dimension of an operand by "
                                    "two of its tiled loops");
    result.dims.push_back(*owner);
    result.steps.push_back(step);
    result.shape.push_back(point.sizes[dim]);
    result.valid.push_back(point.validAlong(loc, dim));
    return point.sizes[dim];
  };
  for (int dim : point.tileDims[0]) {
    FailureOr<int64_t> size = walk(dim);
    if (failed(size))
      return failure();
    result.rows.push_back(*size);
  }
  size_t numRows = result.dims.size();
  for (int dim : point.tileDims[1]) {
    FailureOr<int64_t> size = walk(dim);
    if (failed(size))
      return failure();
    result.lanes = *size;
  }
  // A tile dimension of size 1 may name any dimension of the buffer that the
  // others do not: the last free one. Lanes come last.
  int64_t rank = access.size();
  auto addUnit = [&](size_t at) {
    int64_t free = std::max<int64_t>(rank - 1, 0);
    while (free > 0 && llvm::is_contained(result.dims, free))
      --free;
    result.dims.insert(result.dims.begin() + at, free);
    result.steps.insert(result.steps.begin() + at, 1);
    result.shape.insert(result.shape.begin() + at, 1);
    result.valid.insert(result.valid.begin() + at, Value());
  };
  if (result.dims.size() == numRows && (numRows < 2 || numRows < access.size()))
    addUnit(numRows);
  if (numRows == 0)
    addUnit(0);
  return result;
}

/// A tile as it was loaded, as one of (rows, lanes): where it depends on some
/// of the loops that make the rows, it is repeated along the others.
Value MemoryAccess::gatherRows(Value tile, const Window &at) {
  auto reshape = [&](ArrayRef<int64_t> shape) {
    auto type = cast<tile::TileType>(tile.getType());
    if (type.getShape() != shape)
      tile = tile::ReshapeOp::create(
          builder, tile.getLoc(), point.tileType(shape, type.getElementType()),
          tile);
  };
  SmallVector<int64_t> own(at.rows), all;
  for (int dim : point.tileDims[0])
    all.push_back(point.sizes[dim]);
  int64_t rows = llvm::product_of(own);
  if (rows > 1 && own != all) {
    own.push_back(at.lanes);
    all.push_back(at.lanes);
    reshape(own);
    tile = point.broadcast(tile, all);
    rows = point.axisSize(0);
  }
  reshape({rows, at.lanes});
  return tile;
}

/// The bounds of a load or store: none where all of the tile exists. In a
/// buffer of one dimension (`asRow`) a tile is a row.
SmallVector<Value> MemoryAccess::bounds(Location loc, const Window &at,
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

Value MemoryAccess::loadScalar(Location loc, Value memref) {
  Value scalar = memref::LoadOp::create(builder, loc, memref);
  return tile::SplatOp::create(
      builder, loc, point.tileType({1, 1}, scalar.getType()), scalar);
}

FailureOr<Value> MemoryAccess::load(Location loc, Value tensor,
                                    const Access &access) {
  const Storage &place = point.storage.at(tensor);
  Type element = cast<ShapedType>(tensor.getType()).getElementType();
  FailureOr<Window> at = window(loc, place, access);
  if (failed(at))
    return failure();
  if (access.empty())
    return loadScalar(loc, place.memref);
  if (access.size() == 1) {
    // The buffer has one dimension: load a row, then give it its axis.
    int64_t count = at->shape[0] * at->shape[1];
    int64_t step = at->shape[0] > 1 ? at->steps[0] : at->steps[1];
    Value row = tile::LoadOp::create(
        builder, loc, point.tileType({count}, element), place.memref,
        at->offsets, ArrayRef<int64_t>{0}, ArrayRef<int64_t>{step}, Value(), 0,
        bounds(loc, *at, /*asRow=*/true));
    return gatherRows(row, *at);
  }
  Value tile = tile::LoadOp::create(
      builder, loc, point.tileType(at->shape, element), place.memref,
      at->offsets, at->dims, at->steps, Value(), 0, bounds(loc, *at));
  return gatherRows(tile, *at);
}

/// Whether all stores of a nest to a result of the kernel are at multiples of
/// 16 bytes, which results of kernels start at.
bool MemoryAccess::mayStream(const Storage &place) const {
  auto type = cast<MemRefType>(place.memref.getType());
  if (!isa<BlockArgument>(place.memref) || !place.origin.empty() ||
      !type.getLayout().isIdentity() || !type.hasStaticShape() ||
      type.getRank() == 0 || !type.getElementType().isIntOrFloat() ||
      point.tileDims[1].size() != 1)
    return false;
  int64_t bits = type.getElementTypeBitWidth();
  unsigned lane = point.tileDims[1][0];
  int64_t extent = nest.extents[lane];
  auto isAligned = [&](int64_t size) { return size * bits % 128 == 0; };
  auto fits = [&](int64_t size) { return size >= extent || isAligned(size); };
  return bits >= 8 && isAligned(type.getShape().back()) &&
         fits(nest.registerTile(lane)) && fits(nest.taskTile(lane, "l2"));
}

/// The blocks that a tile was just converted from, where they can be stored as
/// they are.
Value MemoryAccess::inBlocks(Value tile, const Window &at) const {
  auto convert = tile.getDefiningOp<tile::ConvertOp>();
  if (!point.hasBlocks() || !convert || at.steps.back() != 1 ||
      convert.getSource().getType().getBlocks().empty() ||
      convert.getType().getShape() != ArrayRef(at.shape))
    return {};
  return convert.getSource();
}

LogicalResult MemoryAccess::store(Location loc, Value tile,
                                  const Storage &place, const Access &access,
                                  bool streamed) {
  FailureOr<Window> at = window(loc, place, access);
  if (failed(at))
    return failure();
  tile = point.broadcast(tile, {llvm::product_of(at->rows), at->lanes});
  if (Value held = inBlocks(tile, *at))
    tile = held;
  Type element = cast<tile::TileType>(tile.getType()).getElementType();
  if (access.empty()) {
    Value scalar = tile::ExtractOp::create(builder, loc, element, tile,
                                           ArrayRef<int64_t>{0, 0});
    memref::StoreOp::create(builder, loc, scalar, place.memref, ValueRange{});
    return success();
  }
  if (access.size() == 1) {
    int64_t count = at->shape[0] * at->shape[1];
    int64_t step = at->shape[0] > 1 ? at->steps[0] : at->steps[1];
    Value row = tile::ReshapeOp::create(builder, loc,
                                        point.tileType({count}, element), tile);
    auto op = tile::StoreOp::create(
        builder, loc, row, place.memref, at->offsets, ArrayRef<int64_t>{0},
        ArrayRef<int64_t>{step}, Value(), 0, bounds(loc, *at, /*asRow=*/true));
    if (streamed && step == 1)
      op->setDiscardableAttr(tile::decisions::kStreamed, builder.getUnitAttr());
    return success();
  }
  if (auto type = point.tileType(at->shape, element);
      type.getShape() != cast<tile::TileType>(tile.getType()).getShape())
    tile = tile::ReshapeOp::create(builder, loc, type, tile);
  auto op =
      tile::StoreOp::create(builder, loc, tile, place.memref, at->offsets,
                            at->dims, at->steps, Value(), 0, bounds(loc, *at));
  if (streamed && at->dims.back() + 1 == int64_t(access.size()) &&
      at->steps.back() == 1)
    op->setDiscardableAttr(tile::decisions::kStreamed, builder.getUnitAttr());
  return success();
}

} // namespace tilewright

//===- NestEdges.cpp - reductions over ragged edges of padded nests -------===//
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

#include "lib/Transforms/GroupToKernel/ReductionStrategy.h"

using namespace mlir;

namespace tilewright {

/// Whether a tile of the reductions reaches beyond the end of their loops.
bool ReductionStrategy::endsInTile() const {
  return llvm::any_of(ArrayRef<unsigned>{0, 1}, [&](unsigned axis) {
    int dim = point.reducedDim(axis);
    return dim >= 0 && point.isRagged(dim);
  });
}

/// `tile` with `filler` behind the end of a loop that runs along an axis.
Value ReductionStrategy::maskAxis(Value tile, unsigned axis, unsigned dim,
                                  TypedAttr filler) {
  Location loc = tile.getLoc();
  auto type = cast<tile::TileType>(tile.getType());
  int64_t size = type.getShape()[axis];
  Type number = builder.getI32Type();
  Value most = arith::ConstantIndexOp::create(builder, loc, size);
  Value valid =
      arith::MinSIOp::create(builder, loc, point.validAlong(loc, dim), most);
  valid = arith::IndexCastOp::create(builder, loc, number, valid);
  SmallVector<int64_t> along = {1, 1};
  along[axis] = size;
  Value ramp =
      tile::IotaOp::create(builder, loc, point.tileType({size}, number), 0);
  ramp = tile::ReshapeOp::create(builder, loc, point.tileType(along, number),
                                 ramp);
  Value bound =
      tile::SplatOp::create(builder, loc, point.tileType(along, number), valid);
  Value mask = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt,
                                     ramp, bound);
  return tile::SelectOp::create(
      builder, loc, point.broadcast(mask, type.getShape()), tile,
      point.broadcast(point.constant(loc, filler), type.getShape()));
}

/// A term of a reduction, with `filler` behind the end of the reduced loops.
Value ReductionStrategy::maskReduced(Value tile, TypedAttr filler) {
  for (unsigned axis : {0, 1})
    if (int dim = point.reducedDim(axis); dim >= 0 && point.isRagged(dim))
      tile = maskAxis(tile, axis, dim, filler);
  return tile;
}

} // namespace tilewright

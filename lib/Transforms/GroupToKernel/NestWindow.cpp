//===- NestWindow.cpp - windows that reach beyond their image -------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `tile.image` says between which indices an operand of a sum of products may
// be other than zero. Where the position of a register tile puts a step of the
// window outside for all of its elements, the step adds zeros only: the loop
// over the window starts later or ends earlier.
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDecisions.h"
#include "lib/Transforms/GroupToKernel/LoopSchedule.h"

#include "mlir/Analysis/FlatLinearValueConstraints.h"

using namespace mlir;

namespace tilewright {

LogicalResult LoopSchedule::clip(unsigned dim, Stretch &stretch) {
  linalg::GenericOp op = nest.root();
  auto image = tile::decisions::kImage.get(op);
  if (!image || stretch.tile != 1 || stretch.unroll != 1 || stretch.start != 0)
    return success();
  Location loc = op.getLoc();
  // Operand, its dimension, the first index inside and the first one behind.
  ArrayRef<int64_t> entries = image.asArrayRef();
  for (; entries.size() >= 4; entries = entries.drop_front(4)) {
    if (entries[0] < 0 || entries[0] >= op.getNumDpsInputs())
      break;
    AffineMap map =
        op.getMatchingIndexingMap(op.getDpsInputOperand(entries[0]));
    SmallVector<int64_t> flat;
    if (entries[1] < 0 || entries[1] >= map.getNumResults() ||
        failed(getFlattenedAffineExpr(map.getResult(entries[1]),
                                      map.getNumDims(), 0, &flat)) ||
        flat.size() != map.getNumDims() + 1)
      break;
    if (flat[dim] <= 0)
      continue;
    // The operand's first and last index at step 0 of the window.
    AffineExpr first = builder.getAffineConstantExpr(flat.back());
    int64_t span = 0;
    for (auto [loop, factor] : llvm::enumerate(ArrayRef(flat).drop_back())) {
      if (factor < 0)
        return op.emitError("has a tile.image along a dimension that it reads "
                            "backwards");
      if (loop == dim)
        continue;
      first = first + builder.getAffineDimExpr(loop) * factor;
      span += factor * (point.sizes[loop] - 1);
    }
    AffineExpr lower = (entries[2] - span - first).ceilDiv(flat[dim]);
    AffineExpr upper = (entries[3] - 1 - first).floorDiv(flat[dim]) + 1;
    stretch.lower = arith::MaxSIOp::create(builder, loc, stretch.lower,
                                           point.index(loc, lower));
    stretch.upper = arith::MinSIOp::create(builder, loc, stretch.upper,
                                           point.index(loc, upper));
  }
  if (!entries.empty())
    return op.emitError("has a tile.image that is not an operand, a dimension "
                        "that it indexes by sums of loops, and bounds, for "
                        "each entry");
  return success();
}

} // namespace tilewright

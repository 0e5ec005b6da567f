//===- NestEmitter.cpp - the loops of a register group --------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/GroupToKernel/NestEmitter.h"

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
  for (unsigned dim = 0; dim < nest.extents.size(); ++dim)
    if (nest.registerTile(dim) > 1)
      tileDims[0].push_back(dim);
  if (tileDims[0].empty())
    return success();
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
/// task's offset, plus the loop's variable if there is one.
void NestEmitter::setDim(unsigned dim, Value iv, int64_t start, int64_t size) {
  position[dim] = box.offsets[dim] + start;
  if (iv) {
    if (loops.empty() || loops.back() != iv)
      loops.push_back(iv);
    position[dim] = position[dim] +
                    getAffineDimExpr(loops.size() - 1, builder.getContext());
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

LogicalResult NestEmitter::emitParallel(unsigned level) {
  if (level == parallelOrder.size())
    return emitPoint();
  Location loc = nest.root().getLoc();
  unsigned dim = parallelOrder[level];
  int64_t extent = box.sizes[dim];
  int64_t step = stepOf(dim);
  int64_t whole = extent / step * step;
  if (whole == step) {
    setDim(dim, {}, 0, step);
    if (failed(emitParallel(level + 1)))
      return failure();
  } else {
    Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
    Value upper = arith::ConstantIndexOp::create(builder, loc, whole);
    Value by = arith::ConstantIndexOp::create(builder, loc, step);
    auto loop = scf::ForOp::create(builder, loc, zero, upper, by);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    setDim(dim, loop.getInductionVar(), 0, step);
    if (failed(emitParallel(level + 1)))
      return failure();
  }
  if (extent == whole)
    return success();
  setDim(dim, {}, whole, extent - whole);
  return emitParallel(level + 1);
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
    bool streamed = nest.root()->hasAttr("tile.stream") && mayStream(place);
    if (failed(tile) || failed(store(result.getOwner()->getLoc(), *tile, place,
                                     access, streamed)))
      return failure();
  }
  return success();
}

} // namespace tilewright

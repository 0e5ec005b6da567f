//===- NestBlockSums.cpp - sums of blocks that share a scale --------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A product whose one operand is (q - z) * s, with z and s the same along its
// `tile.block_sums` innermost reduced loops, sums x * q and x there, and adds
// s * (sum of x * q - z * sum of x) once behind these loops: a step is one
// multiply-add for each vector of q instead of a subtraction, a multiplication
// and a multiply-add.
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDecisions.h"
#include "lib/Transforms/GroupToKernel/ReductionStrategy.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace tilewright {

/// Takes the sums of a reduction apart, where its plan wants that.
LogicalResult ReductionStrategy::findBlockSums(const Reduction &reduction) {
  linalg::GenericOp op = reduction.op;
  blockSums.reset();
  auto inner = tile::decisions::kBlockSums.get(op);
  if (!inner)
    return success();
  int64_t count = inner.getInt();
  auto product = reduction.term.getDefiningOp<arith::MulFOp>();
  bool inTile = point.reducedDim(0) >= 0 || point.reducedDim(1) >= 0;
  if (count < 1 || count > int64_t(point.reductionOrder.size()) || inTile ||
      point.depthDim >= 0 || nest.isPadded() || nest.roots.size() != 1 ||
      !product || !isa<arith::AddFOp>(reduction.combiner))
    return op.emitError("has tile.block_sums, but is no sum of products alone "
                        "in its nest, step by step along that many loops");
  const Access binding = nest.bindings.lookup(op);
  unsigned level = point.reductionOrder.size() - count;
  auto stays = [&](Value value) {
    return llvm::none_of(
        ArrayRef(point.reductionOrder).drop_front(level),
        [&](unsigned dim) { return dependsOn(op, value, binding, dim); });
  };
  for (unsigned side : {1, 0}) {
    BlockSums found{level, product->getOperand(1 - side), {}, {}, {}};
    Value weight = product->getOperand(side);
    while (auto scaled = weight.getDefiningOp<arith::MulFOp>()) {
      unsigned scale = stays(scaled.getRhs()) ? 1 : 0;
      if (!stays(scaled->getOperand(scale)))
        break;
      found.scales.push_back(scaled->getOperand(scale));
      weight = scaled->getOperand(1 - scale);
    }
    if (auto shifted = weight.getDefiningOp<arith::SubFOp>();
        shifted && stays(shifted.getRhs())) {
      found.shift = shifted.getRhs();
      weight = shifted.getLhs();
    }
    found.element = weight;
    if (!found.scales.empty()) {
      blockSums = std::move(found);
      return success();
    }
  }
  return op.emitError("has tile.block_sums, but no operand with a scale that "
                      "stays the same along the ")
         << count << " innermost reduced loops";
}

/// The loops over one block, and what they add to the accumulator.
FailureOr<SmallVector<Value>>
ReductionStrategy::emitBlockSums(SmallVector<Value> accs) {
  linalg::GenericOp op = nest.root();
  Location loc = op.getLoc();
  SmallVector<int64_t> shape = point.tileShape();
  Type element = getElementTypeOrSelf(accs.front().getType());
  Value zero = point.constant(loc, builder.getZeroAttr(element));
  SmallVector<Value> sums = {point.broadcast(zero, shape)};
  if (blockSums->shift)
    sums.push_back(point.broadcast(zero, {shape[0], 1}));
  auto step = [&](SmallVector<Value> sums) -> FailureOr<SmallVector<Value>> {
    bodies.enter();
    LogicalResult added = addToBlock(sums);
    bodies.leave();
    if (failed(added))
      return failure();
    return sums;
  };
  auto after = schedule.overReduced(blockSums->level,
                                    point.reductionOrder.size(), sums, step);
  if (failed(after))
    return failure();
  bodies.enter();
  const Access binding = nest.bindings.lookup(op);
  BodyEvaluator::Scope scope;
  Value sum = after->front();
  if (blockSums->shift) {
    auto shift = bodies.evaluateBody(op, binding, blockSums->shift, scope);
    if (failed(shift))
      return failure();
    Value less = arith::NegFOp::create(builder, loc, *shift);
    sum = math::FmaOp::create(builder, loc, point.broadcast(less, shape),
                              point.broadcast(after->back(), shape), sum);
  }
  for (auto [number, value] : llvm::enumerate(blockSums->scales)) {
    auto scale = bodies.evaluateBody(op, binding, value, scope);
    if (failed(scale))
      return failure();
    Value by = point.broadcast(*scale, shape);
    bool last = number + 1 == blockSums->scales.size();
    sum = last ? Value(math::FmaOp::create(builder, loc, sum, by, accs[0]))
               : Value(arith::MulFOp::create(builder, loc, sum, by));
  }
  bodies.leave();
  accs[0] = sum;
  return accs;
}

/// One step of a block: x * q, and x.
LogicalResult ReductionStrategy::addToBlock(MutableArrayRef<Value> sums) {
  linalg::GenericOp op = nest.root();
  Location loc = op.getLoc();
  const Access binding = nest.bindings.lookup(op);
  BodyEvaluator::Scope scope;
  auto other = bodies.evaluateBody(op, binding, blockSums->other, scope);
  auto element = bodies.evaluateBody(op, binding, blockSums->element, scope);
  if (failed(other) || failed(element))
    return failure();
  SmallVector<int64_t> shape = point.tileShape();
  sums[0] = multiplyAdd(builder, loc, *other, *element, sums[0],
                        [&](Value v) { return point.broadcast(v, shape); });
  if (sums.size() == 1)
    return success();
  auto one = cast<tile::TileType>(other->getType()).getShape();
  if (one[1] != 1)
    return op.emitError("has tile.block_sums and a zero point, but its lanes "
                        "are not those of the operand that has it");
  sums[1] = arith::AddFOp::create(builder, loc, sums[1],
                                  point.broadcast(*other, {shape[0], 1}));
  return success();
}

} // namespace tilewright

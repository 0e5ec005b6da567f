//===- NestProduct.cpp - products of tiles with a depth -------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In a padded nest the level `mma` of the rtile names the reduced loop that is
// the depth of a product: a step multiplies a tile of rows by depth and a tile
// of depth by lanes. Matrix units widen what they multiply; operands that are
// only widened elements stay as narrow as memory has them.
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDecisions.h"
#include "lib/Transforms/GroupToKernel/ReductionStrategy.h"

using namespace mlir;

namespace tilewright {

/// What an operand widens, an element or a float that the body makes of others;
/// or the operand itself.
static Value narrowed(Value operand) {
  Operation *op = operand.getDefiningOp();
  bool widens =
      isa_and_nonnull<arith::ExtFOp, arith::ExtSIOp, arith::ExtUIOp>(op);
  bool isNumber = widens && (isa<BlockArgument>(op->getOperand(0)) ||
                             isa<arith::ExtFOp>(op));
  return isNumber ? op->getOperand(0) : operand;
}

/// An operand over rows and depth, or depth and lanes: the depth is `axis`.
FailureOr<Value> ReductionStrategy::productOperand(linalg::GenericOp op,
                                                   Value operand,
                                                   unsigned axis) {
  auto dims = point.tileDims;
  auto tiles = bodies.exchange({{}});
  point.tileDims[axis] = {point.depthDim};
  const Access binding = nest.bindings.lookup(op);
  BodyEvaluator::Scope scope;
  FailureOr<Value> tile = bodies.evaluateBody(op, binding, operand, scope);
  if (succeeded(tile)) {
    Value whole = point.broadcast(*tile, point.tileShape());
    // Zeros that a load reads behind the end add nothing; what is computed
    // from them may be anything.
    auto arg = dyn_cast<BlockArgument>(operand);
    Value read = arg ? op.getMatchingOpOperand(arg)->get() : Value();
    if (auto pad = read ? read.getDefiningOp<tensor::PadOp>() : nullptr)
      read = pad.getSource();
    bool isLoaded = isa_and_nonnull<BlockArgument>(read) &&
                    dependsOn(op, operand, binding, point.depthDim);
    if (!isLoaded && point.isRagged(point.depthDim))
      whole =
          maskAxis(whole, axis, point.depthDim,
                   builder.getZeroAttr(getElementTypeOrSelf(whole.getType())));
    tile = whole;
  }
  point.tileDims = dims;
  bodies.exchange(std::move(tiles));
  return tile;
}

/// acc + a @ b.
FailureOr<Value> ReductionStrategy::tileProduct(linalg::GenericOp op,
                                                Operation *combiner, Value term,
                                                Value acc) {
  Operation *product = term.getDefiningOp();
  bool adds = isa<arith::AddFOp, arith::AddIOp>(combiner);
  if (!adds || !isa_and_nonnull<arith::MulFOp, arith::MulIOp>(product))
    return op.emitError("has tiles of level mma but sums no products");
  std::array<Value, 2> wide = {product->getOperand(point.rowOperand),
                               product->getOperand(1 - point.rowOperand)};
  std::array<Value, 2> operands = {narrowed(wide[0]), narrowed(wide[1])};
  if (operands[0].getType() != operands[1].getType())
    operands = wide;
  std::array<bool, 2> isUnsigned;
  for (unsigned side : {0, 1})
    isUnsigned[side] = operands[side] != wide[side] &&
                       isa<arith::ExtUIOp>(wide[side].getDefiningOp());
  FailureOr<Value> a = productOperand(op, operands[0], /*axis=*/1);
  FailureOr<Value> b = productOperand(op, operands[1], /*axis=*/0);
  if (failed(a) || failed(b))
    return failure();
  auto made = tile::MmaOp::create(builder, op.getLoc(), *a, *b, acc,
                                  isUnsigned[0], isUnsigned[1]);
  for (StringRef decision : std::initializer_list<StringRef>{
           tile::decisions::kPacked, tile::decisions::kTf32,
           tile::decisions::kPromotion, tile::decisions::kUnit})
    if (Attribute given = op->getAttr(decision))
      made->setAttr(decision, given);
  return made.getResult();
}

} // namespace tilewright

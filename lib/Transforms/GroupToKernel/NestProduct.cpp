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
#include "lib/Transforms/GroupToKernel/NestEmitter.h"

using namespace mlir;

namespace tilewright {

bool dependsOn(linalg::GenericOp op, Value value, const Access &binding,
               int dim) {
  if (auto arg = dyn_cast<BlockArgument>(value)) {
    Access access = compose(
        op.getMatchingIndexingMap(op.getMatchingOpOperand(arg)), binding);
    return llvm::any_of(
        access, [&](AffineExpr expr) { return expr.isFunctionOfDim(dim); });
  }
  Operation *maker = value.getDefiningOp();
  if (auto index = dyn_cast<linalg::IndexOp>(maker))
    return binding[index.getDim()].isFunctionOfDim(dim);
  return llvm::any_of(maker->getOperands(), [&](Value operand) {
    return dependsOn(op, operand, binding, dim);
  });
}

/// The product in `combiner(accumulator, product)`; null where there is none.
static Operation *productOf(linalg::GenericOp op) {
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

/// Of the tiled loops, those of the one operand become the rows and that of the
/// other one the lanes: the later one in the result, where both have one.
LogicalResult NestEmitter::findProductDims() {
  linalg::GenericOp op = nest.root();
  SmallVector<int> tiled = tileDims[0];
  tileDims[0].clear();
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
             << dim << ", which " << (left ? "both factors" : "no factor")
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
                        "both factors: lanes are those of one loop");
  tileDims[0] = own[1 - lanes];
  tileDims[1] = own[lanes];
  rowFactor = 1 - lanes;
  return success();
}

/// What an operand widens, an element or a float that the body makes of others;
/// or the operand itself.
static Value narrowed(Value factor) {
  Operation *op = factor.getDefiningOp();
  bool widens =
      isa_and_nonnull<arith::ExtFOp, arith::ExtSIOp, arith::ExtUIOp>(op);
  bool isNumber = widens && (isa<BlockArgument>(op->getOperand(0)) ||
                             isa<arith::ExtFOp>(op));
  return isNumber ? op->getOperand(0) : factor;
}

/// An operand over rows and depth, or depth and lanes: the depth is `axis`.
FailureOr<Value> NestEmitter::productFactor(linalg::GenericOp op, Value factor,
                                            unsigned axis) {
  auto dims = tileDims;
  auto tiles = std::move(known);
  tileDims[axis] = {depthDim};
  known.clear();
  known.emplace_back();
  const Access binding = nest.bindings.lookup(op);
  Scope scope;
  FailureOr<Value> tile = evaluateBody(op, binding, factor, scope);
  if (succeeded(tile)) {
    Value whole = broadcast(*tile, tileShape());
    // Zeros that a load reads behind the end add nothing; what is computed
    // from them may be anything.
    auto arg = dyn_cast<BlockArgument>(factor);
    Value read = arg ? op.getMatchingOpOperand(arg)->get() : Value();
    if (auto pad = read ? read.getDefiningOp<tensor::PadOp>() : nullptr)
      read = pad.getSource();
    bool isLoaded = isa_and_nonnull<BlockArgument>(read) &&
                    dependsOn(op, factor, binding, depthDim);
    if (!isLoaded && isRagged(depthDim))
      whole =
          maskAxis(whole, axis, depthDim,
                   builder.getZeroAttr(getElementTypeOrSelf(whole.getType())));
    tile = whole;
  }
  tileDims = dims;
  known = std::move(tiles);
  return tile;
}

/// acc + a @ b.
FailureOr<Value> NestEmitter::tileProduct(linalg::GenericOp op,
                                          Operation *combiner, Value term,
                                          Value acc) {
  Operation *product = term.getDefiningOp();
  bool adds = isa<arith::AddFOp, arith::AddIOp>(combiner);
  if (!adds || !isa_and_nonnull<arith::MulFOp, arith::MulIOp>(product))
    return op.emitError("has tiles of level mma but sums no products");
  std::array<Value, 2> wide = {product->getOperand(rowFactor),
                               product->getOperand(1 - rowFactor)};
  std::array<Value, 2> factors = {narrowed(wide[0]), narrowed(wide[1])};
  if (factors[0].getType() != factors[1].getType())
    factors = wide;
  std::array<bool, 2> isUnsigned;
  for (unsigned side : {0, 1})
    isUnsigned[side] = factors[side] != wide[side] &&
                       isa<arith::ExtUIOp>(wide[side].getDefiningOp());
  FailureOr<Value> a = productFactor(op, factors[0], /*axis=*/1);
  FailureOr<Value> b = productFactor(op, factors[1], /*axis=*/0);
  if (failed(a) || failed(b))
    return failure();
  auto made = tile::MmaOp::create(builder, op.getLoc(), *a, *b, acc,
                                  isUnsigned[0], isUnsigned[1]);
  for (StringRef decision : std::initializer_list<StringRef>{
           tile::decisions::kPacked, tile::decisions::kTf32,
           tile::decisions::kUnit})
    if (Attribute given = op->getAttr(decision))
      made->setAttr(decision, given);
  return made.getResult();
}

} // namespace tilewright

//===- NestDepth.cpp - products of several elements of the depth ----------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Processors multiply groups of small numbers along the reduced dimension, the
// depth, in one instruction: by vectors, or by a matrix unit whose registers
// hold blocks of rows. The level `mma` of the rtile has the sizes.
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/GroupToKernel/ReductionStrategy.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace tilewright {

tile::TileType ReductionStrategy::blocked(ArrayRef<int64_t> shape, Type element,
                                          ArrayRef<int64_t> blocks,
                                          int64_t group) {
  SmallVector<int64_t> inner;
  if (!blocks.empty())
    inner = {0, 1};
  auto layout = tile::LayoutAttr::get(builder.getContext(), {}, inner, blocks,
                                      0, group, Type());
  return tile::TileType::get(shape, element, layout);
}

Value ReductionStrategy::zeroBlocks(linalg::GenericOp op,
                                    ArrayRef<int64_t> shape) {
  Type element = getElementTypeOrSelf(op->getResult(0).getType());
  auto type = blocked(shape, element,
                      {point.blockOf(point.tileDims[0][0]),
                       point.blockOf(point.tileDims[1][0])});
  auto zero = DenseElementsAttr::get(cast<ShapedType>(Type(type)),
                                     Attribute(builder.getZeroAttr(element)));
  return arith::ConstantOp::create(builder, op.getLoc(), type, zero);
}

/// The sum as a tile in vectors, with what the reduction starts from.
FailureOr<Value> ReductionStrategy::finishBlocks(linalg::GenericOp op,
                                                 Operation *combiner,
                                                 Value sum) {
  auto type = cast<tile::TileType>(sum.getType());
  Value total = tile::ConvertOp::create(
      builder, op.getLoc(),
      point.tileType(type.getShape(), type.getElementType()), sum);
  auto fill = op.getDpsInitOperand(0)->get().getDefiningOp<linalg::FillOp>();
  if (fill && (matchPattern(fill.getInputs()[0], m_AnyZeroFloat()) ||
               matchPattern(fill.getInputs()[0], m_Zero())))
    return total;
  FailureOr<Value> start = evaluateInit(op);
  if (failed(start))
    return failure();
  return combine(builder, combiner, point.broadcast(*start, type.getShape()),
                 total);
}

/// The input behind an operand of a product, and whether it is widened without
/// a sign.
static std::pair<BlockArgument, bool> inputBehind(Value value) {
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<arith::ExtFOp, arith::ExtSIOp, arith::ExtUIOp>(op))
    value = op->getOperand(0);
  return {dyn_cast<BlockArgument>(value), isa_and_nonnull<arith::ExtUIOp>(op)};
}

/// acc + a @ b where a step takes several elements of the reduced dimension:
/// what the processor widens, the IR does not.
FailureOr<Value> ReductionStrategy::depthProduct(linalg::GenericOp op,
                                                 Operation *combiner,
                                                 Value term, Value acc) {
  Operation *product = term.getDefiningOp();
  bool adds = isa<arith::AddFOp, arith::AddIOp>(combiner);
  if (!adds || !isa_and_nonnull<arith::MulFOp, arith::MulIOp>(product))
    return op.emitError("has tiles of level mma but sums no products");
  SmallVector<Value> tiles;
  SmallVector<bool> isUnsigned;
  for (Value multiplied : product->getOperands()) {
    auto [arg, withoutSign] = inputBehind(multiplied);
    auto outer =
        arg && arg.getOwner() == op.getBody()
            ? dyn_cast<BlockArgument>(op.getMatchingOpOperand(arg)->get())
            : BlockArgument();
    if (!outer)
      return op.emitError("has tiles of level mma but multiplies something "
                          "else than elements of its task's operands");
    OpOperand *operand = op.getMatchingOpOperand(arg);
    auto tile = loadOperand(
        op.getLoc(), nest.outer(outer),
        compose(op.getMatchingIndexingMap(operand), nest.bindings.lookup(op)));
    if (failed(tile))
      return failure();
    tiles.push_back(*tile);
    isUnsigned.push_back(withoutSign);
  }
  auto isLanes = [](Value tile) {
    return cast<tile::TileType>(tile.getType()).getInterleave() != 0;
  };
  if (isLanes(tiles[0]) == isLanes(tiles[1]))
    return op.emitError("has tiles of level mma: one operand must be laid out "
                        "in groups of its reduced dimension, the other not");
  unsigned lanes = isLanes(tiles[1]);
  return tile::MmaOp::create(builder, op.getLoc(), tiles[1 - lanes],
                             tiles[lanes], acc, isUnsigned[1 - lanes],
                             isUnsigned[lanes])
      .getResult();
}

/// The block of a dimension in which the depth lies in groups, as
/// `depth mod g`; 0 where the depth is not cut.
static int64_t groupOf(const Access &access, int depthDim) {
  if (access.empty())
    return 0;
  auto last = dyn_cast<AffineBinaryOpExpr>(access.back());
  if (!last || last.getKind() != AffineExprKind::Mod ||
      !last.isFunctionOfDim(depthDim))
    return 0;
  return cast<AffineConstantExpr>(last.getRHS()).getValue();
}

/// An operand of a product that takes several elements of the depth: rows of
/// them, or the lanes' operand, which is laid out in groups of them.
FailureOr<Value> ReductionStrategy::loadOperand(Location loc, Value tensor,
                                                const Access &access) {
  int laneDim = point.tileDims[1].empty() ? -1 : point.tileDims[1].front();
  bool hasLanes = laneDim >= 0 && llvm::any_of(access, [&](AffineExpr expr) {
                    return expr.isFunctionOfDim(laneDim);
                  });
  int64_t group = groupOf(access, point.depthDim);
  if (group && (hasLanes || laneDim < 0))
    return loadInterleaved(loc, tensor, access, group);
  if (hasLanes)
    return nest.root()->emitError("has tiles of level mma, but the operand "
                                  "that holds its lanes is not laid out in "
                                  "groups of its reduced dimension");
  auto saved = point.tileDims;
  point.tileDims[1] = {point.depthDim};
  FailureOr<Value> tile = memory.load(loc, tensor, access);
  point.tileDims = saved;
  if (failed(tile) || !point.hasBlocks())
    return tile;
  auto loaded = tile->getDefiningOp<tile::LoadOp>();
  if (!loaded)
    return nest.root()->emitError("has rows in blocks that do not lie in one "
                                  "dimension of their operand");
  Type element = loaded.getType().getElementType();
  loaded.getResult().setType(blocked(
      loaded.getType().getShape(), element,
      {point.blockOf(point.tileDims[0][0]), point.blockOf(point.depthDim)}));
  return tile;
}

FailureOr<Value> ReductionStrategy::loadInterleaved(Location loc, Value tensor,
                                                    const Access &access,
                                                    int64_t group) {
  int laneDim = point.tileDims[1].empty() ? -1 : point.tileDims[1].front();
  int64_t lanes = point.axisSize(1);
  int64_t depth = point.sizes[point.depthDim];
  auto rank = static_cast<int64_t>(access.size());
  int64_t groups = -1;
  for (auto [number, expr] : llvm::enumerate(access))
    if (auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
        binary && binary.getKind() == AffineExprKind::FloorDiv &&
        binary.isFunctionOfDim(point.depthDim))
      groups = number;
  FailureOr<int64_t> step = rank < 3
                                ? FailureOr<int64_t>(0)
                                : memory.coefficient(access[rank - 2], laneDim);
  if (failed(step))
    return failure();
  if (groups < 0 || (lanes > 1 && *step != 1))
    return nest.root()->emitError("has tiles of level mma, but the groups of "
                                  "an operand do not stand behind its lanes");
  SmallVector<Value> offsets;
  const Storage &place = point.storage.at(tensor);
  for (auto [number, expr] : llvm::enumerate(ArrayRef(access).drop_back())) {
    AffineExpr relative = expr;
    if (!place.origin.empty())
      relative = simplifyAffineExpr(expr - place.origin[number],
                                    nest.extents.size(), point.symbols.size());
    offsets.push_back(point.index(loc, relative));
  }
  offsets.push_back(
      point.index(loc, getAffineConstantExpr(0, builder.getContext())));
  SmallVector<int64_t> blocks;
  if (point.hasBlocks())
    blocks = {point.blockOf(point.depthDim), point.blockOf(laneDim)};
  auto type = blocked({depth, lanes},
                      cast<ShapedType>(tensor.getType()).getElementType(),
                      blocks, group);
  return tile::LoadOp::create(builder, loc, type, place.memref, offsets,
                              ArrayRef<int64_t>{groups, rank - 2})
      .getResult();
}

} // namespace tilewright

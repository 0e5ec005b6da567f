//===- OnlineParts.cpp - parts of a loop in blocks ------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Plan/OnlineParts.h"
#include "dialects/Tile/TileDecisions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace tilewright {

/// An operation over all points of `type`, whose inputs are read through maps.
linalg::GenericOp
elementwise(OpBuilder &builder, Location loc, RankedTensorType type,
            ValueRange sizes, ValueRange inputs, ArrayRef<AffineMap> inputMaps,
            function_ref<Value(OpBuilder &, ValueRange)> body) {
  Value empty = tensor::EmptyOp::create(builder, loc, type, sizes);
  SmallVector<AffineMap> maps(inputMaps);
  maps.push_back(builder.getMultiDimIdentityMap(type.getRank()));
  SmallVector<utils::IteratorType> iterators(type.getRank(),
                                             utils::IteratorType::parallel);
  return linalg::GenericOp::create(
      builder, loc, TypeRange(type), inputs, empty, maps, iterators,
      [&](OpBuilder &nested, Location, ValueRange arguments) {
        linalg::YieldOp::create(nested, loc, body(nested, arguments));
      });
}

/// The sizes of what an operation makes that only a run knows, as its register
/// group has them.
SmallVector<Value> openSizes(linalg::GenericOp op) {
  Value place = op.getDpsInits()[0];
  while (auto fill = place.getDefiningOp<linalg::FillOp>())
    place = fill.getOutputs()[0];
  auto empty = place.getDefiningOp<tensor::EmptyOp>();
  return empty ? SmallVector<Value>(empty.getDynamicSizes())
               : SmallVector<Value>();
}

/// The same in a copy of the group.
SmallVector<Value> openSizes(linalg::GenericOp op, const IRMapping &inner) {
  return llvm::map_to_vector(
      openSizes(op), [&](Value size) { return inner.lookupOrDefault(size); });
}

/// The tile of an operation over the dimensions of an accumulator's result.
tile::RTileAttr tileOfResult(const Accumulator &acc) {
  auto rtile = tile::decisions::kRtile.get(acc.linalgOp());
  SmallVector<NamedAttribute> levels;
  SmallVector<int64_t> order;
  Builder builder(acc.linalgOp().getContext());
  for (StringRef level : {"l2", "shared", "register"}) {
    auto sizes = rtile ? rtile.getSizes(level) : std::nullopt;
    if (!sizes && level != "register")
      continue;
    SmallVector<int64_t> own;
    for (AffineExpr expr : acc.output().getResults()) {
      unsigned dim = cast<AffineDimExpr>(expr).getPosition();
      own.push_back(sizes ? (*sizes)[dim] : 1);
    }
    levels.push_back(
        builder.getNamedAttr(level, builder.getDenseI64ArrayAttr(own)));
  }
  for (unsigned dim = 0; dim < acc.output().getNumResults(); ++dim)
    order.push_back(dim);
  return tile::RTileAttr::get(builder.getContext(),
                              builder.getDictionaryAttr(levels), order);
}

/// Before the first block: the constant, but the lowest finite number instead
/// of an infinite maximum. exp(x - m) is then 0 where all x so far are
/// infinite, instead of NaN, and what no x exceeds is 0/0 in the end, as it is
/// where the whole row is seen at once.
TypedAttr startOf(const Accumulator &acc) {
  auto number = dyn_cast<FloatAttr>(acc.start);
  if (!acc.isMaximum || !number || !number.getValue().isInfinity())
    return acc.start;
  const llvm::fltSemantics &kind = number.getValue().getSemantics();
  return FloatAttr::get(number.getType(),
                        APFloat::getLargest(kind, /*Negative=*/true));
}

bool counts(linalg::GenericOp op) {
  return llvm::any_of(op.getBody()->getOps<linalg::IndexOp>(),
                      [&](linalg::IndexOp index) {
                        return index.getDim() == OnlineChain::loopOf(op);
                      });
}

void countFrom(linalg::GenericOp op, Value made, Value offset) {
  auto copy = made.getDefiningOp<linalg::GenericOp>();
  for (auto index :
       llvm::make_early_inc_range(copy.getBody()->getOps<linalg::IndexOp>())) {
    if (index.getDim() != OnlineChain::loopOf(op))
      continue;
    OpBuilder b(copy.getContext());
    b.setInsertionPointAfter(index);
    auto sum = arith::AddIOp::create(b, index.getLoc(), index, offset);
    index.getResult().replaceAllUsesExcept(sum, sum);
  }
}

/// The size of the loop that runs in blocks, where only a run knows it: that of
/// an argument of the task; null where none has it.
Value sizeOfLoop(OpBuilder &builder, const OnlineChain &chain) {
  for (tile::GroupOp nest : chain.nests)
    for (auto op : nest.getBody().front().getOps<linalg::GenericOp>())
      for (OpOperand *operand : op.getDpsInputOperands()) {
        auto argument = dyn_cast<BlockArgument>(operand->get());
        auto at = op.getMatchingIndexingMap(operand).getResultPosition(
            builder.getAffineDimExpr(OnlineChain::loopOf(op)));
        if (!argument || !at)
          continue;
        Value whole = nest->getOperand(argument.getArgNumber());
        if (isa<BlockArgument>(whole))
          return tensor::DimOp::create(builder, nest.getLoc(), whole, *at);
      }
  return {};
}

/// Where whole blocks end, and what is left: a block at most, and none only
/// where the loop has no steps at all. So each step of whole blocks is whole,
/// and what is left, whose bounds cost, runs once.
std::pair<Value, OnlinePart> cutOpen(OpBuilder &builder, Value extent,
                                     int64_t block) {
  Location loc = extent.getLoc();
  auto number = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  Value last = arith::SubIOp::create(builder, loc, extent, number(1));
  last = arith::MaxSIOp::create(builder, loc, last, number(0));
  Value count = arith::DivUIOp::create(builder, loc, last, number(block));
  Value whole = arith::MulIOp::create(builder, loc, count, number(block));
  Value left = arith::SubIOp::create(builder, loc, extent, whole);
  return {whole, {OpFoldResult(whole), ShapedType::kDynamic, left}};
}

std::optional<int64_t> unitOf(AffineExpr expr) {
  if (isa<AffineDimExpr>(expr))
    return 1;
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  auto unit = binary ? dyn_cast<AffineConstantExpr>(binary.getRHS())
                     : AffineConstantExpr();
  if (!unit || binary.getKind() != AffineExprKind::FloorDiv ||
      !isa<AffineDimExpr>(binary.getLHS()))
    return std::nullopt;
  return unit.getValue();
}

} // namespace tilewright

//===- ApplyLayouts.cpp - tile-apply-layouts ------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/Tile.h"
#include "dialects/Tile/TileDecisions.h"
#include "lib/Transforms/Plan/Passes.h"

#include "lib/Transforms/Plan/Weights.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_APPLYLAYOUTS
#include "lib/Transforms/Plan/Passes.h.inc"

namespace {

struct ApplyLayouts : public impl::ApplyLayoutsBase<ApplyLayouts> {
  void runOnOperation() override {
    SmallVector<linalg::GenericOp> ops;
    nextNest = nextTask = 0;
    getOperation()->walk([&](linalg::GenericOp op) {
      if (auto nest = tile::decisions::kNest.get(op))
        nextNest = std::max(nextNest, nest.getInt() + 1);
      if (auto task = tile::decisions::kTask.get(op))
        nextTask = std::max(nextTask, task.getInt() + 1);
      if (op->hasAttr(tile::decisions::kLayouts))
        ops.push_back(op);
    });
    for (linalg::GenericOp op : ops)
      if (failed(apply(op)))
        return signalPassFailure();
  }

  LogicalResult apply(linalg::GenericOp op) {
    auto layouts = tile::decisions::kLayouts.get(op);
    auto tiles = tile::decisions::kPackRtiles.get(op);
    if (!layouts || layouts.size() != size_t(op.getNumDpsInputs()))
      return op.emitError("has tile.layouts with other than one entry per "
                          "input");
    SmallVector<AffineMap> maps = op.getIndexingMapsArray();
    for (auto [number, attr] : llvm::enumerate(layouts)) {
      auto layout = dyn_cast<tile::LayoutAttr>(attr);
      if (!layout)
        continue;
      OpOperand *operand = op.getDpsInputOperand(number);
      if (failed(verify(op, operand->get().getType(), layout)))
        return failure();
      FailureOr<Value> packed = failure();
      if (dependsOnWeightsOnly(operand->get()))
        packed = packWeight(op, operand->get(), layout);
      else
        packed = packValue(op, operand->get(), layout,
                           tiles && number < tiles.size() ? tiles[number]
                                                          : Attribute());
      if (failed(packed))
        return failure();
      operand->set(*packed);
      maps[number] = packMap(maps[number], layout);
    }
    op.setIndexingMapsAttr(Builder(op).getAffineMapArrayAttr(maps));
    op->removeDiscardableAttr(tile::decisions::kLayouts);
    op->removeDiscardableAttr(tile::decisions::kPackRtiles);
    op->removeDiscardableAttr(tile::decisions::kPackApart);
    return success();
  }

  /// The layout must be one of this operand, whose sizes must be known.
  static LogicalResult verify(linalg::GenericOp op, Type type,
                              tile::LayoutAttr layout) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || (!layout.getTiles().empty() && !tensor.hasStaticShape()))
      return op.emitError("lays out an operand of type ")
             << type << ": a tensor of known sizes is needed";
    auto isDim = [&](int64_t dim) { return dim < tensor.getRank(); };
    if (!llvm::all_of(layout.getPerm(), isDim) ||
        !llvm::all_of(layout.getInner(), isDim))
      return op.emitError("has a layout for more dimensions than those of ")
             << type;
    return success();
  }

  static SmallVector<int64_t> permutation(tile::LayoutAttr layout,
                                          unsigned rank) {
    SmallVector<int64_t> perm(layout.getPerm());
    for (unsigned dim = perm.size(); dim < rank; ++dim)
      perm.push_back(dim);
    return perm;
  }

  /// Where an element lies after packing: blocks first, then inside the block.
  static AffineMap packMap(AffineMap map, tile::LayoutAttr layout) {
    SmallVector<AffineExpr> outer(map.getResults()), inner, results;
    for (auto [dim, size] :
         llvm::zip_equal(layout.getInner(), layout.getTiles())) {
      inner.push_back(outer[dim] % size);
      outer[dim] = outer[dim].floorDiv(size);
    }
    for (int64_t dim : permutation(layout, outer.size()))
      results.push_back(outer[dim]);
    llvm::append_range(results, inner);
    return AffineMap::get(map.getNumDims(), map.getNumSymbols(), results,
                          map.getContext());
  }

  /// Weights are packed at compile time, by linalg.pack: it moves to @init.
  static FailureOr<Value> packWeight(linalg::GenericOp op, Value value,
                                     tile::LayoutAttr layout) {
    OpBuilder builder(op);
    Location loc = op.getLoc();
    auto type = cast<RankedTensorType>(value.getType());
    SmallVector<int64_t> perm = permutation(layout, type.getRank());
    SmallVector<OpFoldResult> sizes;
    for (int64_t size : layout.getTiles())
      sizes.push_back(builder.getIndexAttr(size));
    Value empty = linalg::PackOp::createDestinationTensor(
        builder, loc, value, sizes, layout.getInner(), perm);
    Value zero = arith::ConstantOp::create(
        builder, loc, builder.getZeroAttr(type.getElementType()));
    return linalg::PackOp::create(builder, loc, value, empty, layout.getInner(),
                                  sizes, zero, perm)
        .getResult();
  }

  /// Sizes of a value, taken from what its makers start from: a dimension of
  /// what the task itself makes would be read outside of it, before it runs.
  static SmallVector<OpFoldResult> sizesOf(OpBuilder &builder, Location loc,
                                           Value value) {
    while (auto maker = value.getDefiningOp<DestinationStyleOpInterface>())
      value = maker.getTiedOpOperand(cast<OpResult>(value))->get();
    if (auto empty = value.getDefiningOp<tensor::EmptyOp>())
      return empty.getMixedSizes();
    return tensor::getMixedSizes(builder, loc, value);
  }

  /// A run-time operand is copied by a register group of its own, right before
  /// the reader: in the same task, or in one of its own where a task cannot
  /// know how much it would copy.
  FailureOr<Value> packValue(linalg::GenericOp op, Value value,
                             tile::LayoutAttr layout, Attribute rtile) {
    if (!op->hasAttr(tile::decisions::kTask))
      return op.emitError("packs a run-time operand but has no tile.task");
    if (!isa_and_nonnull<tile::RTileAttr>(rtile))
      return op.emitError("packs a run-time operand without a rtile for the "
                          "copy in tile.pack_rtiles");
    OpBuilder builder(op);
    Location loc = op.getLoc();
    auto type = cast<RankedTensorType>(value.getType());
    // The loops run over the operand as it is, so that the last block may be a
    // part of one: what the result holds beyond is not defined.
    SmallVector<int64_t> perm = permutation(layout, type.getRank()),
                         order = perm;
    ArrayRef<int64_t> inner = layout.getInner();
    llvm::erase_if(order,
                   [&](int64_t dim) { return llvm::is_contained(inner, dim); });
    llvm::append_range(order, inner);
    unsigned rank = order.size();
    SmallVector<AffineExpr> from(rank);
    for (auto [loop, dim] : llvm::enumerate(order))
      from[dim] = builder.getAffineDimExpr(loop);
    auto source = AffineMap::get(rank, 0, from, op.getContext());
    SmallVector<OpFoldResult> sizes = sizesOf(builder, loc, value);
    for (auto [dim, size] : llvm::zip_equal(inner, layout.getTiles()))
      sizes[dim] =
          builder.getIndexAttr(llvm::divideCeil(type.getDimSize(dim), size));
    SmallVector<OpFoldResult> packed;
    for (int64_t dim : perm)
      packed.push_back(sizes[dim]);
    for (int64_t size : layout.getTiles())
      packed.push_back(builder.getIndexAttr(size));
    Value empty =
        tensor::EmptyOp::create(builder, loc, packed, type.getElementType());
    AffineMap to = packMap(source, layout);
    linalg::GenericOp maker =
        gatherFor(op, value, order, cast<tile::RTileAttr>(rtile));
    SmallVector<utils::IteratorType> loops(rank, utils::IteratorType::parallel);
    auto copy = linalg::GenericOp::create(
        builder, loc, empty.getType(), value, empty,
        ArrayRef<AffineMap>{source, to}, loops,
        [](OpBuilder &b, Location at, ValueRange args) {
          linalg::YieldOp::create(b, at, args[0]);
        });
    copy->setDiscardableAttr(tile::decisions::kRtile, rtile);
    bool apart = op->hasAttr(tile::decisions::kPackApart);
    copy->setDiscardableAttr(tile::decisions::kTask,
                             apart ? builder.getI64IntegerAttr(nextTask++)
                                   : op->getAttr(tile::decisions::kTask));
    if (apart)
      copy->setDiscardableAttr(tile::decisions::kKernel,
                               builder.getStringAttr("pack"));
    if (maker && !apart) {
      // It is computed where it is packed: its own order is never in memory.
      copy->setDiscardableAttr(tile::decisions::kNest,
                               maker->getAttr(tile::decisions::kNest));
      maker->removeDiscardableAttr(tile::decisions::kRtile);
      maker->removeDiscardableAttr(tile::decisions::kPrediction);
    } else {
      copy->setDiscardableAttr(tile::decisions::kNest,
                               builder.getI64IntegerAttr(nextNest++));
    }
    return copy->getResult(0);
  }

  /// The operation of a reader's task that makes an operand for it alone, and
  /// reads nothing at its own points, where one tile of the copy, whose loops
  /// are the dimensions in `order`, has one index to gather by.
  static linalg::GenericOp gatherFor(linalg::GenericOp op, Value value,
                                     ArrayRef<int64_t> order,
                                     tile::RTileAttr rtile) {
    auto maker = value.getDefiningOp<linalg::GenericOp>();
    auto sizes = rtile.getSizes("register");
    if (!maker || maker.getNumDpsInputs() || !value.hasOneUse() || !sizes ||
        maker->getAttr(tile::decisions::kTask) !=
            op->getAttr(tile::decisions::kTask))
      return {};
    for (int64_t dim : computedFrom(maker))
      if ((*sizes)[llvm::find(order, dim) - order.begin()] != 1)
        return {};
    return maker;
  }

  /// The loops that places in tables depend on through what a body computes.
  static SmallVector<int64_t> computedFrom(linalg::GenericOp op) {
    SetVector<Operation *> makers;
    BackwardSliceOptions options;
    options.inclusive = true;
    options.filter = [&](Operation *inner) {
      return inner->getBlock() == op.getBody();
    };
    for (auto extract : op.getBody()->getOps<tensor::ExtractOp>())
      for (Value at : extract.getIndices())
        if (!at.getDefiningOp<linalg::IndexOp>())
          (void)getBackwardSlice(at, &makers, options);
    SmallVector<int64_t> loops;
    for (Operation *maker : makers)
      if (auto index = dyn_cast<linalg::IndexOp>(maker))
        loops.push_back(index.getDim());
    return loops;
  }

  int64_t nextNest = 0, nextTask = 0;
};

} // namespace
} // namespace tilewright

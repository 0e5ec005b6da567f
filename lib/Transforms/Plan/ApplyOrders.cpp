//===- ApplyOrders.cpp - tile-apply-orders --------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDecisions.h"
#include "lib/Transforms/Plan/Passes.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_APPLYORDERS
#include "lib/Transforms/Plan/Passes.h.inc"

namespace {

struct ApplyOrders : public impl::ApplyOrdersBase<ApplyOrders> {
  void runOnOperation() override {
    SmallVector<linalg::GenericOp> ops;
    getOperation()->walk([&](linalg::GenericOp op) {
      if (op->hasAttr(tile::decisions::kOrder))
        ops.push_back(op);
    });
    for (linalg::GenericOp op : ops)
      if (failed(apply(op)))
        return signalPassFailure();
  }

  static LogicalResult apply(linalg::GenericOp op) {
    auto attr = tile::decisions::kOrder.get(op);
    auto type = op->getNumResults() == 1
                    ? dyn_cast<RankedTensorType>(op->getResult(0).getType())
                    : RankedTensorType();
    if (!attr || !type || attr.size() != type.getRank() ||
        !isPermutationVector(attr.asArrayRef()))
      return op.emitError("has a tile.order that permutes no dimensions of "
                          "its only result");
    OpResult result = op->getResult(0);
    for (OpOperand &use : result.getUses())
      if (!isa<linalg::GenericOp>(use.getOwner()))
        return op.emitError("has a tile.order, but a result that ")
               << use.getOwner()->getName()
               << " reads; only a linalg.generic can read it in another order";
    ArrayRef<int64_t> order = attr.asArrayRef();
    FailureOr<Value> init = permutedInit(op, type, order);
    if (failed(init))
      return failure();
    op.getDpsInitOperand(0)->set(*init);
    permuteMap(op, op.getNumDpsInputs(), order);
    result.setType(cast<RankedTensorType>(init->getType()));
    for (OpOperand &use : result.getUses())
      permuteMap(cast<linalg::GenericOp>(use.getOwner()),
                 use.getOperandNumber(), order);
    op->removeDiscardableAttr(tile::decisions::kOrder);
    return success();
  }

  /// The result starts as an empty tensor or a fill: made anew in that order.
  static FailureOr<Value> permutedInit(linalg::GenericOp op,
                                       RankedTensorType type,
                                       ArrayRef<int64_t> order) {
    OpBuilder builder(op);
    Value init = op.getDpsInitOperand(0)->get();
    Value start = init;
    if (auto fill = init.getDefiningOp<linalg::FillOp>())
      start = fill.getOutputs()[0];
    auto old = start.getDefiningOp<tensor::EmptyOp>();
    SmallVector<OpFoldResult> sizes =
        old ? old.getMixedSizes()
            : tensor::getMixedSizes(builder, op.getLoc(), start);
    applyPermutationToVector(sizes, order);
    Value empty = tensor::EmptyOp::create(builder, op.getLoc(), sizes,
                                          type.getElementType());
    if (init.getDefiningOp<tensor::EmptyOp>())
      return empty;
    if (auto fill = init.getDefiningOp<linalg::FillOp>())
      return linalg::FillOp::create(builder, op.getLoc(), fill.getInputs(),
                                    empty)
          .getResult(0);
    return op.emitError("has a tile.order, but starts from a tensor with "
                        "contents");
  }

  static void permuteMap(linalg::GenericOp op, unsigned operand,
                         ArrayRef<int64_t> order) {
    SmallVector<AffineMap> maps = op.getIndexingMapsArray();
    AffineMap map = maps[operand];
    maps[operand] = AffineMap::get(map.getNumDims(), 0,
                                   applyPermutation(map.getResults(), order),
                                   op.getContext());
    op.setIndexingMapsAttr(Builder(op).getAffineMapArrayAttr(maps));
  }
};

} // namespace
} // namespace tilewright

//===- TileShapeFolds.cpp - folds of element movement ---------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDetail.h"

#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace tilewright::tile;

DenseElementsAttr shared::splatOf(TileType type, Attribute value) {
  return DenseElementsAttr::get(type, ArrayRef<Attribute>(value));
}

Attribute shared::splatValue(Attribute constant) {
  auto dense = dyn_cast_or_null<SplatElementsAttr>(constant);
  return dense ? dense.getSplatValue<Attribute>() : Attribute();
}

/// The splat constant of another type with the value of `constant`, if it is
/// a splat.
static OpFoldResult foldSplat(Attribute constant, TileType type) {
  Attribute value = shared::splatValue(constant);
  return value ? shared::splatOf(type, value) : OpFoldResult();
}

OpFoldResult SplatOp::fold(FoldAdaptor adaptor) {
  if (isa_and_nonnull<IntegerAttr, FloatAttr>(adaptor.getScalar()))
    return shared::splatOf(getResult().getType(), adaptor.getScalar());
  return {};
}

OpFoldResult IotaOp::fold(FoldAdaptor) {
  TileType type = getResult().getType();
  if (type.getDimSize(getDim()) != 1)
    return {};
  return shared::splatOf(type, IntegerAttr::get(type.getElementType(), 0));
}

OpFoldResult BroadcastOp::fold(FoldAdaptor adaptor) {
  if (getSource().getType() == getResult().getType())
    return getSource();
  return foldSplat(adaptor.getSource(), getResult().getType());
}

OpFoldResult TransposeOp::fold(FoldAdaptor adaptor) {
  if (llvm::is_sorted(getPermutation()) &&
      getSource().getType() == getResult().getType())
    return getSource();
  return foldSplat(adaptor.getSource(), getResult().getType());
}

OpFoldResult ReshapeOp::fold(FoldAdaptor adaptor) {
  if (getSource().getType() == getResult().getType())
    return getSource();
  if (auto dense = dyn_cast_or_null<DenseElementsAttr>(adaptor.getSource()))
    return dense.reshape(getResult().getType());
  return {};
}

static Attribute elementAt(DenseElementsAttr dense, ArrayRef<int64_t> offsets) {
  if (dense.isSplat())
    return dense.getSplatValue<Attribute>();
  SmallVector<uint64_t> position(offsets.begin(), offsets.end());
  return dense.getValues<Attribute>()[position];
}

OpFoldResult ExtractOp::fold(FoldAdaptor adaptor) {
  if (getSource().getType() == getResult().getType())
    return getSource();
  auto slice = dyn_cast<TileType>(getResult().getType());
  if (auto splat = getSource().getDefiningOp<SplatOp>(); splat && !slice)
    return splat.getScalar();
  auto dense = dyn_cast_or_null<DenseElementsAttr>(adaptor.getSource());
  if (!dense)
    return {};
  if (!slice)
    return elementAt(dense, getOffsets());
  return foldSplat(dense, slice);
}

OpFoldResult InsertOp::fold(FoldAdaptor) {
  if (getSource().getType() == getDest().getType())
    return getSource();
  return {};
}

namespace {

/// broadcast(broadcast), reshape(reshape): the inner one has no say.
template <typename Op> struct SkipInner : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;

  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    auto inner = op.getSource().template getDefiningOp<Op>();
    if (!inner)
      return failure();
    rewriter.modifyOpInPlace(
        op, [&] { op.getSourceMutable().assign(inner.getSource()); });
    return success();
  }
};

/// Elements that are all the same do not care where they are.
template <typename Op> struct MoveSplat : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;

  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    auto splat = op.getSource().template getDefiningOp<SplatOp>();
    if (!splat || !isa<TileType>(op.getResult().getType()))
      return failure();
    rewriter.replaceOpWithNewOp<SplatOp>(op, op.getResult().getType(),
                                         splat.getScalar());
    return success();
  }
};

struct ComposeTransposes : OpRewritePattern<TransposeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(TransposeOp op,
                                PatternRewriter &rewriter) const override {
    auto inner = op.getSource().getDefiningOp<TransposeOp>();
    if (!inner)
      return failure();
    SmallVector<int64_t> permutation;
    for (int64_t dim : op.getPermutation())
      permutation.push_back(inner.getPermutation()[dim]);
    rewriter.replaceOpWithNewOp<TransposeOp>(op, op.getResult().getType(),
                                             inner.getSource(), permutation);
    return success();
  }
};

struct ComposeExtracts : OpRewritePattern<ExtractOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ExtractOp op,
                                PatternRewriter &rewriter) const override {
    auto inner = op.getSource().getDefiningOp<ExtractOp>();
    if (!inner)
      return failure();
    SmallVector<int64_t> offsets;
    for (auto [outside, inside] :
         llvm::zip_equal(inner.getOffsets(), op.getOffsets()))
      offsets.push_back(outside + inside);
    rewriter.replaceOpWithNewOp<ExtractOp>(op, op.getResult().getType(),
                                           inner.getSource(), offsets);
    return success();
  }
};

} // namespace

void BroadcastOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                              MLIRContext *context) {
  patterns.add<SkipInner<BroadcastOp>, MoveSplat<BroadcastOp>>(context);
}

void TransposeOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                              MLIRContext *context) {
  patterns.add<ComposeTransposes, MoveSplat<TransposeOp>>(context);
}

void ReshapeOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                            MLIRContext *context) {
  patterns.add<SkipInner<ReshapeOp>, MoveSplat<ReshapeOp>>(context);
}

void ExtractOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                            MLIRContext *context) {
  patterns.add<ComposeExtracts, MoveSplat<ExtractOp>>(context);
}

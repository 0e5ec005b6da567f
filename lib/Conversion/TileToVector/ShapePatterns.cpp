//===- ShapePatterns.cpp - tile ops that move elements only ---------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToVector/TileParts.h"

using namespace mlir;
using namespace tilewright;

namespace {

struct BroadcastPattern : TilePattern<tile::BroadcastOp> {
  using Base::Base;

  LogicalResult
  matchAndRewrite(tile::BroadcastOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    TileParts source = getParts(op.getSource().getType(), adaptor.getSource());
    const PartLayout &from = source.getLayout();
    PartLayout layout = getLayout(op.getResult().getType());
    // Right aligned: the source lacks the first `grow` dimensions.
    size_t grow = layout.getShape().size() - from.getShape().size();
    bool scalarToLanes = from.isScalar() && !layout.isScalar();
    SmallVector<Value> results;
    DenseMap<std::pair<Value, Type>, Value> known; // one broadcast per value
    for (int64_t row = 0; row < layout.getRows(); ++row) {
      SmallVector<int64_t> index = layout.getRowIndex(row);
      index.erase(index.begin(), index.begin() + std::min(grow, index.size()));
      for (auto [dim, position] : llvm::enumerate(index))
        position = from.getShape()[dim] == 1 ? 0 : position;
      int64_t sourceRow = from.getRow(index);
      for (auto [c, chunk] : llvm::enumerate(layout.getChunks())) {
        Value part = source.getPart(sourceRow, scalarToLanes ? 0 : c);
        Value &result = known[{part, layout.getPartType(chunk)}];
        if (!result)
          result = scalarToLanes ? splatTo(rewriter, op.getLoc(),
                                           layout.getPartType(chunk), part)
                                 : part;
        results.push_back(result);
      }
    }
    rewriter.replaceOpWithMultiple(op, {results});
    return success();
  }
};

struct TransposePattern : TilePattern<tile::TransposeOp> {
  using Base::Base;

  LogicalResult
  matchAndRewrite(tile::TransposeOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    TileParts source = getParts(op.getSource().getType(), adaptor.getSource());
    TileParts result = transposeParts(rewriter, op.getLoc(), source,
                                      getLayout(op.getResult().getType()),
                                      op.getPermutation());
    rewriter.replaceOpWithMultiple(op, {result.getParts()});
    return success();
  }
};

struct ReshapePattern : TilePattern<tile::ReshapeOp> {
  using Base::Base;

  LogicalResult
  matchAndRewrite(tile::ReshapeOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    TileParts source = getParts(op.getSource().getType(), adaptor.getSource());
    const PartLayout &from = source.getLayout();
    PartLayout layout = getLayout(op.getResult().getType());
    int64_t width = layout.getWidth(), fromWidth = from.getWidth();
    SmallVector<Value> results;
    for (int64_t row = 0; row < layout.getRows(); ++row)
      for (const Chunk &chunk : layout.getChunks()) {
        int64_t first = row * width + chunk.start;
        int64_t lane = first % fromWidth;
        if (lane + chunk.valid <= fromWidth) {
          results.push_back(source.getLanes(rewriter, op.getLoc(),
                                            first / fromWidth, lane, chunk,
                                            layout.isScalar()));
          continue;
        }
        SmallVector<Value> lanes;
        for (int64_t flat = first; flat < first + chunk.valid; ++flat)
          lanes.push_back(source.getElement(
              rewriter, op.getLoc(), flat / fromWidth, flat % fromWidth));
        results.push_back(
            packElements(rewriter, op.getLoc(), layout, chunk, lanes));
      }
    rewriter.replaceOpWithMultiple(op, {results});
    return success();
  }
};

struct ExtractPattern : TilePattern<tile::ExtractOp> {
  using Base::Base;

  LogicalResult
  matchAndRewrite(tile::ExtractOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    TileParts source = getParts(op.getSource().getType(), adaptor.getSource());
    const PartLayout &from = source.getLayout();
    ArrayRef<int64_t> offsets = op.getOffsets();
    int64_t lane = offsets.empty() ? 0 : offsets.back();
    if (!isa<tile::TileType>(op.getResult().getType())) {
      Value scalar =
          source.getElement(rewriter, op.getLoc(), from.getRow(offsets), lane);
      rewriter.replaceOp(op, scalar);
      return success();
    }
    PartLayout layout = getLayout(op.getResult().getType());
    SmallVector<Value> results;
    for (int64_t row = 0; row < layout.getRows(); ++row) {
      SmallVector<int64_t> index = layout.getRowIndex(row);
      for (auto [dim, position] : llvm::enumerate(index))
        position += offsets[dim];
      for (const Chunk &chunk : layout.getChunks())
        results.push_back(
            source.getLanes(rewriter, op.getLoc(), from.getRow(index),
                            lane + chunk.start, chunk, layout.isScalar()));
    }
    rewriter.replaceOpWithMultiple(op, {results});
    return success();
  }
};

struct InsertPattern : TilePattern<tile::InsertOp> {
  using Base::Base;

  LogicalResult
  matchAndRewrite(tile::InsertOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    TileParts slice = getParts(op.getSource().getType(), adaptor.getSource());
    TileParts result = getParts(op.getDest().getType(), adaptor.getDest());
    const PartLayout &layout = result.getLayout();
    ArrayRef<int64_t> offsets = op.getOffsets();
    int64_t lane = offsets.empty() ? 0 : offsets.back();
    for (int64_t row = 0; row < slice.getLayout().getRows(); ++row) {
      SmallVector<int64_t> index = slice.getLayout().getRowIndex(row);
      for (auto [dim, position] : llvm::enumerate(index))
        position += offsets[dim];
      int64_t target = layout.getRow(index);
      for (size_t c = 0; c < layout.getChunks().size(); ++c) {
        Value &part = result.getMutableParts()[layout.getPart(target, c)];
        part = insertInto(rewriter, op.getLoc(), part, layout,
                          layout.getChunks()[c], slice, row, lane);
      }
    }
    rewriter.replaceOpWithMultiple(op, {result.getParts()});
    return success();
  }

private:
  /// The part of a result chunk with the lanes of a slice row that starts at
  /// lane `first` of the result row.
  static Value insertInto(OpBuilder &b, Location loc, Value part,
                          const PartLayout &layout, const Chunk &chunk,
                          const TileParts &slice, int64_t row, int64_t first) {
    int64_t last = first + slice.getLayout().getWidth();
    int64_t low = std::max(first, chunk.start);
    int64_t high = std::min(last, chunk.start + chunk.valid);
    if (low >= high)
      return part;
    if (layout.isScalar())
      return slice.getElement(b, loc, row, 0);
    if (low == chunk.start && high == chunk.start + chunk.valid)
      return slice.getLanes(b, loc, row, low - first, chunk, false);
    for (int64_t lane = low; lane < high; ++lane) {
      Value element = slice.getElement(b, loc, row, lane - first);
      part =
          vector::InsertOp::create(b, loc, element, part, lane - chunk.start);
    }
    return part;
  }
};

} // namespace

void tilewright::populateShapePatterns(const TilePartsConverter &converter,
                                       RewritePatternSet &patterns) {
  patterns.add<BroadcastPattern, TransposePattern, ReshapePattern,
               ExtractPattern, InsertPattern>(converter, patterns.getContext());
}

//===- ReducePatterns.cpp - tile.reduce and tile.scan ---------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToVector/Combine.h"

using namespace mlir;
using namespace tilewright;

namespace {

/// Reduces rows element by element first, lanes at the very end.
class Reducer {
public:
  Reducer(OpBuilder &b, Location loc, tile::ReduceKind kind)
      : b(b), loc(loc), kind(kind) {}

  /// Pairwise, so that independent chains overlap and rounding grows slowly.
  Value tree(SmallVector<Value> values) {
    while (values.size() > 1) {
      SmallVector<Value> next;
      for (size_t i = 0; i + 1 < values.size(); i += 2)
        next.push_back(combine(b, loc, kind, values[i], values[i + 1]));
      if (values.size() % 2)
        next.push_back(values.back());
      values = std::move(next);
    }
    return values.front();
  }

  /// All lanes of one row as a scalar.
  Value lanes(const PartLayout &layout, ArrayRef<Value> row) {
    if (layout.isScalar())
      return row.front();
    SmallVector<Value> full, rest;
    ArrayRef<Chunk> chunks = layout.getChunks();
    for (auto [chunk, part] : llvm::zip_equal(chunks, row)) {
      Value clean = neutralise(layout, chunk, part);
      (chunk.lanes == chunks.front().lanes ? full : rest).push_back(clean);
    }
    Value result = horizontal(tree(full));
    for (Value part : rest)
      result = combine(b, loc, kind, result, horizontal(part));
    return result;
  }

private:
  Value neutralise(const PartLayout &layout, const Chunk &chunk, Value part) {
    if (!chunk.isRagged())
      return part;
    Value neutral =
        constantPart(b, loc, part.getType(),
                     neutralElement(b, kind, layout.getElementType()));
    return arith::SelectOp::create(b, loc, raggedMask(b, loc, chunk), part,
                                   neutral);
  }

  Value horizontal(Value vector) {
    int64_t lanes = cast<VectorType>(vector.getType()).getDimSize(0);
    for (; lanes > 1; lanes /= 2) {
      auto low = llvm::to_vector(llvm::seq<int64_t>(0, lanes / 2));
      auto high = llvm::to_vector(llvm::seq<int64_t>(lanes / 2, lanes));
      Value a = vector::ShuffleOp::create(b, loc, vector, vector, low);
      Value c = vector::ShuffleOp::create(b, loc, vector, vector, high);
      vector = combine(b, loc, kind, a, c);
    }
    return vector::ExtractOp::create(b, loc, vector, 0);
  }

  OpBuilder &b;
  Location loc;
  tile::ReduceKind kind;
};

struct ReducePattern : TilePattern<tile::ReduceOp> {
  using Base::Base;

  LogicalResult
  matchAndRewrite(tile::ReduceOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    TileParts source = getParts(op.getSource().getType(), adaptor.getSource());
    PartLayout layout = getLayout(op.getResult().getType());
    Reducer reducer(rewriter, op.getLoc(), op.getKind());
    const PartLayout &from = source.getLayout();
    auto rank = static_cast<int64_t>(from.getShape().size());
    // Rows that meet in one result row.
    SmallVector<SmallVector<int64_t>> groups(layout.getRows());
    for (int64_t row = 0; row < from.getRows(); ++row) {
      SmallVector<int64_t> index = from.getRowIndex(row);
      for (int64_t dim : op.getDims())
        if (dim < rank - 1)
          index[dim] = 0;
      groups[layout.getRow(index)].push_back(row);
    }
    bool overLanes = llvm::is_contained(op.getDims(), rank - 1);
    SmallVector<Value> results;
    for (ArrayRef<int64_t> rows : groups) {
      SmallVector<Value> chunks;
      for (size_t c = 0; c < from.getChunks().size(); ++c)
        chunks.push_back(reducer.tree(llvm::map_to_vector(
            rows, [&](int64_t row) { return source.getPart(row, c); })));
      if (overLanes)
        results.push_back(reducer.lanes(from, chunks));
      else
        llvm::append_range(results, chunks);
    }
    rewriter.replaceOpWithMultiple(op, {results});
    return success();
  }
};

/// A running combination along one dimension.
struct ScanPattern : TilePattern<tile::ScanOp> {
  using Base::Base;

  LogicalResult
  matchAndRewrite(tile::ScanOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    TileParts source = getParts(op.getSource().getType(), adaptor.getSource());
    const PartLayout &layout = source.getLayout();
    auto rank = static_cast<int64_t>(layout.getShape().size());
    auto dim = static_cast<int64_t>(op.getDim());
    SmallVector<Value> results(layout.getNumParts());
    if (dim == rank - 1)
      scanLanes(rewriter, op, source, results);
    else
      scanRows(rewriter, op, source, dim, results);
    rewriter.replaceOpWithMultiple(op, {results});
    return success();
  }

private:
  Value neutral(OpBuilder &b, tile::ScanOp op, Type type) const {
    return constantPart(
        b, op.getLoc(), type,
        neutralElement(b, op.getKind(), getElementTypeOrSelf(type)));
  }

  void scanRows(OpBuilder &b, tile::ScanOp op, const TileParts &source,
                int64_t dim, SmallVectorImpl<Value> &results) const {
    const PartLayout &layout = source.getLayout();
    int64_t size = layout.getShape()[dim];
    for (int64_t row = 0; row < layout.getRows(); ++row) {
      SmallVector<int64_t> index = layout.getRowIndex(row);
      if (index[dim] != 0)
        continue;
      for (auto [c, chunk] : llvm::enumerate(layout.getChunks())) {
        Value sum = neutral(b, op, layout.getPartType(chunk));
        for (int64_t step = 0; step < size; ++step) {
          index[dim] = op.getReverse() ? size - 1 - step : step;
          int64_t part = layout.getPart(layout.getRow(index), c);
          Value next = combine(b, op.getLoc(), op.getKind(), sum,
                               source.getParts()[part]);
          results[part] = op.getExclusive() ? sum : next;
          sum = next;
        }
      }
    }
  }

  /// Lane by lane: scans along lanes are rare and short.
  void scanLanes(OpBuilder &b, tile::ScanOp op, const TileParts &source,
                 SmallVectorImpl<Value> &results) const {
    const PartLayout &layout = source.getLayout();
    int64_t width = layout.getWidth();
    for (int64_t row = 0; row < layout.getRows(); ++row) {
      Value sum = neutral(b, op, layout.getElementType());
      SmallVector<Value> lanes(width);
      for (int64_t step = 0; step < width; ++step) {
        int64_t lane = op.getReverse() ? width - 1 - step : step;
        Value element = source.getElement(b, op.getLoc(), row, lane);
        Value next = combine(b, op.getLoc(), op.getKind(), sum, element);
        lanes[lane] = op.getExclusive() ? sum : next;
        sum = next;
      }
      for (auto [c, chunk] : llvm::enumerate(layout.getChunks()))
        results[layout.getPart(row, c)] =
            layout.isScalar()
                ? lanes.front()
                : packElements(b, op.getLoc(), layout, chunk,
                               ArrayRef(lanes).slice(chunk.start, chunk.valid));
    }
  }
};

} // namespace

void tilewright::populateReducePatterns(const TilePartsConverter &converter,
                                        RewritePatternSet &patterns) {
  patterns.add<ReducePattern, ScanPattern>(converter, patterns.getContext());
}

//===- Transpose.cpp - transposition of tiles in registers ----------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToVector/TileParts.h"

using namespace mlir;
using namespace tilewright;

void tilewright::transposeSquare(OpBuilder &b, Location loc,
                                 SmallVectorImpl<Value> &rows) {
  auto n = static_cast<int64_t>(rows.size());
  // A butterfly: step `s` swaps the off-diagonal s x s blocks.
  for (int64_t s = n / 2; s >= 1; s /= 2) {
    SmallVector<int64_t> low, high;
    for (int64_t lane = 0; lane < n; ++lane) {
      bool upper = (lane & s) != 0;
      low.push_back(upper ? n + lane - s : lane);
      high.push_back(upper ? n + lane : lane + s);
    }
    for (int64_t row = 0; row < n; ++row) {
      if (row & s)
        continue;
      Value top = rows[row], bottom = rows[row + s];
      rows[row] = vector::ShuffleOp::create(b, loc, top, bottom, low);
      rows[row + s] = vector::ShuffleOp::create(b, loc, top, bottom, high);
    }
  }
}

namespace {

/// Transposes the plane of (row dimension that becomes lanes) x (lanes that
/// become rows) of a tile, for one index of all other dimensions.
class PlaneTranspose {
public:
  PlaneTranspose(OpBuilder &b, Location loc, const TileParts &source,
                 ArrayRef<int64_t> sourceRows)
      : b(b), loc(loc), source(source), sourceRows(sourceRows) {}

  /// Result part with rows `chunk` of the source as lanes, for each source
  /// lane of [start, start + count).
  SmallVector<Value> run(const Chunk &chunk, int64_t start, int64_t count) {
    int64_t side = std::min<int64_t>(chunk.lanes, llvm::PowerOf2Ceil(count));
    SmallVector<SmallVector<Value>> blocks;
    for (int64_t base = 0; base < chunk.lanes; base += side)
      blocks.push_back(square(chunk, base, start, count, side));
    SmallVector<Value> result;
    for (int64_t lane = 0; lane < std::min(side, count); ++lane) {
      SmallVector<Value> pieces;
      for (auto &block : blocks)
        pieces.push_back(block[lane]);
      result.push_back(concat(pieces));
    }
    return result;
  }

private:
  SmallVector<Value> square(const Chunk &chunk, int64_t base, int64_t start,
                            int64_t count, int64_t side) {
    SmallVector<Value> rows;
    Chunk lanes{0, side, std::min(side, count)};
    for (int64_t i = 0; i < side; ++i) {
      // Rows beyond the tile repeat the last one: those lanes are ragged.
      int64_t row = std::min(base + i, chunk.valid - 1);
      rows.push_back(source.getLanes(b, loc, sourceRows[chunk.start + row],
                                     start, lanes, /*scalar=*/false));
    }
    if (side > 1)
      transposeSquare(b, loc, rows);
    return rows;
  }

  Value concat(ArrayRef<Value> pieces) {
    SmallVector<Value> values(pieces);
    while (values.size() > 1) {
      auto type = cast<VectorType>(values.front().getType());
      auto mask =
          llvm::to_vector(llvm::seq<int64_t>(0, 2 * type.getDimSize(0)));
      SmallVector<Value> next;
      for (size_t i = 0; i < values.size(); i += 2)
        next.push_back(
            vector::ShuffleOp::create(b, loc, values[i], values[i + 1], mask));
      values = std::move(next);
    }
    return values.front();
  }

  OpBuilder &b;
  Location loc;
  const TileParts &source;
  ArrayRef<int64_t> sourceRows;
};

/// Source index (all dimensions) of a result row, last entry 0.
SmallVector<int64_t> sourceIndex(const PartLayout &result, int64_t row,
                                 ArrayRef<int64_t> perm) {
  SmallVector<int64_t> index(perm.size(), 0);
  for (auto [dim, value] : llvm::enumerate(result.getRowIndex(row)))
    index[perm[dim]] = value;
  return index;
}

/// Only rows move.
void permuteRows(const TileParts &source, TileParts &result,
                 ArrayRef<int64_t> perm) {
  for (int64_t row = 0; row < result.getLayout().getRows(); ++row) {
    auto index = sourceIndex(result.getLayout(), row, perm);
    int64_t from = source.getLayout().getRow(index);
    for (size_t c = 0; c < result.getLayout().getChunks().size(); ++c)
      result.getMutableParts().push_back(source.getPart(from, c));
  }
}

/// The lanes move and either side is held as scalars.
void permuteElements(OpBuilder &b, Location loc, const TileParts &source,
                     TileParts &result, ArrayRef<int64_t> perm) {
  const PartLayout &layout = result.getLayout();
  int64_t laneDim = perm.back();
  auto element = [&](SmallVector<int64_t> index, int64_t lane) {
    index[laneDim] = lane;
    return source.getElement(b, loc, source.getLayout().getRow(index),
                             index.back());
  };
  for (int64_t row = 0; row < layout.getRows(); ++row) {
    auto index = sourceIndex(layout, row, perm);
    for (const Chunk &chunk : layout.getChunks()) {
      SmallVector<Value> lanes;
      for (int64_t lane = 0; lane < chunk.valid; ++lane)
        lanes.push_back(element(index, chunk.start + lane));
      result.getMutableParts().push_back(
          layout.isScalar() ? lanes.front()
                            : packElements(b, loc, layout, chunk, lanes));
    }
  }
}

} // namespace

TileParts tilewright::transposeParts(OpBuilder &b, Location loc,
                                     const TileParts &source,
                                     const PartLayout &layout,
                                     ArrayRef<int64_t> perm) {
  TileParts result(layout);
  auto rank = static_cast<int64_t>(perm.size());
  if (perm.empty() || perm.back() == rank - 1) {
    permuteRows(source, result, perm);
    return result;
  }
  if (layout.isScalar() || source.getLayout().isScalar()) {
    permuteElements(b, loc, source, result, perm);
    return result;
  }
  int64_t laneDim = perm.back(); // source dimension that becomes lanes
  int64_t rowDim = std::distance(perm.begin(), llvm::find(perm, rank - 1));
  size_t chunks = layout.getChunks().size();
  result.getMutableParts().resize(layout.getNumParts());
  for (int64_t row = 0; row < layout.getRows(); ++row) {
    SmallVector<int64_t> resultIndex = layout.getRowIndex(row);
    if (resultIndex[rowDim] != 0)
      continue; // one plane per index of the other dimensions
    auto index = sourceIndex(layout, row, perm);
    SmallVector<int64_t> sourceRows;
    for (int64_t lane = 0; lane < layout.getWidth(); ++lane) {
      index[laneDim] = lane;
      sourceRows.push_back(source.getLayout().getRow(index));
    }
    PlaneTranspose plane(b, loc, source, sourceRows);
    for (size_t c = 0; c < chunks; ++c) {
      const Chunk &chunk = layout.getChunks()[c];
      int64_t width = source.getLayout().getWidth();
      for (int64_t start = 0; start < width;) {
        int64_t count = std::min(chunk.lanes, width - start);
        auto lanes = plane.run(chunk, start, count);
        for (auto [offset, value] : llvm::enumerate(lanes)) {
          resultIndex[rowDim] = start + static_cast<int64_t>(offset);
          result.getMutableParts()[layout.getPart(layout.getRow(resultIndex),
                                                  c)] = value;
        }
        start += static_cast<int64_t>(lanes.size());
      }
    }
  }
  return result;
}

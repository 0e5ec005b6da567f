//===- TileParts.cpp - how a tile is cut into native vectors --------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToVector/TileParts.h"

#include "mlir/Dialect/LLVMIR/LLVMTypes.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tilewright;

PartLayout::PartLayout(ArrayRef<int64_t> shape, Type element,
                       int64_t nativeLanes)
    : shape(shape), element(element) {
  if (!shape.empty()) {
    width = shape.back();
    for (int64_t size : shape.drop_back())
      rows *= size;
  }
  for (int64_t start = 0; start < width; start += nativeLanes) {
    int64_t valid = std::min(nativeLanes, width - start);
    auto lanes = static_cast<int64_t>(llvm::PowerOf2Ceil(valid));
    chunks.push_back({start, lanes, valid});
  }
}

Type PartLayout::getPartType(const Chunk &chunk) const {
  return isScalar() ? element : Type(VectorType::get(chunk.lanes, element));
}

void PartLayout::getPartTypes(SmallVectorImpl<Type> &types) const {
  for (int64_t row = 0; row < rows; ++row)
    for (const Chunk &chunk : chunks)
      types.push_back(getPartType(chunk));
}

SmallVector<int64_t> PartLayout::getRowIndex(int64_t row) const {
  SmallVector<int64_t> index(shape.empty() ? 0 : shape.size() - 1);
  for (int64_t dim = static_cast<int64_t>(index.size()) - 1; dim >= 0; --dim) {
    index[dim] = row % shape[dim];
    row /= shape[dim];
  }
  return index;
}

int64_t PartLayout::getRow(ArrayRef<int64_t> index) const {
  int64_t row = 0;
  for (size_t dim = 0; dim + 1 < shape.size(); ++dim)
    row = row * shape[dim] + index[dim];
  return row;
}

TilePartsConverter::TilePartsConverter(int64_t nativeLanes)
    : nativeLanes(nativeLanes) {
  addConversion([](Type type) -> std::optional<Type> { return type; });
  addConversion(
      [this](tile::TileType type,
             SmallVectorImpl<Type> &types) -> std::optional<LogicalResult> {
        if (auto blocks = MatrixBlocks::of(type))
          types.append(blocks->count(),
                       LLVM::LLVMX86AMXType::get(type.getContext()));
        else
          getLayout(type).getPartTypes(types);
        return success();
      });
  // A token is no value at all.
  addConversion([](tile::TokenType,
                   SmallVectorImpl<Type> &) -> std::optional<LogicalResult> {
    return success();
  });
}

PartLayout TilePartsConverter::getLayout(Type tileType) const {
  auto type = cast<tile::TileType>(tileType);
  if (int64_t group = type.getInterleave()) {
    ArrayRef<int64_t> shape = type.getShape();
    return PartLayout({(shape[0] + group - 1) / group, shape[1] * group},
                      type.getElementType(), nativeLanes * group);
  }
  return PartLayout(type.getShape(), type.getElementType(), nativeLanes);
}

SmallVector<Value> tilewright::singleValues(ArrayRef<ValueRange> operands) {
  return llvm::map_to_vector(operands,
                             [](ValueRange range) { return range.front(); });
}

Value TileParts::getElement(OpBuilder &b, Location loc, int64_t row,
                            int64_t lane) const {
  if (layout.isScalar())
    return getPart(row, 0);
  for (auto [index, chunk] : llvm::enumerate(layout.getChunks()))
    if (lane < chunk.start + chunk.valid)
      return vector::ExtractOp::create(b, loc, getPart(row, index),
                                       lane - chunk.start);
  llvm_unreachable("lane outside of the tile");
}

Value TileParts::getLanes(OpBuilder &b, Location loc, int64_t row,
                          int64_t start, const Chunk &chunk,
                          bool scalar) const {
  if (scalar)
    return getElement(b, loc, row, start);
  ArrayRef<Chunk> chunks = layout.getChunks();
  for (auto [index, source] : llvm::enumerate(chunks)) {
    if (source.start == start && source.lanes == chunk.lanes)
      return getPart(row, index);
    int64_t first = start - source.start;
    if (first < 0 || first >= source.lanes)
      continue;
    bool two = first + chunk.valid > source.lanes;
    if (two && chunks[index + 1].lanes != source.lanes)
      break; // shuffles take two vectors of one type: use elements below
    SmallVector<int64_t> mask;
    for (int64_t lane = 0; lane < chunk.lanes; ++lane)
      mask.push_back(first + std::min(lane, chunk.valid - 1));
    Value left = getPart(row, index);
    Value right = two ? getPart(row, index + 1) : left;
    return vector::ShuffleOp::create(b, loc, left, right, mask);
  }
  SmallVector<Value> elements;
  for (int64_t lane = 0; lane < chunk.valid; ++lane)
    elements.push_back(getElement(b, loc, row, start + lane));
  return packElements(b, loc, layout, chunk, elements);
}

Value tilewright::packElements(OpBuilder &b, Location loc,
                               const PartLayout &layout, const Chunk &chunk,
                               ArrayRef<Value> elements) {
  SmallVector<Value> lanes(elements);
  lanes.resize(chunk.lanes, elements.back());
  auto type = VectorType::get(chunk.lanes, layout.getElementType());
  return vector::FromElementsOp::create(b, loc, type, lanes);
}

Value tilewright::splatTo(OpBuilder &b, Location loc, Type type, Value scalar) {
  if (!isa<VectorType>(type))
    return scalar;
  return vector::BroadcastOp::create(b, loc, type, scalar);
}

Value tilewright::constantPart(OpBuilder &b, Location loc, Type type,
                               TypedAttr scalar) {
  if (auto vector = dyn_cast<VectorType>(type))
    scalar = DenseElementsAttr::get(vector, Attribute(scalar));
  return arith::ConstantOp::create(b, loc, scalar);
}

Value tilewright::raggedMask(OpBuilder &b, Location loc, const Chunk &chunk) {
  SmallVector<bool> lanes(chunk.lanes, false);
  std::fill_n(lanes.begin(), chunk.valid, true);
  auto type = VectorType::get(chunk.lanes, b.getI1Type());
  return arith::ConstantOp::create(b, loc, DenseElementsAttr::get(type, lanes));
}

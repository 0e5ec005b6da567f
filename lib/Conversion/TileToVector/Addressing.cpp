//===- Addressing.cpp - where the elements of a tile are ------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToVector/Addressing.h"

#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace tilewright;

Value tilewright::indexValue(OpBuilder &b, Location loc, OpFoldResult value) {
  if (auto constant = getConstantIntValue(value))
    return arith::ConstantIndexOp::create(b, loc, *constant);
  return cast<Value>(value);
}

OpFoldResult tilewright::addIndex(OpBuilder &b, Location loc, OpFoldResult x,
                                  OpFoldResult y) {
  auto cx = getConstantIntValue(x), cy = getConstantIntValue(y);
  if (cx && cy)
    return b.getIndexAttr(*cx + *cy);
  if (cx == 0)
    return y;
  if (cy == 0)
    return x;
  return arith::AddIOp::create(b, loc, indexValue(b, loc, x),
                               indexValue(b, loc, y))
      .getResult();
}

OpFoldResult tilewright::mulIndex(OpBuilder &b, Location loc, OpFoldResult x,
                                  OpFoldResult y) {
  auto cx = getConstantIntValue(x), cy = getConstantIntValue(y);
  if (cx && cy)
    return b.getIndexAttr(*cx * *cy);
  if (cx == 0 || cy == 0)
    return b.getIndexAttr(0);
  if (cx == 1)
    return y;
  if (cy == 1)
    return x;
  return arith::MulIOp::create(b, loc, indexValue(b, loc, x),
                               indexValue(b, loc, y))
      .getResult();
}

VectorAddress::VectorAddress(OpBuilder &b, Location loc, const AccessDesc &desc,
                             const PartLayout &layout)
    : b(b), loc(loc), desc(desc), layout(layout) {
  flatten();
  for (auto [dim, step] : llvm::zip_equal(desc.dims, desc.steps))
    strides.push_back(
        mulIndex(b, loc, memrefStride[dim], b.getIndexAttr(step)));
}

Type VectorAddress::getStorageType() const {
  return cast<MemRefType>(buffer.getType()).getElementType();
}

/// Elements between the first and the last of a memref, if constant.
static int64_t getExtent(MemRefType type, int64_t offset,
                         ArrayRef<int64_t> strides) {
  if (!type.hasStaticShape() || ShapedType::isDynamic(offset) ||
      llvm::any_of(strides, ShapedType::isDynamic))
    return ShapedType::kDynamic;
  int64_t extent = offset + 1;
  for (auto [size, stride] : llvm::zip_equal(type.getShape(), strides))
    extent += (size - 1) * stride;
  return std::max<int64_t>(extent, 1);
}

/// A flat view of bools as the bytes that hold them: a vector<16xi1> in memory
/// would be 2 bytes to LLVM, while a memref of i1 has one byte per element.
static Value viewAsBytes(OpBuilder &b, Location loc, Value flat) {
  auto type = cast<MemRefType>(flat.getType());
  auto bytes = MemRefType::get(type.getShape(), b.getI8Type());
  LLVMTypeConverter converter(b.getContext());
  Type descriptor = converter.convertType(bytes);
  Value raw =
      UnrealizedConversionCastOp::create(b, loc, descriptor, flat).getResult(0);
  return UnrealizedConversionCastOp::create(b, loc, bytes, raw).getResult(0);
}

/// Takes the constant off an offset and returns what is left of it.
static OpFoldResult withoutConstant(OpBuilder &b, Location loc, Value offset,
                                    int64_t &constant) {
  auto apply = offset.getDefiningOp<affine::AffineApplyOp>();
  if (!apply)
    return getAsOpFoldResult(offset);
  auto sum = dyn_cast<AffineBinaryOpExpr>(apply.getMap().getResult(0));
  if (!sum || sum.getKind() != AffineExprKind::Add)
    return getAsOpFoldResult(offset);
  auto added = dyn_cast<AffineConstantExpr>(sum.getRHS());
  if (!added)
    return getAsOpFoldResult(offset);
  constant = added.getValue();
  AffineMap map = apply.getMap();
  AffineMap rest =
      AffineMap::get(map.getNumDims(), map.getNumSymbols(), sum.getLHS());
  return affine::makeComposedFoldedAffineApply(
      b, loc, rest, getAsOpFoldResult(apply.getMapOperands()));
}

void VectorAddress::flatten() {
  auto type = cast<MemRefType>(desc.memref.getType());
  auto metadata = memref::ExtractStridedMetadataOp::create(b, loc, desc.memref);
  auto [typeStrides, typeOffset] = type.getStridesAndOffset();
  auto pick = [&](int64_t constant, Value dynamic) -> OpFoldResult {
    if (ShapedType::isDynamic(constant))
      return dynamic;
    return b.getIndexAttr(constant);
  };
  origin = pick(typeOffset, metadata.getOffset());
  for (auto [dim, stride] : llvm::enumerate(typeStrides)) {
    memrefStride.push_back(pick(stride, metadata.getStrides()[dim]));
    OpFoldResult offset = getAsOpFoldResult(desc.offsets[dim]);
    if (!ShapedType::isDynamic(stride) && isa<Value>(offset)) {
      // Loads at neighbouring places become loads of one base that differ by
      // constants: where windows overlap, CSE sees which are equal.
      int64_t constant = 0;
      offset = withoutConstant(b, loc, desc.offsets[dim], constant);
      displacement += constant * stride;
    }
    origin =
        addIndex(b, loc, origin, mulIndex(b, loc, offset, memrefStride.back()));
  }
  int64_t extent = getExtent(type, typeOffset, typeStrides);
  OpFoldResult size = b.getIndexAttr(extent);
  if (ShapedType::isDynamic(extent))
    size = arith::ConstantIndexOp::create(b, loc,
                                          std::numeric_limits<int64_t>::max())
               .getResult();
  auto flatType =
      MemRefType::get({extent}, type.getElementType(),
                      MemRefLayoutAttrInterface(), type.getMemorySpace());
  buffer = memref::ReinterpretCastOp::create(
      b, loc, flatType, metadata.getBaseBuffer(), b.getIndexAttr(0),
      ArrayRef<OpFoldResult>{size}, ArrayRef<OpFoldResult>{b.getIndexAttr(1)});
  if (type.getElementType().isInteger(1))
    buffer = viewAsBytes(b, loc, buffer);
}

std::optional<int64_t> VectorAddress::getStaticStride(int64_t dim) const {
  return getConstantIntValue(strides[dim]);
}

bool VectorAddress::isContiguous(int64_t dim) const {
  return !hasIndicesAlong(dim) && getStaticStride(dim) == 1;
}

/// Flat index of a row: the index list along a row dimension takes part.
Value VectorAddress::getRowStart(int64_t row) {
  // Constant parts are added last, so that rows differ by a displacement only.
  int64_t constant = displacement;
  OpFoldResult index = origin;
  for (auto [dim, position] : llvm::enumerate(layout.getRowIndex(row))) {
    if (hasIndicesAlong(dim)) {
      Value listed = desc.indices->getElement(b, loc, 0, position);
      if (!listed.getType().isIndex())
        listed = arith::IndexCastOp::create(b, loc, b.getIndexType(), listed);
      index = addIndex(b, loc, index, mulIndex(b, loc, listed, strides[dim]));
      continue;
    }
    if (auto stride = getStaticStride(dim))
      constant += *stride * position;
    else
      index =
          addIndex(b, loc, index,
                   mulIndex(b, loc, strides[dim], b.getIndexAttr(position)));
  }
  return indexValue(b, loc, addIndex(b, loc, index, b.getIndexAttr(constant)));
}

Value VectorAddress::getIndex(int64_t row, int64_t lane) {
  OpFoldResult index = getRowStart(row);
  if (layout.getShape().empty())
    return indexValue(b, loc, index);
  OpFoldResult position = b.getIndexAttr(lane);
  if (hasIndicesAlong(getLaneDim())) {
    Value listed = desc.indices->getElement(b, loc, 0, lane);
    if (!listed.getType().isIndex())
      listed = arith::IndexCastOp::create(b, loc, b.getIndexType(), listed);
    position = listed;
  }
  return indexValue(
      b, loc,
      addIndex(b, loc, index,
               mulIndex(b, loc, position, strides[getLaneDim()])));
}

Value VectorAddress::getLaneOffsets(const Chunk &chunk) {
  int64_t dim = getLaneDim();
  auto stride = getStaticStride(dim);
  auto indexType = VectorType::get(chunk.lanes, b.getIndexType());
  if (hasIndicesAlong(dim)) {
    Value listed = desc.indices->getLanes(b, loc, 0, chunk.start, chunk,
                                          /*scalar=*/false);
    if (!getElementTypeOrSelf(listed.getType()).isIndex())
      listed = arith::IndexCastOp::create(b, loc, indexType, listed);
    if (stride == 1)
      return listed;
    Value factor = vector::BroadcastOp::create(
        b, loc, indexType, indexValue(b, loc, strides[dim]));
    return arith::MulIOp::create(b, loc, listed, factor);
  }
  if (stride && std::abs(*stride * layout.getWidth()) < (int64_t(1) << 31)) {
    SmallVector<int32_t> offsets;
    for (int64_t lane = 0; lane < chunk.lanes; ++lane)
      offsets.push_back(static_cast<int32_t>((chunk.start + lane) * *stride));
    auto type = VectorType::get(chunk.lanes, b.getI32Type());
    return arith::ConstantOp::create(
        b, loc, DenseElementsAttr::get(type, ArrayRef<int32_t>(offsets)));
  }
  SmallVector<Attribute> lanes;
  for (int64_t lane = 0; lane < chunk.lanes; ++lane)
    lanes.push_back(b.getIndexAttr(chunk.start + lane));
  Value positions = arith::ConstantOp::create(
      b, loc, DenseElementsAttr::get(indexType, lanes));
  Value factor = vector::BroadcastOp::create(b, loc, indexType,
                                             indexValue(b, loc, strides[dim]));
  return arith::MulIOp::create(b, loc, positions, factor);
}

OpFoldResult VectorAddress::getValid(int64_t dim) const {
  return desc.valid.empty() ? OpFoldResult()
                            : getAsOpFoldResult(desc.valid[dim]);
}

Mask VectorAddress::getRowMask(int64_t row) {
  Value all;
  for (auto [dim, position] : llvm::enumerate(layout.getRowIndex(row))) {
    OpFoldResult valid = getValid(dim);
    if (!valid)
      continue;
    if (auto constant = getConstantIntValue(valid)) {
      if (position >= *constant)
        return {Mask::None, {}};
      continue;
    }
    Value here = arith::ConstantIndexOp::create(b, loc, position);
    Value ok = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, here,
                                     cast<Value>(valid));
    all = all ? arith::AndIOp::create(b, loc, all, ok).getResult() : ok;
  }
  return all ? Mask{Mask::Some, all} : Mask{Mask::All, {}};
}

Mask VectorAddress::getElementMask(int64_t row, int64_t lane) {
  Mask mask = getRowMask(row);
  OpFoldResult valid =
      layout.getShape().empty() ? OpFoldResult() : getValid(getLaneDim());
  if (mask.kind == Mask::None || !valid)
    return mask;
  if (auto constant = getConstantIntValue(valid))
    return lane < *constant ? mask : Mask{Mask::None, {}};
  Value here = arith::ConstantIndexOp::create(b, loc, lane);
  Value ok = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, here,
                                   cast<Value>(valid));
  if (mask.kind == Mask::Some)
    ok = arith::AndIOp::create(b, loc, mask.value, ok);
  return {Mask::Some, ok};
}

Mask VectorAddress::getMask(int64_t row, const Chunk &chunk) {
  if (layout.isScalar())
    return getElementMask(row, chunk.start);
  Mask rowMask = getRowMask(row);
  if (rowMask.kind == Mask::None)
    return rowMask;
  OpFoldResult count = b.getIndexAttr(chunk.valid);
  if (OpFoldResult valid = getValid(getLaneDim())) {
    if (auto constant = getConstantIntValue(valid)) {
      count = b.getIndexAttr(
          std::clamp<int64_t>(*constant - chunk.start, 0, chunk.valid));
    } else {
      OpFoldResult rest = addIndex(b, loc, valid, b.getIndexAttr(-chunk.start));
      // create_mask clamps to the vector, not to the tile.
      count = chunk.isRagged()
                  ? arith::MinSIOp::create(b, loc, indexValue(b, loc, rest),
                                           indexValue(b, loc, count))
                        .getResult()
                  : rest;
    }
  }
  auto constant = getConstantIntValue(count);
  if (constant == 0)
    return {Mask::None, {}};
  if (constant && rowMask.kind == Mask::All) {
    if (*constant == chunk.lanes)
      return {Mask::All, {}};
    return {Mask::Some, raggedMask(b, loc, {0, chunk.lanes, *constant})};
  }
  Value lanes = indexValue(b, loc, count);
  if (rowMask.kind == Mask::Some) {
    Value none = arith::ConstantIndexOp::create(b, loc, 0);
    lanes = arith::SelectOp::create(b, loc, rowMask.value, lanes, none);
  }
  auto type = VectorType::get(chunk.lanes, b.getI1Type());
  return {Mask::Some, vector::CreateMaskOp::create(b, loc, type, lanes)};
}

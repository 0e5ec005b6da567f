//===- SharedPlaces.cpp - places in shared memory -===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/AsyncToGPU/SharedPlaces.h"
#include "dialects/Tile/TileDecisions.h"

#include "dialects/Tile/Elements.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace tilewright {

namespace {

/// Whether a layout is none, a swizzle of whole rows, or panels of its span.
bool isPanels(tile::LayoutAttr layout, MemRefType type) {
  if (!layout || layout.isIdentity())
    return true;
  int64_t rank = type.getRank();
  if (layout.getInterleave() || layout.getStorage() || rank < 2 ||
      !hasWholeBytes(type.getElementType()))
    return false;
  int64_t bytes = bytesOfElement(type.getElementType());
  int64_t row = type.getShape().back() * bytes;
  if (layout.getInner().empty())
    return layout.getPerm().empty() && layout.getSwizzle() == row;
  SmallVector<int64_t> perm{0, rank - 1};
  llvm::append_range(perm, llvm::seq<int64_t>(1, rank - 1));
  return layout.getPerm() == ArrayRef(perm) &&
         layout.getInner() == ArrayRef<int64_t>{rank - 1} &&
         layout.getTiles() == ArrayRef<int64_t>{layout.getSwizzle() / bytes} &&
         row % layout.getSwizzle() == 0;
}

std::optional<SharedPlace> wholeBuffer(OpBuilder &b, Value memref) {
  Operation *op = memref.getDefiningOp();
  auto type = cast<MemRefType>(memref.getType());
  if (!op || !type.hasStaticShape() || !type.getLayout().isIdentity())
    return std::nullopt;
  SharedPlace place{memref, {}, {}, {}};
  if (auto layouts = tile::decisions::kLayouts.get(op))
    if (!layouts.empty())
      place.layout = dyn_cast<tile::LayoutAttr>(layouts[0]);
  if (!isPanels(place.layout, type))
    return std::nullopt;
  place.offsets.assign(type.getRank(), b.getIndexAttr(0));
  place.dims = llvm::to_vector(llvm::seq<int64_t>(0, type.getRank()));
  return place;
}

OpFoldResult sumOf(OpBuilder &b, Location loc, OpFoldResult x, OpFoldResult y) {
  auto known = getConstantIntValue(x), more = getConstantIntValue(y);
  if (known && more)
    return b.getIndexAttr(*known + *more);
  if (known == 0)
    return y;
  if (more == 0)
    return x;
  auto valueOf = [&](OpFoldResult part) -> Value {
    if (auto value = dyn_cast<Value>(part))
      return value;
    return arith::ConstantIndexOp::create(b, loc, *getConstantIntValue(part));
  };
  return arith::AddIOp::create(b, loc, valueOf(x), valueOf(y)).getResult();
}

/// A part whose rows are seen as places of several dimensions: the same part.
std::optional<SharedPlace> placeOfRows(OpBuilder &b,
                                       memref::ExpandShapeOp rows) {
  std::optional<SharedPlace> place = findSharedPlace(b, rows.getSrc());
  if (!place)
    return std::nullopt;
  SmallVector<int64_t> dims;
  for (auto [dim, group] : llvm::enumerate(rows.getReassociationIndices()))
    dims.append(group.size(), place->dims[dim]);
  place->dims = dims;
  return place;
}

} // namespace

bool isShared(Type type) {
  auto memref = dyn_cast<MemRefType>(type);
  if (!memref || !memref.getMemorySpace())
    return false;
  if (auto level = dyn_cast<tile::LevelAttr>(memref.getMemorySpace()))
    return level.getName() == "shared";
  return gpu::GPUDialect::hasWorkgroupMemoryAddressSpace(memref);
}

MemRefType SharedPlace::getType() const {
  return cast<MemRefType>(base.getType());
}

int64_t SharedPlace::getElementBytes() const {
  return bytesOfElement(getType().getElementType());
}

int64_t SharedPlace::getRowBytes() const {
  return getType().getShape().back() * getElementBytes();
}

int64_t SharedPlace::getSpan() const {
  return getSwizzle() ? getSwizzle() : getRowBytes();
}

int64_t SharedPlace::getSlotRows() const {
  int64_t rows = 1;
  for (int64_t size : getType().getShape().drop_front().drop_back())
    rows *= size;
  return rows;
}

bool SharedPlace::isSlot(MemRefType part) const {
  if (offsets.size() < 2 ||
      llvm::any_of(ArrayRef(offsets).drop_front(), [](OpFoldResult offset) {
        return getConstantIntValue(offset) != 0;
      }))
    return false;
  return part.hasStaticShape() &&
         part.getNumElements() * getElementBytes() == getSlotBytes() &&
         part.getShape().back() == getType().getShape().back();
}

std::optional<SharedPlace> findSharedPlace(OpBuilder &b, Value memref) {
  if (!isShared(memref.getType()))
    return std::nullopt;
  if (auto cast = memref.getDefiningOp<memref::CastOp>())
    return findSharedPlace(b, cast.getSource());
  if (auto rows = memref.getDefiningOp<memref::ExpandShapeOp>())
    return placeOfRows(b, rows);
  auto view = memref.getDefiningOp<memref::SubViewOp>();
  if (!view)
    return wholeBuffer(b, memref);
  if (view.getSource().getDefiningOp<memref::ExpandShapeOp>())
    return std::nullopt;
  std::optional<SharedPlace> place = findSharedPlace(b, view.getSource());
  if (!place || llvm::any_of(view.getMixedStrides(), [](OpFoldResult stride) {
        return getConstantIntValue(stride) != 1;
      }))
    return std::nullopt;
  llvm::SmallBitVector dropped = view.getDroppedDims();
  SmallVector<int64_t> dims;
  for (auto [dim, offset] : llvm::enumerate(view.getMixedOffsets())) {
    OpFoldResult &whole = place->offsets[place->dims[dim]];
    whole = sumOf(b, view.getLoc(), whole, offset);
    if (!dropped[dim])
      dims.push_back(place->dims[dim]);
  }
  place->dims = dims;
  return place;
}

Value sharedPointer(OpBuilder &b, Location loc, Value memref) {
  Value address =
      memref::ExtractAlignedPointerAsIndexOp::create(b, loc, memref);
  Value bits = arith::IndexCastOp::create(b, loc, b.getI64Type(), address);
  auto type = LLVM::LLVMPointerType::get(
      b.getContext(), static_cast<unsigned>(NVVM::NVVMMemorySpace::Shared));
  return LLVM::IntToPtrOp::create(b, loc, type, bits);
}

Value offsetPointer(OpBuilder &b, Location loc, Value pointer, Value bytes) {
  return LLVM::GEPOp::create(b, loc, pointer.getType(), b.getI8Type(), pointer,
                             ArrayRef<LLVM::GEPArg>{bytes});
}

Value offsetPointer(OpBuilder &b, Location loc, Value pointer, int64_t bytes) {
  if (bytes == 0)
    return pointer;
  return LLVM::GEPOp::create(
      b, loc, pointer.getType(), b.getI8Type(), pointer,
      ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(bytes)});
}

Value makeI32(OpBuilder &b, Location loc, int64_t value) {
  return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(value));
}

} // namespace tilewright

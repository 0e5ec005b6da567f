//===- MemoryAccess.cpp - elements of a tile in memory --------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToGPU/MemoryAccess.h"

using namespace mlir;
using namespace tilewright;

Type tilewright::getMemoryType(Type element) {
  if (element.isIndex())
    return IntegerType::get(element.getContext(), 64);
  if (element.getIntOrFloatBitWidth() <= 8)
    return IntegerType::get(element.getContext(), 8);
  return element;
}

Value tilewright::toMemory(OpBuilder &b, Location loc, Value value) {
  Type type = value.getType(), stored = getMemoryType(type);
  if (type == stored)
    return value;
  if (type.isIndex())
    return arith::IndexCastOp::create(b, loc, stored, value);
  if (isa<FloatType>(type)) {
    Type bits = b.getIntegerType(type.getIntOrFloatBitWidth());
    value = arith::BitcastOp::create(b, loc, bits, value);
    if (bits == stored)
      return value;
  }
  return arith::ExtUIOp::create(b, loc, stored, value);
}

Value tilewright::fromMemory(OpBuilder &b, Location loc, Value value,
                             Type element) {
  if (value.getType() == element)
    return value;
  if (element.isIndex())
    return arith::IndexCastOp::create(b, loc, element, value);
  if (element.isInteger(1))
    return arith::CmpIOp::create(
        b, loc, arith::CmpIPredicate::ne, value,
        arith::ConstantOp::create(b, loc, b.getI8IntegerAttr(0)));
  Type bits = b.getIntegerType(element.getIntOrFloatBitWidth());
  if (bits != value.getType())
    value = arith::TruncIOp::create(b, loc, bits, value);
  if (bits == element)
    return value;
  return arith::BitcastOp::create(b, loc, element, value);
}

Value tilewright::getBufferStart(OpBuilder &b, Location loc, Value memref) {
  auto type = cast<MemRefType>(memref.getType());
  unsigned space = 0;
  if (auto named =
          dyn_cast_or_null<gpu::AddressSpaceAttr>(type.getMemorySpace()))
    space = named.getValue() == gpu::AddressSpace::Workgroup ? 3 : 1;
  Value address =
      memref::ExtractAlignedPointerAsIndexOp::create(b, loc, memref);
  Value number = arith::IndexCastOp::create(b, loc, b.getI64Type(), address);
  return LLVM::IntToPtrOp::create(
      b, loc, LLVM::LLVMPointerType::get(b.getContext(), space), number);
}

Value tilewright::getBufferOffset(OpBuilder &b, Location loc, Value memref) {
  auto type = cast<MemRefType>(memref.getType());
  SmallVector<int64_t> strides;
  int64_t offset = 0;
  if (succeeded(type.getStridesAndOffset(strides, offset)) &&
      !ShapedType::isDynamic(offset))
    return constantIndex(b, loc, offset);
  return memref::ExtractStridedMetadataOp::create(b, loc, memref).getOffset();
}

Value tilewright::getPointerTo(OpBuilder &b, Location loc, Value memref) {
  auto type = cast<MemRefType>(memref.getType());
  Value distance = arith::MulIOp::create(
      b, loc, getBufferOffset(b, loc, memref),
      constantIndex(b, loc, bytesOfElement(type.getElementType())));
  return movePointer(
      b, loc, getBufferStart(b, loc, memref),
      arith::IndexCastOp::create(b, loc, b.getI64Type(), distance));
}

Value tilewright::movePointer(OpBuilder &b, Location loc, Value pointer,
                              Value bytes) {
  return LLVM::GEPOp::create(b, loc, pointer.getType(), b.getI8Type(), pointer,
                             ArrayRef<LLVM::GEPArg>{bytes});
}

Value tilewright::movePointer(OpBuilder &b, Location loc, Value pointer,
                              int64_t bytes) {
  if (bytes == 0)
    return pointer;
  return LLVM::GEPOp::create(
      b, loc, pointer.getType(), b.getI8Type(), pointer,
      ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(bytes)});
}

namespace {
/// i32 arithmetic with constants.
struct Numbers {
  OpBuilder &b;
  Location loc;

  Value add(Value x, Value y) { return arith::AddIOp::create(b, loc, x, y); }
  Value mul(Value x, int64_t y) {
    return arith::MulIOp::create(b, loc, x, constantI32(b, loc, y));
  }
  Value div(Value x, int64_t y) {
    return arith::DivUIOp::create(b, loc, x, constantI32(b, loc, y));
  }
  Value rem(Value x, int64_t y) {
    return arith::RemUIOp::create(b, loc, x, constantI32(b, loc, y));
  }
};
} // namespace

Value Arrangement::place(OpBuilder &b, Location loc, Value number,
                         int64_t bytes) const {
  Numbers n{b, loc};
  if (panel) {
    Value column = n.rem(number, columns), line = n.div(number, columns);
    Value row = n.rem(line, rows), slot = n.div(line, rows);
    number = n.add(n.mul(slot, rows * columns), n.rem(column, panel));
    number = n.add(number, n.mul(n.div(column, panel), rows * panel));
    number = n.add(number, n.mul(row, panel));
  }
  Value place = n.mul(number, bytes);
  if (!swizzle)
    return place;
  // Chunks of 16 bytes change places within the span as the hardware's do
  // (PTX ISA, "Tensor swizzling modes"): address bits from 4 on, by exclusive
  // or with bits from 7 on.
  Value line = arith::ShRUIOp::create(b, loc, place, constantI32(b, loc, 3));
  Value chunk =
      arith::AndIOp::create(b, loc, line, constantI32(b, loc, swizzle - 16));
  return arith::XOrIOp::create(b, loc, place, chunk);
}

TileAddress::TileAddress(OpBuilder &b, Location loc, const AccessShape &access,
                         Value memref, ThreadView &view, ValueRange offsets,
                         ValueRange indices)
    : b(b), loc(loc), access(access), view(view), indices(indices),
      arrangement(Arrangement::of(access.memref)) {
  auto type = cast<MemRefType>(memref.getType());
  bytes = bytesOfElement(type.getElementType());
  int64_t unused = 0;
  if (failed(type.getStridesAndOffset(strides, unused)) ||
      llvm::is_contained(strides, ShapedType::kDynamic)) {
    auto metadata = memref::ExtractStridedMetadataOp::create(b, loc, memref);
    dynamicStrides.assign(metadata.getStrides().begin(),
                          metadata.getStrides().end());
    strides.resize(dynamicStrides.size(), ShapedType::kDynamic);
  }
  if (arrangement) {
    base = getBufferStart(b, loc, memref);
    number = arith::IndexCastOp::create(b, loc, b.getI32Type(),
                                        getBufferOffset(b, loc, memref));
  } else {
    base = getPointerTo(b, loc, memref);
  }
  Type wide = arrangement ? b.getI32Type() : b.getI64Type();
  for (auto [dim, offset] : llvm::enumerate(offsets))
    add(distance(static_cast<int64_t>(dim),
                 arith::IndexCastOp::create(b, loc, wide, offset), 1));
  for (auto [dim, memrefDim] : llvm::enumerate(access.dims))
    if (static_cast<int64_t>(dim) != access.along)
      add(distance(memrefDim, view.getThreadPart(static_cast<int64_t>(dim)),
                   access.steps[dim]));
}

void TileAddress::add(Value distance) {
  if (arrangement)
    number = arith::AddIOp::create(b, loc, number, distance);
  else
    base = movePointer(b, loc, base, distance);
}

std::optional<int64_t> TileAddress::staticStride(int64_t dim) const {
  if (ShapedType::isDynamic(strides[dim]))
    return std::nullopt;
  return strides[dim];
}

/// Bytes (elements, in an arranged buffer) of `coordinate` steps along a
/// memref's dimension. A product of a thread's part and a known stride stays
/// in 32 bits where it fits.
Value TileAddress::distance(int64_t dim, Value coordinate, int64_t step) {
  std::optional<int64_t> known = staticStride(dim);
  int64_t unit = arrangement ? step : step * bytes;
  bool fits = arrangement || (known && std::abs(*known * unit) < (1 << 20));
  Type type = coordinate.getType();
  if (!fits && type != b.getI64Type()) {
    type = b.getI64Type();
    coordinate = arith::ExtSIOp::create(b, loc, type, coordinate);
  }
  if (known) {
    Value factor = arith::ConstantOp::create(
        b, loc, b.getIntegerAttr(type, *known * unit));
    return arith::MulIOp::create(b, loc, coordinate, factor);
  }
  Value stride = arith::IndexCastOp::create(b, loc, type, dynamicStrides[dim]);
  Value factor =
      arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, unit));
  Value scaled = arith::MulIOp::create(b, loc, stride, factor);
  return arith::MulIOp::create(b, loc, coordinate, scaled);
}

Value TileAddress::getPointer(int64_t registerNumber) {
  Value before = base, beforeNumber = number;
  Type wide = arrangement ? b.getI32Type() : b.getI64Type();
  int64_t constant = 0;
  for (auto [index, coordinate] :
       llvm::enumerate(view.getLayout().getRegister(registerNumber))) {
    auto dim = static_cast<int64_t>(index);
    int64_t memrefDim = access.dims[dim];
    if (dim == access.along || coordinate == 0)
      continue;
    if (auto known = staticStride(memrefDim))
      constant += *known * access.steps[dim] * coordinate;
    else
      add(distance(
          memrefDim,
          arith::ConstantOp::create(b, loc, b.getIntegerAttr(wide, coordinate)),
          access.steps[dim]));
  }
  if (access.along >= 0) {
    Value index = indices[registerNumber];
    if (index.getType().isIndex())
      index = arith::IndexCastOp::create(b, loc, wide, index);
    else if (index.getType().getIntOrFloatBitWidth() <
             wide.getIntOrFloatBitWidth())
      index = arith::ExtSIOp::create(b, loc, wide, index);
    else if (index.getType() != wide)
      index = arith::TruncIOp::create(b, loc, wide, index);
    add(distance(access.dims[access.along], index, 1));
  }
  Value result;
  if (arrangement) {
    Value place =
        arith::AddIOp::create(b, loc, number, constantI32(b, loc, constant));
    result =
        movePointer(b, loc, base, arrangement->place(b, loc, place, bytes));
  } else {
    result = movePointer(b, loc, base, constant * bytes);
  }
  base = before;
  number = beforeNumber;
  return result;
}

Value tilewright::loadRaw(OpBuilder &b, Location loc, Value pointer,
                          Type element, int64_t count) {
  Type type = getMemoryType(element);
  if (count > 1)
    type = VectorType::get(count, type);
  auto alignment = static_cast<unsigned>(count * bytesOfElement(element));
  return LLVM::LoadOp::create(b, loc, type, pointer, alignment);
}

void tilewright::storeRaw(OpBuilder &b, Location loc, Value pointer,
                          Value raw) {
  int64_t bytes = bytesOfElement(getElementTypeOrSelf(raw.getType()));
  if (auto vector = dyn_cast<VectorType>(raw.getType()))
    bytes *= vector.getNumElements();
  LLVM::StoreOp::create(b, loc, raw, pointer, static_cast<unsigned>(bytes));
}

Value tilewright::packRaw(OpBuilder &b, Location loc, ValueRange values) {
  if (values.size() == 1)
    return toMemory(b, loc, values.front());
  auto type = VectorType::get(static_cast<int64_t>(values.size()),
                              getMemoryType(values.front().getType()));
  Value vector = LLVM::UndefOp::create(b, loc, type);
  for (auto [i, value] : llvm::enumerate(values))
    vector = LLVM::InsertElementOp::create(
        b, loc, vector, toMemory(b, loc, value),
        constantI32(b, loc, static_cast<int64_t>(i)));
  return vector;
}

SmallVector<Value> tilewright::unpackRaw(OpBuilder &b, Location loc, Value raw,
                                         Type element) {
  auto type = dyn_cast<VectorType>(raw.getType());
  if (!type)
    return {fromMemory(b, loc, raw, element)};
  SmallVector<Value> values;
  for (int64_t i = 0; i < type.getNumElements(); ++i) {
    Value value =
        LLVM::ExtractElementOp::create(b, loc, raw, constantI32(b, loc, i));
    values.push_back(fromMemory(b, loc, value, element));
  }
  return values;
}

SmallVector<SmallVector<int64_t>>
tilewright::groupRegisters(const LinearLayout &layout, int64_t dim,
                           int64_t count) {
  SmallVector<int64_t> low; // register bits inside a group, lowest first
  for (int64_t bit = 0; (int64_t(1) << bit) < count; ++bit)
    low.push_back(*layout.findRegister({dim, bit}));
  auto inside = [&](int64_t number) {
    return llvm::any_of(low, [&](int64_t bit) { return number >> bit & 1; });
  };
  SmallVector<SmallVector<int64_t>> groups;
  for (int64_t first = 0; first < layout.getNumRegisters(); ++first) {
    if (inside(first))
      continue;
    auto &group = groups.emplace_back();
    for (int64_t i = 0; i < count; ++i) {
      int64_t number = first;
      for (auto [position, bit] : llvm::enumerate(low))
        number |= (i >> position & 1) << bit;
      group.push_back(number);
    }
  }
  return groups;
}

void tilewright::guarded(OpBuilder &b, Location loc, Value when,
                         llvm::function_ref<void(OpBuilder &)> body) {
  if (!when)
    return body(b);
  scf::IfOp::create(b, loc, when, [&](OpBuilder &nested, Location) {
    body(nested);
    scf::YieldOp::create(nested, loc);
  });
}

SmallVector<Value>
tilewright::guarded(OpBuilder &b, Location loc, Value when,
                    ValueRange otherwise,
                    llvm::function_ref<SmallVector<Value>(OpBuilder &)> body) {
  if (!when)
    return body(b);
  auto result = scf::IfOp::create(
      b, loc, when,
      [&](OpBuilder &nested, Location) {
        scf::YieldOp::create(nested, loc, body(nested));
      },
      [&](OpBuilder &nested, Location) {
        scf::YieldOp::create(nested, loc, otherwise);
      });
  return SmallVector<Value>(result.getResults());
}

/// Registers that one instruction moves.
static SmallVector<SmallVector<int64_t>> groupFor(const AccessShape &access,
                                                  const LinearLayout &layout) {
  int64_t contiguous = access.getContiguousDim();
  if (contiguous < 0)
    return groupRegisters(layout, -1, 1);
  return groupRegisters(
      layout, contiguous,
      std::min(access.getVectorSize(), layout.getRun(contiguous)));
}

void tilewright::storeTile(OpBuilder &b, Location loc,
                           const AccessShape &access, ThreadView &view,
                           ValueRange values) {
  TileAddress address(b, loc, access, access.memref, view, access.offsets, {});
  Value owner = view.isFirstReplica();
  for (ArrayRef<int64_t> group : groupFor(access, view.getLayout())) {
    if (view.neverExists(group.front()))
      continue;
    Value pointer = address.getPointer(group.front());
    Value when = bothHold(b, loc, owner, view.exists(group.front()));
    guarded(b, loc, when, [&](OpBuilder &nested) {
      auto parts = llvm::map_to_vector(
          group, [&](int64_t number) { return values[number]; });
      storeRaw(nested, loc, pointer, packRaw(nested, loc, parts));
    });
  }
}

SmallVector<Value> tilewright::loadTile(OpBuilder &b, Location loc,
                                        const AccessShape &access,
                                        ThreadView &view, Type element) {
  TileAddress address(b, loc, access, access.memref, view, access.offsets, {});
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(element));
  SmallVector<Value> results(view.getNumRegisters(), zero);
  for (ArrayRef<int64_t> group : groupFor(access, view.getLayout())) {
    if (view.neverExists(group.front()))
      continue;
    Value pointer = address.getPointer(group.front());
    auto count = static_cast<int64_t>(group.size());
    Value pad = packRaw(b, loc, SmallVector<Value>(count, zero));
    Value raw = guarded(b, loc, view.exists(group.front()), ValueRange{pad},
                        [&](OpBuilder &nested) {
                          return SmallVector<Value>{
                              loadRaw(nested, loc, pointer, element, count)};
                        })
                    .front();
    for (auto [number, value] :
         llvm::zip_equal(group, unpackRaw(b, loc, raw, element)))
      results[number] = value;
  }
  return results;
}

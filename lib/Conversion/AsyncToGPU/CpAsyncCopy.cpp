//===- CpAsyncCopy.cpp - a copy by the threads of a block -===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/AsyncToGPU/CpAsyncCopy.h"
#include "lib/Analysis/Divisors.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <numeric>

using namespace mlir;

namespace tilewright {

namespace {

/// What starts of rows in the source are multiples of, in bytes, at most 16.
int64_t alignmentOf(tile::CopyOp copy, int64_t bytes) {
  auto type = cast<MemRefType>(copy.getSrc().getType());
  auto view = copy.getSrc().getDefiningOp<memref::SubViewOp>();
  SmallVector<int64_t> strides;
  int64_t offset, known = 16;
  if (failed(type.getStridesAndOffset(strides, offset)) || strides.back() != 1)
    return 1;
  // Open strides of a view are those of what it is a view of.
  bool plain = view && view.hasUnitStride();
  MemRefType rows = plain ? view.getSourceType() : type;
  auto dropped = view ? view.getDroppedDims() : llvm::SmallBitVector();
  for (auto [dim, factor] :
       llvm::enumerate(ArrayRef(getStrideFactors(rows)).drop_back()))
    if (!plain || !dropped[dim])
      known = std::gcd(known, factor * bytes);
  if (isa<BlockArgument>(copy.getSrc()) && type.getLayout().isIdentity())
    return known; // a whole argument, which starts at a multiple of 16 bytes
  if (!view)
    return 1;
  auto source = cast<MemRefType>(view.getSource().getType());
  if (failed(source.getStridesAndOffset(strides, offset)))
    return 1;
  for (auto [factor, start] :
       llvm::zip_equal(getStrideFactors(source), view.getMixedOffsets())) {
    auto value = dyn_cast<Value>(start);
    int64_t divisor =
        value ? getDivisor(value) : getDivisor(*getConstantIntValue(start));
    known = std::gcd(known, divisor * factor * bytes);
  }
  return known;
}

class CpAsyncCopy {
public:
  CpAsyncCopy(OpBuilder &b, tile::CopyOp copy, const SharedPlace &place,
              int64_t chunk, int64_t threads)
      : b(b), loc(copy.getLoc()), copy(copy), place(place), chunk(chunk),
        threads(threads), perRow(place.getRowBytes() / chunk) {}

  void run() {
    readSource();
    Value buffer = sharedPointer(b, loc, place.base);
    Value slot = arith::IndexCastOp::create(b, loc, b.getI32Type(),
                                            valueOf(place.offsets.front()));
    start = multiply(slot, place.getSlotBytes());
    Value id = gpu::ThreadIdOp::create(b, loc, gpu::Dimension::x);
    thread = arith::IndexCastUIOp::create(b, loc, b.getI32Type(), id);
    int64_t total = place.getSlotRows() * perRow;
    for (int64_t first = 0; first < total; first += threads) {
      OpBuilder::InsertionGuard guard(b);
      if (first + threads > total)
        guardChunk(first, total);
      auto [row, column] = chunkOf(first);
      Value from = sourceOf(row, column);
      Value to = offsetPointer(b, loc, buffer, targetOf(row, column));
      NVVM::CpAsyncOp::create(b, loc, to, from, chunk,
                              chunk == 16 ? NVVM::LoadCacheModifierKind::CG
                                          : NVVM::LoadCacheModifierKind::CA,
                              validBytes(row, column));
    }
  }

private:
  Value i32(int64_t value) { return makeI32(b, loc, value); }
  Value add(Value x, Value y) { return arith::AddIOp::create(b, loc, x, y); }
  Value add(Value x, int64_t y) { return y ? add(x, i32(y)) : x; }
  Value multiply(Value x, int64_t y) {
    return arith::MulIOp::create(b, loc, x, i32(y));
  }
  Value divide(Value x, int64_t y) {
    return y == 1 ? x : arith::DivUIOp::create(b, loc, x, i32(y)).getResult();
  }
  Value rest(Value x, int64_t y) {
    return arith::RemUIOp::create(b, loc, x, i32(y));
  }
  Value valueOf(OpFoldResult part) {
    if (auto value = dyn_cast<Value>(part))
      return value;
    return arith::ConstantIndexOp::create(b, loc, *getConstantIntValue(part));
  }
  Value toI64(Value value) {
    if (value.getType().isIndex())
      return arith::IndexCastOp::create(b, loc, b.getI64Type(), value);
    return arith::ExtUIOp::create(b, loc, b.getI64Type(), value);
  }

  void readSource() {
    auto data = memref::ExtractStridedMetadataOp::create(b, loc, copy.getSrc());
    Value address = memref::ExtractAlignedPointerAsIndexOp::create(
        b, loc, data.getBaseBuffer());
    auto type = LLVM::LLVMPointerType::get(
        b.getContext(), static_cast<unsigned>(NVVM::NVVMMemorySpace::Global));
    source = LLVM::IntToPtrOp::create(b, loc, type, toI64(address));
    offset = toI64(valueOf(data.getConstifiedMixedOffset()));
    for (OpFoldResult stride : data.getConstifiedMixedStrides())
      strides.push_back(toI64(valueOf(stride)));
    sizes = data.getConstifiedMixedSizes();
  }

  /// What follows happens in threads that have a chunk left only.
  void guardChunk(int64_t first, int64_t total) {
    Value has = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                      add(thread, first), i32(total));
    auto branch = scf::IfOp::create(b, loc, has, /*withElseRegion=*/false);
    b.setInsertionPointToStart(branch.thenBlock());
  }

  /// Row, and number of the chunk in it, of this thread's chunk.
  std::pair<Value, Value> chunkOf(int64_t first) {
    if (threads % perRow == 0) // the same column for all of a thread's chunks
      return {add(divide(thread, perRow), first / perRow),
              rest(thread, perRow)};
    Value number = add(thread, first);
    return {divide(number, perRow), rest(number, perRow)};
  }

  /// Index of a row in each of the slot's dimensions but the last.
  SmallVector<Value> indicesOf(Value row) {
    ArrayRef<int64_t> shape =
        cast<MemRefType>(copy.getDst().getType()).getShape().drop_back();
    SmallVector<Value> indices(shape.size());
    for (int64_t dim = shape.size() - 1; dim > 0; --dim) {
      indices[dim] = rest(row, shape[dim]);
      row = divide(row, shape[dim]);
    }
    if (!shape.empty())
      indices[0] = row;
    return indices;
  }

  Value sourceOf(Value row, Value column) {
    int64_t bytes = place.getElementBytes();
    Value elements = arith::AddIOp::create(
        b, loc, offset, toI64(multiply(column, chunk / bytes)));
    for (auto [index, stride] :
         llvm::zip(indicesOf(row), ArrayRef(strides).drop_back()))
      elements = arith::AddIOp::create(
          b, loc, elements,
          arith::MulIOp::create(b, loc, toI64(index), stride));
    auto size = arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(bytes));
    return offsetPointer(b, loc, source,
                         arith::MulIOp::create(b, loc, elements, size));
  }

  /// Bytes from the buffer's start, swizzled.
  Value targetOf(Value row, Value column) {
    int64_t span = place.getSpan();
    Value bytes = multiply(column, chunk);
    if (span != place.getRowBytes()) {
      Value panel = multiply(divide(bytes, span), place.getPanelBytes());
      bytes = add(panel, rest(bytes, span));
    }
    bytes = add(bytes, multiply(row, span));
    bool repeats = place.getSlotBytes() % (8 * span) == 0;
    if (!repeats)
      bytes = add(bytes, start);
    if (place.getSwizzle()) {
      // Chunk numbers (from bit 4 on) meet row numbers (from bit 7 on).
      Value bits = arith::ShRUIOp::create(b, loc, bytes, i32(3));
      bits = arith::AndIOp::create(b, loc, bits, i32(span - 16));
      bytes = arith::XOrIOp::create(b, loc, bytes, bits);
    }
    return repeats ? add(bytes, start) : bytes;
  }

  /// How many bytes of the chunk there are; null where there are always all.
  Value validBytes(Value row, Value column) {
    Value inside = isInside(row);
    Value bytes = copy.getFill() ? filledBytes(row, column) : Value();
    if (!inside)
      return bytes;
    return arith::SelectOp::create(b, loc, inside, bytes ? bytes : i32(chunk),
                                   i32(0));
  }

  /// Whether a row lies within the buffer that the source is a view of, in
  /// those dimensions that it may reach out of; null where there are none. One
  /// comparison each: what is before the start is large without its sign.
  Value isInside(Value row) {
    std::optional<ArrayRef<int64_t>> bounded = copy.getBounded();
    if (!bounded)
      return Value();
    auto view = copy.getSrc().getDefiningOp<memref::SubViewOp>();
    if (!view) // all of the buffer, and nothing beside it
      return Value();
    llvm::SmallBitVector dropped = view.getDroppedDims();
    SmallVector<Value> indices = indicesOf(row);
    Value inside;
    for (int64_t dim : *bounded) {
      Value at = arith::IndexCastOp::create(
          b, loc, b.getI32Type(), valueOf(view.getMixedOffsets()[dim]));
      if (!dropped[dim]) {
        int64_t own = 0;
        for (int64_t before = 0; before < dim; ++before)
          own += !dropped[before];
        int64_t step = *getConstantIntValue(view.getMixedStrides()[dim]);
        at = add(at, step == 1 ? indices[own] : multiply(indices[own], step));
      }
      OpFoldResult size = memref::getMixedSize(b, loc, view.getSource(), dim);
      Value end =
          arith::IndexCastOp::create(b, loc, b.getI32Type(), valueOf(size));
      Value here =
          arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, at, end);
      inside = inside ? arith::AndIOp::create(b, loc, inside, here).getResult()
                      : here;
    }
    return inside;
  }

  Value filledBytes(Value row, Value column) {
    auto below = [&](Value index, OpFoldResult size) -> Value {
      Value bound =
          arith::IndexCastOp::create(b, loc, b.getI32Type(), valueOf(size));
      return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, index,
                                   bound);
    };
    Value columns = arith::IndexCastOp::create(b, loc, b.getI32Type(),
                                               valueOf(sizes.back()));
    Value left = arith::SubIOp::create(
        b, loc, multiply(columns, place.getElementBytes()),
        multiply(column, chunk));
    Value some = arith::MaxSIOp::create(b, loc, left, i32(0));
    Value bytes = arith::MinSIOp::create(b, loc, some, i32(chunk));
    for (auto [index, size] :
         llvm::zip(indicesOf(row), ArrayRef(sizes).drop_back()))
      bytes =
          arith::SelectOp::create(b, loc, below(index, size), bytes, i32(0));
    return bytes;
  }

  OpBuilder &b;
  Location loc;
  tile::CopyOp copy;
  const SharedPlace &place;
  int64_t chunk, threads, perRow;
  Value source, offset, start, thread;
  SmallVector<Value> strides;
  SmallVector<OpFoldResult> sizes;
};

} // namespace

LogicalResult emitCpAsync(OpBuilder &b, tile::CopyOp copy, int64_t threads) {
  std::optional<SharedPlace> place = findSharedPlace(b, copy.getDst());
  auto slot = cast<MemRefType>(copy.getDst().getType());
  if (!place || !place->isSlot(slot) ||
      cast<MemRefType>(copy.getSrc().getType()).getRank() != slot.getRank())
    return failure();
  int64_t chunk = std::gcd(alignmentOf(copy, place->getElementBytes()),
                           place->getRowBytes());
  if (chunk < 4 || place->getSpan() % chunk != 0)
    return failure();
  CpAsyncCopy(b, copy, *place, chunk, threads).run();
  return success();
}

} // namespace tilewright

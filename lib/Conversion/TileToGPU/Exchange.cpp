//===- Exchange.cpp - values that cross threads ---------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToGPU/Exchange.h"
#include "dialects/Tile/TileDecisions.h"
#include "lib/Conversion/TileToGPU/MemoryAccess.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tilewright;

static FailureOr<int64_t> getScratchOffset(Operation *op) {
  if (auto offset = tile::decisions::kScratch.get(op))
    return offset.getInt();
  return op->emitOpError("exchanges values through shared memory, but has no "
                         "`tile.scratch`: run tile-plan-scratch before");
}

static Attribute sharedSpace(OpBuilder &b) {
  return gpu::AddressSpaceAttr::get(b.getContext(),
                                    gpu::AddressSpace::Workgroup);
}

static Value getSharedArray(OpBuilder &b, Location loc) {
  auto type = MemRefType::get({0}, b.getI8Type(), MemRefLayoutAttrInterface(),
                              sharedSpace(b));
  return memref::GetGlobalOp::create(b, loc, type, sharedName);
}

FailureOr<Value> tilewright::getScratch(OpBuilder &b, Operation *op) {
  FailureOr<int64_t> offset = getScratchOffset(op);
  if (failed(offset))
    return failure();
  Location loc = op->getLoc();
  return movePointer(b, loc, getBufferStart(b, loc, getSharedArray(b, loc)),
                     *offset);
}

void tilewright::waitForScratch(OpBuilder &b, Operation *op) {
  if (!op->hasAttr(tile::decisions::kScratchFree))
    gpu::BarrierOp::create(b, op->getLoc());
}

FailureOr<Value> tilewright::getScratchView(OpBuilder &b, Operation *op,
                                            ArrayRef<int64_t> shape,
                                            ArrayRef<int64_t> strides,
                                            Type element) {
  FailureOr<int64_t> offset = getScratchOffset(op);
  if (failed(offset))
    return failure();
  Location loc = op->getLoc();
  int64_t last = 1;
  for (auto [size, stride] : llvm::zip_equal(shape, strides))
    last += (size - 1) * stride;
  auto flat = MemRefType::get({last}, element, MemRefLayoutAttrInterface(),
                              sharedSpace(b));
  Value view =
      memref::ViewOp::create(b, loc, flat, getSharedArray(b, loc),
                             constantIndex(b, loc, *offset), ValueRange());
  auto layout = StridedLayoutAttr::get(b.getContext(), 0, strides);
  auto type = MemRefType::get(shape, element, layout, sharedSpace(b));
  Value result =
      memref::ReinterpretCastOp::create(b, loc, type, view,
                                        /*offset=*/0, shape, strides);
  return result;
}

FailureOr<Value> tilewright::getScratchView(OpBuilder &b, Operation *op,
                                            ArrayRef<int64_t> shape,
                                            Type element) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (auto dim = static_cast<int64_t>(shape.size()) - 2; dim >= 0; --dim)
    strides[dim] = strides[dim + 1] * shape[dim + 1];
  return getScratchView(b, op, shape, strides, element);
}

/// Applies `move` to the 32-bit words of a value.
static Value byWords(OpBuilder &b, Location loc, Value value,
                     llvm::function_ref<Value(Value)> move) {
  Type type = value.getType(), i32 = b.getI32Type();
  if (type.isIndex()) {
    Value wide = arith::IndexCastOp::create(b, loc, b.getI64Type(), value);
    return arith::IndexCastOp::create(b, loc, type,
                                      byWords(b, loc, wide, move));
  }
  unsigned bits = type.getIntOrFloatBitWidth();
  Type integer = b.getIntegerType(bits);
  Value word = type == integer
                   ? value
                   : Value(arith::BitcastOp::create(b, loc, integer, value));
  if (bits < 32) {
    word = arith::TruncIOp::create(
        b, loc, integer, move(arith::ExtUIOp::create(b, loc, i32, word)));
  } else if (bits == 32) {
    word = move(word);
  } else {
    Value half = arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(32));
    Value low = move(arith::TruncIOp::create(b, loc, i32, word));
    Value high = move(arith::TruncIOp::create(
        b, loc, i32, arith::ShRUIOp::create(b, loc, word, half)));
    low = arith::ExtUIOp::create(b, loc, integer, low);
    high = arith::ExtUIOp::create(b, loc, integer, high);
    high = arith::ShLIOp::create(b, loc, high, half);
    word = arith::OrIOp::create(b, loc, low, high);
  }
  return type == integer ? word
                         : Value(arith::BitcastOp::create(b, loc, type, word));
}

static Value shuffle(OpBuilder &b, Location loc, Value value, Value lane,
                     NVVM::ShflKind kind) {
  return byWords(b, loc, value, [&](Value word) -> Value {
    return NVVM::ShflOp::create(b, loc, b.getI32Type(), constantI32(b, loc, -1),
                                word, lane, constantI32(b, loc, 31), kind,
                                UnitAttr());
  });
}

Value tilewright::shuffleXor(OpBuilder &b, Location loc, Value value,
                             int64_t mask) {
  return shuffle(b, loc, value, constantI32(b, loc, mask),
                 NVVM::ShflKind::bfly);
}

Value tilewright::shuffleFrom(OpBuilder &b, Location loc, Value value,
                              Value lane) {
  return shuffle(b, loc, value, lane, NVVM::ShflKind::idx);
}

ScratchMap::ScratchMap(ArrayRef<int64_t> sizes, int64_t fastest,
                       int64_t elementBytes)
    : offsets(sizes.size()), bytes(elementBytes) {
  auto addDim = [&](int64_t dim) {
    for (int64_t size = 1; size < sizes[dim]; size *= 2) {
      offsets[dim].push_back(bytes);
      bytes *= 2;
    }
  };
  if (fastest < 0)
    return;
  addDim(fastest);
  int64_t row = bytes;
  // Offsets of whole lines of 128 bytes also choose the chunk inside.
  int64_t chunk = 16, last = std::min<int64_t>(row, 128);
  for (auto dim = static_cast<int64_t>(sizes.size()) - 1; dim >= 0; --dim) {
    if (dim == fastest)
      continue;
    addDim(dim);
    for (int64_t &offset : offsets[dim])
      if (offset >= 128 && chunk < last) {
        offset += chunk;
        chunk *= 2;
      }
  }
}

int64_t ScratchMap::getOffset(CoordinateBit bit) const {
  if (bit.isNone() || bit.bit >= static_cast<int64_t>(offsets[bit.dim].size()))
    return 0;
  return offsets[bit.dim][bit.bit];
}

/// The exclusive or of `bits[i].second` for the bits `bits[i].first` of a
/// number: runs of neighbours are moved together.
static Value xorOfBits(OpBuilder &b, Location loc, Value number,
                       ArrayRef<std::pair<int64_t, int64_t>> bits) {
  SmallVector<std::pair<int64_t, int64_t>>
      pairs; // bit of number, bit of result
  for (auto [from, value] : bits)
    for (int64_t to = 0; (int64_t(1) << to) <= value; ++to)
      if (value >> to & 1)
        pairs.push_back({from, to});
  llvm::sort(pairs, [](auto x, auto y) {
    return std::pair(x.second - x.first, x.first) <
           std::pair(y.second - y.first, y.first);
  });
  Value result;
  for (size_t first = 0; first < pairs.size();) {
    size_t last = first;
    int64_t shift = pairs[first].second - pairs[first].first, mask = 0;
    for (;
         last < pairs.size() && pairs[last].second - pairs[last].first == shift;
         ++last)
      mask |= int64_t(1) << pairs[last].first;
    Value part =
        arith::AndIOp::create(b, loc, number, constantI32(b, loc, mask));
    Value distance = constantI32(b, loc, std::abs(shift));
    if (shift > 0)
      part = arith::ShLIOp::create(b, loc, part, distance);
    else if (shift < 0)
      part = arith::ShRUIOp::create(b, loc, part, distance);
    result = result ? arith::XOrIOp::create(b, loc, result, part) : part;
    first = last;
  }
  return result ? result : constantI32(b, loc, 0);
}

ThreadOffsets::ThreadOffsets(OpBuilder &b, Location loc,
                             const LinearLayout &layout, const ScratchMap &map,
                             Value base)
    : b(b), loc(loc), layout(layout), map(map), base(base) {
  SmallVector<std::pair<int64_t, int64_t>> bits;
  for (auto [index, bit] : llvm::enumerate(layout.getThreadBits())) {
    int64_t offset = map.getOffset(bit);
    bits.push_back({static_cast<int64_t>(index), offset});
    threadMask |= offset;
  }
  thread = xorOfBits(b, loc, getThreadNumber(b, loc), bits);
}

Value ThreadOffsets::getPointer(int64_t number) {
  int64_t constant = 0;
  for (auto [index, bit] : llvm::enumerate(layout.getRegisterBits()))
    if (number >> index & 1)
      constant ^= map.getOffset(bit);
  // What the thread's bits touch too is exclusive-or'ed, the rest is added.
  int64_t crossed = constant & threadMask;
  Value &start = bases[crossed];
  if (!start) {
    Value offset = thread;
    if (crossed)
      offset =
          arith::XOrIOp::create(b, loc, thread, constantI32(b, loc, crossed));
    start = movePointer(b, loc, base, offset);
  }
  return movePointer(b, loc, start, constant & ~threadMask);
}

/// Sizes of the elements that are there: the source's.
static ScratchMap makeMap(const LinearLayout &from, const LinearLayout &to,
                          Type element, int64_t &fastest, int64_t &store,
                          int64_t &load) {
  int64_t bytes = bytesOfElement(element),
          most = std::max<int64_t>(1, 16 / bytes);
  SmallVector<int64_t> sizes = from.getSizes();
  fastest = from.getRank() - 1;
  store = load = 1;
  for (int64_t dim = from.getRank() - 1; dim >= 0; --dim) {
    int64_t x = std::min(most, from.getRun(dim));
    int64_t y = std::min({most, to.getRun(dim), sizes[dim]});
    if (x * y > store * load) {
      fastest = dim;
      store = x;
      load = y;
    }
  }
  return ScratchMap(sizes, fastest, bytes);
}

ScratchExchange::ScratchExchange(const LinearLayout &from,
                                 const LinearLayout &to, Type element)
    : map(makeMap(from, to, element, fastest, storeVector, loadVector)) {}

void tilewright::storeToScratch(OpBuilder &b, Location loc, ThreadView &view,
                                ValueRange values, const ScratchMap &map,
                                int64_t fastest, int64_t vector, Value base) {
  const LinearLayout &layout = view.getLayout();
  Value owner = view.isFirstReplica();
  guarded(b, loc, owner, [&](OpBuilder &nested) {
    ThreadOffsets inside(nested, loc, layout, map, base);
    for (ArrayRef<int64_t> group : groupRegisters(layout, fastest, vector)) {
      auto parts = llvm::map_to_vector(
          group, [&](int64_t number) { return values[number]; });
      storeRaw(nested, loc, inside.getPointer(group.front()),
               packRaw(nested, loc, parts));
    }
  });
}

SmallVector<Value> tilewright::loadFromScratch(
    OpBuilder &b, Location loc, const LinearLayout &layout, Type element,
    const ScratchMap &map, int64_t fastest, int64_t vector, Value base) {
  ThreadOffsets offsets(b, loc, layout, map, base);
  SmallVector<Value> results(layout.getNumRegisters());
  for (ArrayRef<int64_t> group : groupRegisters(layout, fastest, vector)) {
    Value raw =
        loadRaw(b, loc, offsets.getPointer(group.front()), element, vector);
    for (auto [number, value] :
         llvm::zip_equal(group, unpackRaw(b, loc, raw, element)))
      results[number] = value;
  }
  return results;
}

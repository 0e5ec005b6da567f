//===- SharedOperand.cpp - tiles that products read in shared memory ------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToGPU/SharedOperand.h"
#include "lib/Conversion/TileToGPU/Exchange.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tilewright;

namespace {
/// An operand in scratch: `fastest` is its row of the product's result, or its
/// column, so that a thread reads neighbours. Rows are a chunk of 16 bytes
/// apart from a power of two, for the banks' sake.
struct ScratchFormat {
  SmallVector<int64_t> sizes;
  int64_t fastest, pitch, bytes;

  explicit ScratchFormat(tile::ConvertOp op) {
    auto type = cast<tile::TileType>(op.getResult().getType());
    for (int64_t size : type.getShape())
      sizes.push_back(static_cast<int64_t>(llvm::PowerOf2Ceil(size)));
    fastest = 1;
    for (OpOperand &use : op.getResult().getUses())
      if (isa<tile::MmaOp>(use.getOwner()) && use.getOperandNumber() == 0)
        fastest = 0;
    int64_t element = bytesOfElement(type.getElementType());
    pitch = sizes[fastest] + std::max<int64_t>(1, 16 / element);
    if (sizes[fastest] * element < 128)
      pitch = sizes[fastest];
    bytes = pitch * sizes[1 - fastest] * element;
  }
};
} // namespace

int64_t tilewright::getSharedOperandBytes(tile::ConvertOp op) {
  return ScratchFormat(op).bytes;
}

FailureOr<SharedOperand> SharedOperand::get(OpBuilder &b, Value tile) {
  auto type = cast<tile::TileType>(tile.getType());
  Operation *op = tile.getDefiningOp();
  if (auto load = dyn_cast_or_null<tile::LoadOp>(op)) {
    if (load.getIndices() || !load.getValid().empty())
      return load.emitOpError("that stays in shared memory cannot gather or be "
                              "ragged; convert it from registers instead");
    return SharedOperand{AccessShape::of(load), type.getElementType()};
  }
  if (auto convert = dyn_cast_or_null<tile::ConvertOp>(op)) {
    ScratchFormat format(convert);
    SmallVector<int64_t> strides(2, 1);
    strides[1 - format.fastest] = format.pitch;
    FailureOr<Value> memref = getScratchView(b, convert, format.sizes, strides,
                                             type.getElementType());
    if (failed(memref))
      return failure();
    Value zero = constantIndex(b, convert.getLoc(), 0);
    AccessShape access{*memref, {zero, zero}, {}, {0, 1}, {1, 1}, format.sizes};
    return SharedOperand{access, type.getElementType()};
  }
  return emitError(tile.getLoc(),
                   "a tile that stays in shared memory must come from a "
                   "tile.load or a tile.convert beside its user");
}

SmallVector<SmallVector<int64_t>>
SharedOperand::group(const LinearLayout &layout) const {
  int64_t contiguous = access.getContiguousDim();
  if (contiguous < 0)
    return groupRegisters(layout, -1, 1);
  return groupRegisters(
      layout, contiguous,
      std::min(access.getVectorSize(), layout.getRun(contiguous)));
}

SmallVector<Value> SharedOperand::load(OpBuilder &b, Location loc,
                                       const LinearLayout &layout,
                                       ValueRange offsets) const {
  ThreadView view(b, loc, layout, access.tileShape);
  SmallVector<Value> places(access.offsets);
  for (auto [offset, dim, step] :
       llvm::zip_equal(offsets, access.dims, access.steps)) {
    if (!offset)
      continue;
    Value moved =
        arith::MulIOp::create(b, loc, offset, constantIndex(b, loc, step));
    places[dim] = arith::AddIOp::create(b, loc, places[dim], moved);
  }
  TileAddress address(b, loc, access, access.memref, view, places, {});
  SmallVector<Value> results(layout.getNumRegisters());
  for (ArrayRef<int64_t> numbers : group(layout)) {
    Value raw = loadRaw(b, loc, address.getPointer(numbers.front()), element,
                        static_cast<int64_t>(numbers.size()));
    for (auto [number, value] :
         llvm::zip_equal(numbers, unpackRaw(b, loc, raw, element)))
      results[number] = value;
  }
  return results;
}

void SharedOperand::store(OpBuilder &b, Location loc,
                          const LinearLayout &layout, ValueRange values) const {
  ThreadView view(b, loc, layout, access.tileShape);
  storeTile(b, loc, access, view, values); // padding has no place in scratch
}

//===- StagedStores.cpp - tiles to memory through shared memory -----------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/AsyncToGPU/StagedBox.h"
#include "lib/Conversion/AsyncToGPU/WarpRoles.h"
#include "lib/Conversion/TileToGPU/Exchange.h"
#include "lib/Conversion/TileToGPU/Ldmatrix.h"
#include "lib/Conversion/TileToGPU/MemoryAccess.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tilewright;

namespace {

int64_t numberIn(tile::StoreOp op, StringRef name) {
  auto staged = op->getAttrOfType<DictionaryAttr>(StagedBox::name);
  return staged.getAs<IntegerAttr>(name).getInt();
}

/// Boxes of a warp.
int64_t countBoxes(const LinearLayout &layout, const StagedBox &box) {
  int64_t boxes = 1;
  for (CoordinateBit bit : layout.getRegisterBits())
    boxes *= box.holds(bit) ? 1 : 2;
  return boxes;
}

/// Moves the boxes of one tile: each warp its own, by its first lane.
class Stage {
public:
  Stage(OpBuilder &b, tile::StoreOp op, Value base)
      : b(b), op(op), loc(op.getLoc()),
        layout(*LinearLayout::of(op.getTileType())),
        element(op.getTileType().getElementType()),
        box(*StagedBox::of(layout, bytesOfElement(element))),
        slots(std::min(numberIn(op, "slots"), countBoxes(layout, box))),
        map(box.getOffsets(), box.getBytes()) {
    Value thread = getThreadNumber(b, loc);
    warp = arith::ShRUIOp::create(b, loc, thread,
                                  constantI32(b, loc, LinearLayout::laneBits));
    Value lane = arith::AndIOp::create(b, loc, thread, constantI32(b, loc, 31));
    isFirst = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, lane,
                                    constantI32(b, loc, 0));
    Value bytes = arith::MulIOp::create(
        b, loc, warp, constantI32(b, loc, slots * box.getBytes()));
    area = movePointer(b, loc, base, bytes);
  }

  void run(ValueRange values) {
    planRows();
    const LinearLayout &moved = matrix ? matrix->getRows() : layout;
    ThreadOffsets offsets(b, loc, moved, map, area);
    scf::ForOp tasks = tasksAround(op);
    auto boxes = sortRegisters(moved);
    // All before the first branch: what a later block converts, one by one,
    // ptxas reads too early for products to run in the background (C7514).
    DenseMap<int64_t, SmallVector<Value>> words;
    for (auto &[origin, registers] : boxes)
      for (int64_t index : registers)
        words[index] = pack(values, index);
    int64_t number = 0;
    for (auto &[origin, registers] : boxes) {
      int64_t slot = number % slots;
      if (tasks || number >= slots)
        waitForSlot();
      for (int64_t index : registers) {
        Value pointer = movePointer(b, loc, offsets.getPointer(index),
                                    slot * box.getBytes());
        put(words[index], pointer);
      }
      send(origin, slot);
      ++number;
    }
    OpBuilder::InsertionGuard guard(b);
    if (tasks)
      b.setInsertionPointAfter(tasks);
    waitForAll(tasks);
  }

private:
  /// Whole 8 x 8 matrices go by `stmatrix`; else each thread stores words.
  void planRows() {
    matrix = Ldmatrix::plan(layout, layout.getRank() - 1, element);
    if (!matrix)
      return;
    for (int64_t bit = 0; (int64_t(1) << bit) < matrix->getPerRow(); ++bit)
      if (!box.holds(layout.getRegisterBits()[bit])) {
        matrix.reset();
        return;
      }
  }

  /// The registers of each box, by its origin in the warp's part of the tile.
  llvm::MapVector<SmallVector<int64_t>, SmallVector<int64_t>>
  sortRegisters(const LinearLayout &moved) {
    llvm::MapVector<SmallVector<int64_t>, SmallVector<int64_t>> boxes;
    for (int64_t number = 0; number < moved.getNumRegisters(); ++number) {
      SmallVector<int64_t> origin = moved.getRegister(number);
      for (auto [at, size] : llvm::zip_equal(origin, box.getSizes()))
        at -= at % size;
      boxes[origin].push_back(number);
    }
    if (matrix)
      return boxes;
    // Elements that a thread stores at once are one access.
    int64_t dim = layout.getRank() - 1;
    vector =
        std::min<int64_t>(layout.getRun(dim), 16 / bytesOfElement(element));
    for (auto &[origin, registers] : boxes)
      llvm::erase_if(registers, [&](int64_t number) {
        return moved.getRegister(number)[dim] % vector != 0;
      });
    return boxes;
  }

  /// What one instruction stores.
  SmallVector<Value> pack(ValueRange values, int64_t index) {
    if (!matrix)
      return {packRaw(b, loc, values.slice(index, vector))};
    int64_t count = matrix->getPerRow();
    return matrix->pack(b, loc, values.slice(index * count, count));
  }

  void put(ValueRange words, Value pointer) {
    if (matrix)
      matrix->store(b, loc, words, pointer);
    else
      storeRaw(b, loc, pointer, words.front());
  }

  /// Until TMA has read what lay in the slot before.
  void waitForSlot() {
    guarded(b, loc, isFirst, [&](OpBuilder &nested) {
      NVVM::CpAsyncBulkWaitGroupOp::create(nested, loc,
                                           nested.getI32IntegerAttr(slots - 1),
                                           nested.getUnitAttr());
    });
    NVVM::SyncWarpOp::create(b, loc, constantI32(b, loc, -1));
  }

  /// Until TMA has read all; a kernel must not end before.
  void waitForAll(scf::ForOp tasks) {
    Value first = isFirst;
    if (tasks) {
      Value lane = arith::AndIOp::create(b, loc, getThreadNumber(b, loc),
                                         constantI32(b, loc, 31));
      first = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, lane,
                                    constantI32(b, loc, 0));
    }
    guarded(b, loc, first, [&](OpBuilder &nested) {
      NVVM::CpAsyncBulkWaitGroupOp::create(
          nested, loc, nested.getI32IntegerAttr(0), nested.getUnitAttr());
    });
  }

  /// Hands a slot to TMA, once all lanes have written theirs.
  void send(ArrayRef<int64_t> origin, int64_t slot) {
    NVVM::FenceProxyOp::create(
        b, loc, NVVM::ProxyKind::async_shared,
        NVVM::SharedSpaceAttr::get(b.getContext(),
                                   NVVM::SharedSpace::shared_cta));
    NVVM::SyncWarpOp::create(b, loc, constantI32(b, loc, -1));
    auto kernel = op->getParentOfType<gpu::GPUFuncOp>();
    Value descriptor = kernel.getArgument(numberIn(op, "map"));
    guarded(b, loc, isFirst, [&](OpBuilder &nested) {
      SmallVector<Value> coordinates = coordinatesOf(nested, origin);
      Value from = movePointer(nested, loc, area, slot * box.getBytes());
      NVVM::CpAsyncBulkTensorSharedCTAToGlobalOp::create(
          nested, loc, descriptor, from, coordinates, Value(),
          NVVM::TMAStoreMode::TILE, Value());
      NVVM::CpAsyncBulkCommitGroupOp::create(nested, loc);
    });
  }

  /// Of a box in memory, innermost first.
  SmallVector<Value> coordinatesOf(OpBuilder &b, ArrayRef<int64_t> origin) {
    ArrayRef<CoordinateBit> warps =
        layout.getThreadBits().drop_front(LinearLayout::laneBits);
    SmallVector<Value> coordinates;
    for (Value offset : op.getOffsets())
      coordinates.push_back(
          arith::IndexCastOp::create(b, loc, b.getI32Type(), offset));
    for (auto [dim, target] : llvm::enumerate(op.getTileDims())) {
      Value &at = coordinates[target];
      at = arith::AddIOp::create(b, loc, at,
                                 gatherBits(b, loc, warp, warps, dim));
      if (origin[dim])
        at =
            arith::AddIOp::create(b, loc, at, constantI32(b, loc, origin[dim]));
    }
    return llvm::to_vector(llvm::reverse(coordinates));
  }

  OpBuilder &b;
  tile::StoreOp op;
  Location loc;
  LinearLayout layout;
  Type element;
  StagedBox box;
  int64_t slots, vector = 1;
  ScratchMap map;
  std::optional<Ldmatrix> matrix;
  Value warp, isFirst, area;
};

struct StagedStorePattern : DistributedPattern<tile::StoreOp> {
  using Base::Base;

  LogicalResult
  matchAndRewrite(tile::StoreOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (!op->hasAttr(StagedBox::name))
      return failure();
    FailureOr<Value> base = getScratch(rewriter, op);
    if (failed(base))
      return failure();
    Stage(rewriter, op, *base).run(adaptor.getTile());
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

ScratchNeed tilewright::getStagedScratch(tile::StoreOp op) {
  if (!op->hasAttr(StagedBox::name))
    return {};
  // The pattern of the widest swizzle repeats after so many bytes.
  constexpr int64_t alignment = 1024;
  LinearLayout layout = *LinearLayout::of(op.getTileType());
  StagedBox box =
      *StagedBox::of(layout, bytesOfElement(op.getTileType().getElementType()));
  int64_t slots = std::min(numberIn(op, "slots"), countBoxes(layout, box));
  int64_t warps = layout.getNumThreads() >> LinearLayout::laneBits;
  return {warps * slots * box.getBytes(),
          tasksAround(op) ? ScratchNeed::always : ScratchNeed::rest, alignment};
}

void tilewright::populateStagedStorePatterns(
    const DistributedConverter &converter, RewritePatternSet &patterns) {
  patterns.add<StagedStorePattern>(converter, patterns.getContext(),
                                   /*benefit=*/10);
}

//===- PlanScratch.cpp - where exchanges lie in shared memory -------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDecisions.h"
#include "lib/Conversion/TileToGPU/Exchange.h"
#include "lib/Conversion/TileToGPU/MemoryAccess.h"
#include "lib/Conversion/TileToGPU/SharedOperand.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "llvm/Support/MathExtras.h"

namespace tilewright {
#define GEN_PASS_DEF_PLANSCRATCH
#include "lib/Conversion/TileToGPU/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;

ScratchNeed tilewright::getScratchNeed(Operation *op) {
  if (auto convert = dyn_cast<tile::ConvertOp>(op)) {
    auto to = cast<tile::TileType>(convert.getResult().getType());
    if (to.isInShared())
      return {getSharedOperandBytes(convert), ScratchNeed::users};
    auto from = LinearLayout::of(convert.getSource().getType());
    auto target = LinearLayout::of(to);
    if (!from || !target ||
        getRelayoutKind(*from, *target) != RelayoutKind::scratch)
      return {};
    return {
        ScratchExchange(*from, *target, to.getElementType()).map.getBytes()};
  }
  if (auto store = dyn_cast<tile::StoreOp>(op))
    return getStagedScratch(store);
  if (isa<tile::ReduceOp, tile::ScanOp>(op))
    return {getReduceScratch(op)};
  if (isa<tile::ReshapeOp, tile::ExtractOp, tile::InsertOp>(op) &&
      LinearLayout::of(op->getOperand(0).getType()))
    return {getShapeScratch(op)};
  return {};
}

namespace {

/// A piece of scratch and the ops, by number, that it must outlive.
struct Piece {
  Operation *op;
  int64_t bytes, first, last, offset, alignment = 128;
};

struct PlanScratch : public tilewright::impl::PlanScratchBase<PlanScratch> {
  using PlanScratchBase::PlanScratchBase;

  void runOnOperation() override {
    getOperation()->walk([&](gpu::GPUFuncOp function) { plan(function); });
  }

private:
  void plan(gpu::GPUFuncOp function) {
    auto shared = tile::decisions::kSharedBytes.get(function);
    if (!shared)
      return;
    number(function);
    SmallVector<Piece> pieces;
    function.walk<WalkOrder::PreOrder>([&](Operation *op) {
      ScratchNeed need = getScratchNeed(op);
      if (need.bytes > 0)
        pieces.push_back({op, need.bytes,
                          need.life == ScratchNeed::always ? 0 : numbers[op],
                          lastOf(op, need.life), 0, need.alignment});
    });
    auto start =
        static_cast<int64_t>(llvm::alignTo(shared.getInt(), uint64_t(128)));
    int64_t end = shared.getInt();
    Builder b(&getContext());
    SmallVector<Piece> buffers = ringsAndOthers(function, start);
    for (auto [index, piece] : llvm::enumerate(pieces)) {
      SmallVector<Piece> before(ArrayRef(pieces).take_front(index));
      if (isa<tile::StoreOp>(piece.op)) // all others begin with a barrier
        for (Piece &other : before)
          other.last = piece.last;
      llvm::append_range(before, buffers);
      place(piece, before, buffers.empty() ? start : 0);
      end = std::max(end, piece.offset + piece.bytes);
      piece.op->setAttr(tile::decisions::kScratch,
                        b.getI64IntegerAttr(piece.offset));
    }
    function->setAttr(tile::decisions::kSharedBytes, b.getI64IntegerAttr(end));
  }

  /// Where there are rings (`tile.ring` on their views: who made them put a
  /// barrier behind their last use), what lies below `start`: rings until then,
  /// all else for good. Else nothing.
  SmallVector<Piece> ringsAndOthers(gpu::GPUFuncOp function, int64_t start) {
    SmallVector<Piece> rings;
    llvm::SmallDenseSet<int64_t> offsets;
    function.walk([&](memref::ViewOp view) {
      std::optional<int64_t> offset = getConstantIntValue(view.getByteShift());
      if (!view->hasAttr(tile::decisions::kRing) || !offset ||
          !offsets.insert(*offset).second)
        return;
      auto type = cast<MemRefType>(view.getType());
      rings.push_back(
          {view, type.getNumElements() * bytesOfElement(type.getElementType()),
           0, lastUse(view), *offset});
    });
    llvm::sort(rings, [](const Piece &x, const Piece &y) {
      return x.offset < y.offset;
    });
    SmallVector<Piece> found;
    int64_t next = 0, never = numbers.size();
    for (const Piece &ring : rings) {
      if (ring.offset > next)
        found.push_back({nullptr, ring.offset - next, 0, never, next});
      found.push_back(ring);
      next = ring.offset + ring.bytes;
    }
    if (!found.empty() && next < start)
      found.push_back({nullptr, start - next, 0, never, next});
    return found;
  }

  void number(gpu::GPUFuncOp function) {
    int64_t next = 0;
    numbers.clear();
    function.walk<WalkOrder::PreOrder>(
        [&](Operation *op) { numbers[op] = next++; });
  }

  int64_t lastOf(Operation *op, ScratchNeed::Life life) {
    if (life == ScratchNeed::rest || life == ScratchNeed::always)
      return numbers.size();
    return life == ScratchNeed::users ? lastUse(op) : numbers[op];
  }

  /// The last op of the last statement, in the op's block, that reads it.
  int64_t lastUse(Operation *op) {
    int64_t last = numbers[op];
    for (Operation *user : op->getUsers()) {
      if (isa<ViewLikeOpInterface>(user))
        last = std::max(last, lastUse(user));
      Operation *statement = op->getBlock()->findAncestorOpInBlock(*user);
      statement->walk(
          [&](Operation *inner) { last = std::max(last, numbers[inner]); });
    }
    return last;
  }

  /// The lowest place beside the pieces that are needed at the same time.
  static void place(Piece &piece, ArrayRef<Piece> before, int64_t start) {
    SmallVector<Piece> rivals;
    for (const Piece &other : before)
      if (other.first <= piece.last && piece.first <= other.last)
        rivals.push_back(other);
    llvm::sort(rivals, [](const Piece &x, const Piece &y) {
      return x.offset < y.offset;
    });
    auto aligned = [&](int64_t offset) {
      return static_cast<int64_t>(llvm::alignTo(offset, piece.alignment));
    };
    piece.offset = aligned(start);
    for (const Piece &rival : rivals)
      if (rival.offset < piece.offset + piece.bytes)
        piece.offset =
            std::max(piece.offset, aligned(rival.offset + rival.bytes));
  }

  llvm::DenseMap<Operation *, int64_t> numbers;
};

} // namespace

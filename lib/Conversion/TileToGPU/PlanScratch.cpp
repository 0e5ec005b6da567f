//===- PlanScratch.cpp - where exchanges lie in shared memory -------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToGPU/Exchange.h"
#include "lib/Conversion/TileToGPU/SharedOperand.h"

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
      return {getSharedOperandBytes(convert), /*outlives=*/true};
    auto from = LinearLayout::of(convert.getSource().getType());
    auto target = LinearLayout::of(to);
    if (!from || !target ||
        getRelayoutKind(*from, *target) != RelayoutKind::scratch)
      return {};
    return {ScratchExchange(*from, *target, to.getElementType()).map.getBytes(),
            false};
  }
  if (isa<tile::ReduceOp, tile::ScanOp>(op))
    return {getReduceScratch(op), false};
  if (isa<tile::ReshapeOp, tile::ExtractOp, tile::InsertOp>(op) &&
      LinearLayout::of(op->getOperand(0).getType()))
    return {getShapeScratch(op), false};
  return {};
}

namespace {

/// A piece of scratch and the ops, by number, that it must outlive.
struct Piece {
  Operation *op;
  int64_t bytes, first, last, offset;
};

struct PlanScratch : public tilewright::impl::PlanScratchBase<PlanScratch> {
  using PlanScratchBase::PlanScratchBase;

  void runOnOperation() override {
    getOperation()->walk([&](gpu::GPUFuncOp function) { plan(function); });
  }

private:
  void plan(gpu::GPUFuncOp function) {
    auto shared = function->getAttrOfType<IntegerAttr>("tile.shared_bytes");
    if (!shared)
      return;
    number(function);
    SmallVector<Piece> pieces;
    function.walk<WalkOrder::PreOrder>([&](Operation *op) {
      ScratchNeed need = getScratchNeed(op);
      if (need.bytes > 0)
        pieces.push_back({op, need.bytes, numbers[op],
                          need.outlives ? lastUse(op) : numbers[op], 0});
    });
    auto start =
        static_cast<int64_t>(llvm::alignTo(shared.getInt(), uint64_t(128)));
    int64_t end = shared.getInt();
    Builder b(&getContext());
    for (auto [index, piece] : llvm::enumerate(pieces)) {
      place(piece, ArrayRef(pieces).take_front(index), start);
      end = std::max(end, piece.offset + piece.bytes);
      piece.op->setAttr(scratchName, b.getI64IntegerAttr(piece.offset));
    }
    function->setAttr("tile.shared_bytes", b.getI64IntegerAttr(end));
  }

  void number(gpu::GPUFuncOp function) {
    int64_t next = 0;
    numbers.clear();
    function.walk<WalkOrder::PreOrder>(
        [&](Operation *op) { numbers[op] = next++; });
  }

  /// The last op of the last statement, in the op's block, that reads it.
  int64_t lastUse(Operation *op) {
    int64_t last = numbers[op];
    for (Operation *user : op->getUsers()) {
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
    piece.offset = start;
    for (const Piece &rival : rivals)
      if (rival.offset < piece.offset + piece.bytes)
        piece.offset = std::max<int64_t>(
            piece.offset,
            llvm::alignTo(rival.offset + rival.bytes, uint64_t(128)));
  }

  llvm::DenseMap<Operation *, int64_t> numbers;
};

} // namespace

//===- InterleavePatterns.cpp - copies that put rows side by side ---------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An operand is laid out in groups by tiles of few columns that lie side by
// side in the copy, and far apart in what is copied: there its rows do. Column
// by column such a tile is stored in pieces of some bytes; whole rows,
// interleaved in registers, are a few shuffles and full vectors.
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToVector/MemoryAccess.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace tilewright;

namespace {

/// Bytes of the narrowest register: wider rows of a tile are stored one by one.
constexpr int64_t kLeastBytes = 16;

struct StoreInterleaved : AccessPattern<tile::StoreOp> {
  using Base::Base;

  LogicalResult
  matchAndRewrite(tile::StoreOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto load = op.getTile().getDefiningOp<tile::LoadOp>();
    tile::TileType type = op.getTile().getType();
    if (!load || !isPlain(op) || !isPlain(load) || !isGroup(type) ||
        op.getReduce() || op.getAtomic() || !followsAtOnce(load, op))
      return failure();
    Location loc = op.getLoc();
    AccessDesc from, to = describe(op, adaptor);
    from.memref = rewriter.getRemappedValue(load.getMemref());
    if (!from.memref ||
        failed(rewriter.getRemappedValues(load.getOffsets(), from.offsets)))
      return failure();
    from.dims = {load.getTileDims()[1], load.getTileDims()[0]};
    from.steps = {load.getTileSteps()[1], load.getTileSteps()[0]};
    PartLayout layout = getLayout(type);
    PartLayout transposed = permuteLayout(layout, {1, 0});
    VectorAddress source(rewriter, loc, from, transposed);
    VectorAddress target(rewriter, loc, to, layout);
    int64_t columns = type.getShape()[0], group = type.getShape()[1];
    if (!source.isContiguous(1) || !target.isContiguous(1) ||
        target.getStaticStride(0) != group)
      return failure();
    auto row = VectorType::get(columns, type.getElementType());
    SmallVector<Value> rows;
    for (int64_t i = 0; i < group; ++i)
      rows.push_back(vector::LoadOp::create(
          rewriter, loc, row, source.getBuffer(), source.getIndex(i, 0)));
    vector::StoreOp::create(rewriter, loc, interleave(rewriter, loc, rows),
                            target.getBuffer(), target.getIndex(0, 0));
    rewriter.eraseOp(op);
    return success();
  }

private:
  template <typename AccessOp> static bool isPlain(AccessOp op) {
    return op.getValid().empty() && !op.getIndices();
  }

  /// Groups of 2 or 4 small numbers, a power of two of them.
  static bool isGroup(tile::TileType type) {
    if (type.getRank() != 2 || !type.getBlocks().empty() ||
        type.getInterleave() || !type.getElementType().isIntOrFloat())
      return false;
    int64_t columns = type.getShape()[0], group = type.getShape()[1];
    int64_t bits = type.getElementType().getIntOrFloatBitWidth();
    return (group == 2 || group == 4) && llvm::isPowerOf2_64(columns) &&
           bits % 8 == 0 && columns * bits >= kLeastBytes * 8 &&
           group * bits < kLeastBytes * 8;
  }

  /// Nothing between the two touches memory.
  static bool followsAtOnce(tile::LoadOp load, tile::StoreOp store) {
    if (load->getBlock() != store->getBlock() || !load->hasOneUse())
      return false;
    for (Operation *op = load->getNextNode(); op; op = op->getNextNode()) {
      if (op == store)
        return true;
      if (!isMemoryEffectFree(op))
        return false;
    }
    return false;
  }

  /// The first element of each row, then the second of each, and so on.
  static Value interleave(OpBuilder &b, Location loc, ArrayRef<Value> rows) {
    if (rows.size() == 1)
      return rows.front();
    SmallVector<Value> even, odd;
    for (auto [number, row] : llvm::enumerate(rows))
      (number % 2 ? odd : even).push_back(row);
    Value first = interleave(b, loc, even), second = interleave(b, loc, odd);
    int64_t lanes = cast<VectorType>(first.getType()).getNumElements();
    SmallVector<int64_t> mask;
    for (int64_t lane = 0; lane < lanes; ++lane)
      llvm::append_values(mask, lane, lanes + lane);
    return vector::ShuffleOp::create(b, loc, first, second, mask);
  }
};

} // namespace

void tilewright::populateInterleavePatterns(const TilePartsConverter &converter,
                                            RewritePatternSet &patterns) {
  patterns.add<StoreInterleaved>(converter, patterns.getContext(),
                                 /*benefit=*/2);
}

//===- DistributedCopies.cpp - copies and waits, done at once -------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What is left of the asynchronous copies when an architecture has none, or a
// copy is of a kind that it cannot do: all threads copy, and wait.
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToGPU/DistributedRewriter.h"
#include "lib/Conversion/TileToGPU/MemoryAccess.h"
#include "lib/Conversion/TileToVector/AnyMachine.h"

using namespace mlir;
using namespace tilewright;

namespace {

AccessShape wholeBuffer(OpBuilder &b, Location loc, Value memref) {
  auto type = cast<MemRefType>(memref.getType());
  AccessShape access;
  access.memref = memref;
  access.tileShape = llvm::to_vector(type.getShape());
  Value zero = constantIndex(b, loc, 0);
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    access.offsets.push_back(zero);
    access.dims.push_back(dim);
    access.steps.push_back(1);
  }
  return access;
}

/// A load and a store of the whole, by all threads; the load of a filled copy
/// reads zeros beside the source.
struct CopyPattern : DistributedPattern<tile::CopyOp> {
  using Base::Base;

  LogicalResult matchAndRewrite(tile::CopyOp op, Adaptor,
                                ConversionPatternRewriter &b) const override {
    auto type = cast<MemRefType>(op.getDst().getType());
    if (!op.getAt().empty() || !type.hasStaticShape())
      return op.emitOpError("writes into another block's memory or has a "
                            "dynamic shape, which the GPU lowering does not "
                            "do yet");
    Location loc = op.getLoc();
    AccessShape from = sourceOf(b, op), to = wholeBuffer(b, loc, op.getDst());
    SmallVector<Value> valid;
    if (op.getFill())
      valid = getValueOrCreateConstantIndexOp(
          b, loc, memref::getMixedSizes(b, loc, op.getSrc()));
    auto load = tile::LoadOp::create(
        b, loc, makeTile(op, op.getFill() ? to : from), from.memref,
        from.offsets, from.dims, from.steps, Value(), 0, valid);
    if (Attribute border = op->getAttr("tile.bounded"))
      load->setAttr("tile.bounded", border);
    tile::StoreOp::create(b, loc, load.getResult(), op.getDst(), to.offsets);
    b.eraseOp(op);
    return success();
  }

private:
  /// The tile that moves, over all threads, as suits one end: the source, or
  /// where its sizes are not known (a filled copy) the destination.
  static tile::TileType makeTile(tile::CopyOp op, const AccessShape &end) {
    auto function = op->getParentOfType<gpu::GPUFuncOp>();
    int64_t threads =
        function->getAttrOfType<IntegerAttr>("tile.threads").getInt();
    auto type = cast<MemRefType>(op.getDst().getType());
    auto tile = tile::TileType::get(type.getShape(), type.getElementType());
    LinearLayout layout = getAccessLayout(end, tile, threads);
    return tile::TileType::get(type.getShape(), type.getElementType(),
                               layout.toAttr(op.getContext()));
  }

  /// Where the source lies: bounds are those of the buffer that it is a view
  /// of.
  static AccessShape sourceOf(OpBuilder &b, tile::CopyOp op) {
    auto view = op.getSrc().getDefiningOp<memref::SubViewOp>();
    if (!view || !op->hasAttr("tile.bounded"))
      return wholeBuffer(b, op.getLoc(), op.getSrc());
    AccessShape access;
    access.memref = view.getSource();
    access.offsets =
        getValueOrCreateConstantIndexOp(b, op.getLoc(), view.getMixedOffsets());
    llvm::SmallBitVector dropped = view.getDroppedDims();
    for (int64_t dim = 0; dim < view.getSourceType().getRank(); ++dim) {
      if (dropped[dim])
        continue;
      access.dims.push_back(dim);
      access.steps.push_back(*getConstantIntValue(view.getMixedStrides()[dim]));
    }
    return access;
  }
};

struct AwaitPattern : DistributedPattern<tile::AwaitOp> {
  using Base::Base;

  LogicalResult
  matchAndRewrite(tile::AwaitOp op, Adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<gpu::BarrierOp>(op);
    return success();
  }
};

struct BarrierPattern : DistributedPattern<tile::BarrierOp> {
  using Base::Base;

  LogicalResult matchAndRewrite(tile::BarrierOp op, Adaptor,
                                ConversionPatternRewriter &) const override {
    return op.emitOpError("makes blocks wait for each other, which the GPU "
                          "lowering does not do yet");
  }
};

} // namespace

void tilewright::populateDistributedCopyPatterns(
    const DistributedConverter &converter, RewritePatternSet &patterns) {
  patterns.add<CopyPattern, AsyncAtOncePattern<DistributedPattern>,
               AwaitPattern, BarrierPattern>(converter, patterns.getContext());
}

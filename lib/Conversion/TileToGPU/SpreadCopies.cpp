//===- SpreadCopies.cpp - copies and waits, done at once ------------------===//
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

#include "lib/Conversion/TileToGPU/MemoryAccess.h"
#include "lib/Conversion/TileToGPU/SpreadRewriter.h"
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

struct CopyPattern : SpreadPattern<tile::CopyOp> {
  using Base::Base;

  LogicalResult
  matchAndRewrite(tile::CopyOp op, Adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = cast<MemRefType>(op.getSrc().getType());
    if (!op.getAt().empty() || !type.hasStaticShape())
      return op.emitOpError("writes into another block's memory or has a "
                            "dynamic shape, which the GPU lowering does not "
                            "do yet");
    Location loc = op.getLoc();
    auto function = op->getParentOfType<gpu::GPUFuncOp>();
    int64_t threads =
        function->getAttrOfType<IntegerAttr>("tile.threads").getInt();
    AccessShape from = wholeBuffer(rewriter, loc, op.getSrc());
    AccessShape to = wholeBuffer(rewriter, loc, op.getDst());
    auto tile = tile::TileType::get(type.getShape(), type.getElementType());
    LinearLayout layout = getAccessLayout(from, tile, threads);
    ThreadView view(rewriter, loc, layout, type.getShape());
    SmallVector<Value> values =
        loadTile(rewriter, loc, from, view, type.getElementType());
    storeTile(rewriter, loc, to, view, values);
    rewriter.eraseOp(op);
    return success();
  }
};

struct AwaitPattern : SpreadPattern<tile::AwaitOp> {
  using Base::Base;

  LogicalResult
  matchAndRewrite(tile::AwaitOp op, Adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<gpu::BarrierOp>(op);
    return success();
  }
};

struct BarrierPattern : SpreadPattern<tile::BarrierOp> {
  using Base::Base;

  LogicalResult matchAndRewrite(tile::BarrierOp op, Adaptor,
                                ConversionPatternRewriter &) const override {
    return op.emitOpError("makes blocks wait for each other, which the GPU "
                          "lowering does not do yet");
  }
};

} // namespace

void tilewright::populateSpreadCopyPatterns(const SpreadConverter &converter,
                                            RewritePatternSet &patterns) {
  patterns.add<CopyPattern, AsyncAtOncePattern<SpreadPattern>, AwaitPattern,
               BarrierPattern>(converter, patterns.getContext());
}

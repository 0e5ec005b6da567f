//===- CopyPatterns.cpp - movement between buffers of a task --------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A CPU has no engine that copies in the background and no memory of another
// task's: a copy is loads and stores, an asynchronous one is over at once, and
// tokens vanish.
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToVector/AnyMachine.h"
#include "lib/Conversion/TileToVector/TileParts.h"
#include "lib/Transforms/HostBuffers/CopyEmitter.h"

using namespace mlir;
using namespace tilewright;

namespace {

struct CopyPattern : TilePattern<tile::CopyOp> {
  using Base::Base;

  LogicalResult
  matchAndRewrite(tile::CopyOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (!op.getAt().empty())
      return op.emitOpError("writes into the buffer of another task, which "
                            "tasks on a CPU do not have");
    Value source = adaptor.getSrc().front();
    if (!cast<MemRefType>(source.getType()).hasStaticShape())
      return op.emitOpError("has a dynamic shape; on a CPU copy tiles of "
                            "static shape with tile.load and tile.store");
    emitCopy(rewriter, op.getLoc(), source, adaptor.getDst().front(), {});
    rewriter.eraseOp(op);
    return success();
  }
};

struct AwaitPattern : TilePattern<tile::AwaitOp> {
  using Base::Base;

  LogicalResult
  matchAndRewrite(tile::AwaitOp op, Adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.eraseOp(op);
    return success();
  }
};

struct BarrierPattern : TilePattern<tile::BarrierOp> {
  using Base::Base;

  LogicalResult matchAndRewrite(tile::BarrierOp op, Adaptor,
                                ConversionPatternRewriter &) const override {
    return op.emitOpError("makes tasks wait for each other, which tasks on a "
                          "CPU never do; end the kernel there instead");
  }
};

} // namespace

void tilewright::populateCopyPatterns(const TilePartsConverter &converter,
                                      RewritePatternSet &patterns) {
  patterns.add<CopyPattern, AsyncAtOncePattern<TilePattern>, AwaitPattern,
               BarrierPattern>(converter, patterns.getContext());
}

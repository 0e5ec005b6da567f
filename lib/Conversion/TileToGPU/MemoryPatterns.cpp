//===- MemoryPatterns.cpp - loads, stores and copies of a block -----------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToGPU/ThreadTiles.h"
#include "lib/Conversion/TileToVector/Combine.h"

using namespace mlir;
using namespace tilewright;

namespace {

bool isShared(Value memref) {
  return gpu::GPUDialect::hasWorkgroupMemoryAddressSpace(
      cast<MemRefType>(memref.getType()));
}

/// Positions of a load or store, element by element.
class ThreadAccess {
public:
  template <typename AccessOp>
  ThreadAccess(OpBuilder &b, AccessOp op, ValueRange offsets, ValueRange valid,
               int64_t threads)
      : b(b), loc(op.getLoc()), tile(b, loc, op.getTileType(), threads),
        offsets(offsets), valid(valid), dims(op.getTileDims()),
        steps(op.getTileSteps()) {}

  ThreadTile &getTile() { return tile; }

  SmallVector<Value> getIndices(int64_t part) {
    SmallVector<Value> indices(offsets);
    auto coordinates = tile.getCoordinates(part);
    for (auto [coordinate, dim, step] :
         llvm::zip_equal(coordinates, dims, steps)) {
      Value distance = arith::MulIOp::create(
          b, loc, coordinate, arith::ConstantIndexOp::create(b, loc, step));
      indices[dim] = arith::AddIOp::create(b, loc, indices[dim], distance);
    }
    return indices;
  }

  /// Null where the element always exists and is valid.
  Value getCondition(int64_t part) {
    Value condition = tile.exists(part);
    if (valid.empty())
      return condition;
    auto coordinates = tile.getCoordinates(part);
    for (auto [coordinate, bound] : llvm::zip_equal(coordinates, valid)) {
      Value inside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                                           coordinate, bound);
      condition =
          condition ? arith::AndIOp::create(b, loc, condition, inside) : inside;
    }
    return condition;
  }

private:
  OpBuilder &b;
  Location loc;
  ThreadTile tile;
  SmallVector<Value> offsets, valid;
  SmallVector<int64_t> dims, steps;
};

struct LoadPattern : TilePattern<tile::LoadOp> {
  using Base::Base;

  LogicalResult
  matchAndRewrite(tile::LoadOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (op.getIndices())
      return op.emitOpError("gathers, which the GPU lowering does not do yet");
    Location loc = op.getLoc();
    ThreadAccess access(rewriter, op, singleValues(adaptor.getOffsets()),
                        singleValues(adaptor.getValid()), parts.getThreads());
    Type element = op.getType().getElementType();
    Value pad;
    if (!adaptor.getPad().empty())
      pad = adaptor.getPad().front();
    else
      pad = arith::ConstantOp::create(rewriter, loc,
                                      rewriter.getZeroAttr(element));
    SmallVector<Value> results;
    for (int64_t part = 0; part < access.getTile().getNumParts(); ++part) {
      auto indices = access.getIndices(part);
      results.push_back(guarded(
          rewriter, loc, access.getCondition(part),
          [&](OpBuilder &b) -> Value {
            return memref::LoadOp::create(b, loc, adaptor.getMemref().front(),
                                          indices);
          },
          pad));
    }
    rewriter.replaceOpWithMultiple(op, {results});
    return success();
  }
};

struct StorePattern : TilePattern<tile::StoreOp> {
  using Base::Base;

  LogicalResult
  matchAndRewrite(tile::StoreOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (op.getIndices())
      return op.emitOpError("scatters, which the GPU lowering does not do yet");
    Location loc = op.getLoc();
    Value memref = adaptor.getMemref().front();
    ThreadAccess access(rewriter, op, singleValues(adaptor.getOffsets()),
                        singleValues(adaptor.getValid()), parts.getThreads());
    if (isShared(memref))
      gpu::BarrierOp::create(rewriter, loc);
    for (int64_t part = 0; part < access.getTile().getNumParts(); ++part) {
      auto indices = access.getIndices(part);
      Value value = adaptor.getTile()[part];
      guarded(rewriter, loc, access.getCondition(part),
              [&](OpBuilder &b) {
                write(b, op, value, memref, indices);
                return Value();
              },
              {});
    }
    if (isShared(memref))
      gpu::BarrierOp::create(rewriter, loc);
    rewriter.eraseOp(op);
    return success();
  }

private:
  static void write(OpBuilder &b, tile::StoreOp op, Value value, Value memref,
                    ValueRange indices) {
    Location loc = op.getLoc();
    if (op.getAtomic()) {
      memref::AtomicRMWOp::create(b, loc, value.getType(),
                                  atomicKind(*op.getReduce(), value.getType()),
                                  value, memref, indices);
      return;
    }
    if (op.getReduce()) {
      Value old = memref::LoadOp::create(b, loc, memref, indices);
      value = combine(b, loc, *op.getReduce(), old, value);
    }
    memref::StoreOp::create(b, loc, value, memref, indices);
  }
};

/// All threads copy, in turns of consecutive elements.
struct CopyPattern : TilePattern<tile::CopyOp> {
  using Base::Base;

  LogicalResult
  matchAndRewrite(tile::CopyOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Value source = adaptor.getSrc().front(), target = adaptor.getDst().front();
    auto type = cast<MemRefType>(source.getType());
    if (!op.getAt().empty() || !type.hasStaticShape())
      return op.emitOpError("writes into another block's memory or has a "
                            "dynamic shape, which the GPU lowering does not "
                            "do yet");
    Location loc = op.getLoc();
    auto whole = tile::TileType::get(type.getShape(), type.getElementType());
    ThreadTile tile(rewriter, loc, whole, parts.getThreads());
    gpu::BarrierOp::create(rewriter, loc);
    for (int64_t part = 0; part < tile.getNumParts(); ++part) {
      auto indices = tile.getCoordinates(part);
      guarded(rewriter, loc, tile.exists(part),
              [&](OpBuilder &b) {
                Value value = memref::LoadOp::create(b, loc, source, indices);
                memref::StoreOp::create(b, loc, value, target, indices);
                return Value();
              },
              {});
    }
    gpu::BarrierOp::create(rewriter, loc);
    rewriter.eraseOp(op);
    return success();
  }
};

struct BarrierPattern : TilePattern<tile::BarrierOp> {
  using Base::Base;

  LogicalResult matchAndRewrite(tile::BarrierOp op, Adaptor,
                                ConversionPatternRewriter &) const override {
    return op.emitOpError("makes blocks wait for each other, which the GPU "
                          "lowering does not do yet");
  }
};

} // namespace

void tilewright::populateThreadMemoryPatterns(
    const TilePartsConverter &converter, RewritePatternSet &patterns) {
  patterns.add<LoadPattern, StorePattern, CopyPattern, BarrierPattern>(
      converter, patterns.getContext());
}

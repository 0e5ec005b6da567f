//===- ShapePatterns.cpp - elements at other coordinates ------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToGPU/DerivedLayouts.h"
#include "lib/Conversion/TileToGPU/Exchange.h"
#include "lib/Conversion/TileToGPU/MemoryAccess.h"

using namespace mlir;
using namespace tilewright;

namespace {

/// The source's register that goes to each register of the result, where
/// `rename` says what a bit of the source is in the result.
SmallVector<Value>
pickRegisters(const LinearLayout &source, const LinearLayout &result,
              ValueRange values,
              llvm::function_ref<CoordinateBit(CoordinateBit)> rename) {
  SmallVector<Value> results;
  for (int64_t number = 0; number < result.getNumRegisters(); ++number) {
    int64_t from = 0;
    for (auto [index, bit] : llvm::enumerate(source.getRegisterBits()))
      if (auto place = result.findRegister(rename(bit)))
        from |= (number >> *place & 1) << index;
    results.push_back(values[from]);
  }
  return results;
}

struct BroadcastPattern : DistributedPattern<tile::BroadcastOp> {
  using Base::Base;

  LogicalResult
  matchAndRewrite(tile::BroadcastOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    LinearLayout result = *LinearLayout::of(op.getResult().getType());
    LinearLayout source = *LinearLayout::of(op.getSource().getType());
    if (source != getBroadcastSource(op, result))
      return op.emitOpError("must take a slice of its result's layout");
    int64_t leading = result.getRank() - source.getRank();
    rewriter.replaceOpWithMultiple(
        op, {pickRegisters(source, result, adaptor.getSource(),
                           [&](CoordinateBit bit) {
                             return CoordinateBit{bit.dim + leading, bit.bit};
                           })});
    return success();
  }
};

/// Nothing moves: the result's layout is the source's with other names.
template <typename SourceOp>
struct RenamePattern : DistributedPattern<SourceOp> {
  using DistributedPattern<SourceOp>::DistributedPattern;

  LogicalResult
  matchAndRewrite(SourceOp op, typename RenamePattern::Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    LinearLayout source = *LinearLayout::of(op.getSource().getType());
    if (getResultLayout(op, source) !=
        LinearLayout::of(op.getResult().getType()))
      return throughScratch(op, adaptor, rewriter);
    rewriter.replaceOpWithMultiple(op, {adaptor.getSource()});
    return success();
  }

private:
  LogicalResult throughScratch(SourceOp op,
                               typename RenamePattern::Adaptor adaptor,
                               ConversionPatternRewriter &rewriter) const;
};

/// Row-major places of a tile in the scratch of `op`.
FailureOr<AccessShape> scratchAccess(OpBuilder &b, Operation *op,
                                     tile::TileType type) {
  FailureOr<Value> memref =
      getScratchView(b, op, type.getShape(), type.getElementType());
  if (failed(memref))
    return failure();
  AccessShape access;
  access.memref = *memref;
  access.tileShape = llvm::to_vector(type.getShape());
  Value zero = constantIndex(b, op->getLoc(), 0);
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    access.offsets.push_back(zero);
    access.dims.push_back(dim);
    access.steps.push_back(1);
  }
  return access;
}

/// Writes a tile row-major into the op's scratch, and waits.
FailureOr<AccessShape> writeScratch(OpBuilder &b, Operation *op, Value tile,
                                    ValueRange values) {
  Location loc = op->getLoc();
  auto type = cast<tile::TileType>(tile.getType());
  waitForScratch(b, op);
  FailureOr<AccessShape> access = scratchAccess(b, op, type);
  if (failed(access))
    return failure();
  ThreadView view(b, loc, type);
  storeTile(b, loc, *access, view, values);
  gpu::BarrierOp::create(b, loc);
  return access;
}

template <typename SourceOp>
LogicalResult RenamePattern<SourceOp>::throughScratch(
    SourceOp op, typename RenamePattern::Adaptor adaptor,
    ConversionPatternRewriter &rewriter) const {
  if (!isa<tile::ReshapeOp>(op))
    return op.emitOpError("must give its source's layout with other names");
  if (failed(writeScratch(rewriter, op, op.getSource(), adaptor.getSource())))
    return failure();
  auto type = cast<tile::TileType>(op.getResult().getType());
  FailureOr<AccessShape> access = scratchAccess(rewriter, op, type);
  ThreadView view(rewriter, op.getLoc(), type);
  rewriter.replaceOpWithMultiple(op, {loadTile(rewriter, op.getLoc(), *access,
                                               view, type.getElementType())});
  return success();
}

struct ExtractPattern : DistributedPattern<tile::ExtractOp> {
  using Base::Base;

  LogicalResult
  matchAndRewrite(tile::ExtractOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    LinearLayout source = *LinearLayout::of(op.getSource().getType());
    auto type = dyn_cast<tile::TileType>(op.getResult().getType());
    if (!type)
      return extractScalar(op, source, adaptor.getSource(), rewriter);
    LinearLayout result = *LinearLayout::of(type);
    if (getExtractLayout(op, source) == result) {
      int64_t fixed = registerAt(source, op.getOffsets());
      SmallVector<Value> results(result.getNumRegisters());
      for (int64_t number = 0; number < result.getNumRegisters(); ++number) {
        int64_t from = fixed;
        for (auto [index, bit] : llvm::enumerate(source.getRegisterBits()))
          if (auto place = result.findRegister(bit))
            from |= (number >> *place & 1) << index;
        results[number] = adaptor.getSource()[from];
      }
      rewriter.replaceOpWithMultiple(op, {results});
      return success();
    }
    Location loc = op.getLoc();
    FailureOr<AccessShape> access =
        writeScratch(rewriter, op, op.getSource(), adaptor.getSource());
    if (failed(access))
      return failure();
    access->tileShape = llvm::to_vector(type.getShape());
    access->offsets = llvm::map_to_vector(op.getOffsets(), [&](int64_t offset) {
      return constantIndex(rewriter, loc, offset);
    });
    ThreadView view(rewriter, loc, type);
    rewriter.replaceOpWithMultiple(
        op, {loadTile(rewriter, loc, *access, view, type.getElementType())});
    return success();
  }

private:
  /// The register that coordinates name, thread bits aside.
  static int64_t registerAt(const LinearLayout &layout,
                            ArrayRef<int64_t> coordinates) {
    int64_t number = 0;
    for (auto [index, bit] : llvm::enumerate(layout.getRegisterBits()))
      number |= (coordinates[bit.dim] >> bit.bit & 1) << index;
    return number;
  }

  static LogicalResult extractScalar(tile::ExtractOp op,
                                     const LinearLayout &layout,
                                     ValueRange values,
                                     ConversionPatternRewriter &rewriter) {
    Location loc = op.getLoc();
    int64_t mask = 0, owner = 0;
    for (auto [index, bit] : llvm::enumerate(layout.getThreadBits())) {
      if (bit.isNone())
        continue;
      mask |= int64_t(1) << index;
      owner |= (op.getOffsets()[bit.dim] >> bit.bit & 1) << index;
    }
    Value value = values[registerAt(layout, op.getOffsets())];
    if (mask >> LinearLayout::laneBits != 0) {
      FailureOr<Value> place = getScratch(rewriter, op);
      if (failed(place))
        return failure();
      // Copies of the element write the same: one of them is enough.
      Value thread = getThreadNumber(rewriter, loc);
      Value isOwner =
          arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::eq, thread,
                                constantI32(rewriter, loc, owner));
      waitForScratch(rewriter, op);
      guarded(rewriter, loc, isOwner, [&](OpBuilder &b) {
        storeRaw(b, loc, *place, toMemory(b, loc, value));
      });
      gpu::BarrierOp::create(rewriter, loc);
      Type element = value.getType();
      value = fromMemory(rewriter, loc,
                         loadRaw(rewriter, loc, *place, element, 1), element);
    } else if (mask != 0) {
      value =
          shuffleFrom(rewriter, loc, value, constantI32(rewriter, loc, owner));
    }
    rewriter.replaceOp(op, value);
    return success();
  }
};

struct InsertPattern : DistributedPattern<tile::InsertOp> {
  using Base::Base;

  LogicalResult
  matchAndRewrite(tile::InsertOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    auto sourceType = cast<tile::TileType>(op.getSource().getType());
    FailureOr<AccessShape> access =
        writeScratch(rewriter, op, op.getSource(), adaptor.getSource());
    if (failed(access))
      return failure();
    access->offsets = llvm::map_to_vector(op.getOffsets(), [&](int64_t offset) {
      return constantIndex(rewriter, loc, -offset);
    });
    ThreadView view(rewriter, loc, op.getResult().getType());
    TileAddress address(rewriter, loc, *access, access->memref, view,
                        access->offsets, {});
    SmallVector<Value> results(adaptor.getDest());
    Type element = sourceType.getElementType();
    for (auto [index, value] : llvm::enumerate(results)) {
      auto number = static_cast<int64_t>(index);
      Value inside =
          isInside(rewriter, op, view, number, sourceType.getShape());
      Value pointer = address.getPointer(number);
      Value old = toMemory(rewriter, loc, value);
      Value raw =
          guarded(rewriter, loc, inside, ValueRange{old}, [&](OpBuilder &b) {
            return SmallVector<Value>{loadRaw(b, loc, pointer, element, 1)};
          }).front();
      value = fromMemory(rewriter, loc, raw, element);
    }
    rewriter.replaceOpWithMultiple(op, {results});
    return success();
  }

private:
  static Value isInside(OpBuilder &b, tile::InsertOp op, ThreadView &view,
                        int64_t number, ArrayRef<int64_t> shape) {
    Value condition;
    for (auto [dim, pair] :
         llvm::enumerate(llvm::zip_equal(op.getOffsets(), shape))) {
      auto [offset, size] = pair;
      Location loc = op.getLoc();
      Value at = view.getCoordinate(number, static_cast<int64_t>(dim));
      Value moved =
          arith::SubIOp::create(b, loc, at, constantI32(b, loc, offset));
      // Below the slice is a large unsigned number.
      Value inside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                           moved, constantI32(b, loc, size));
      condition = bothHold(b, loc, condition, inside);
    }
    return condition;
  }
};

struct SplatPattern : DistributedPattern<tile::SplatOp> {
  using Base::Base;

  LogicalResult
  matchAndRewrite(tile::SplatOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    LinearLayout layout = *LinearLayout::of(op.getResult().getType());
    SmallVector<Value> results(layout.getNumRegisters(),
                               adaptor.getScalar().front());
    rewriter.replaceOpWithMultiple(op, {results});
    return success();
  }
};

struct IotaPattern : DistributedPattern<tile::IotaOp> {
  using Base::Base;

  LogicalResult
  matchAndRewrite(tile::IotaOp op, Adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    auto type = cast<tile::TileType>(op.getResult().getType());
    ThreadView view(rewriter, loc, type);
    SmallVector<Value> results;
    for (int64_t number = 0; number < view.getNumRegisters(); ++number)
      results.push_back(
          resize(rewriter, loc,
                 view.getCoordinate(number, static_cast<int64_t>(op.getDim())),
                 type.getElementType()));
    rewriter.replaceOpWithMultiple(op, {results});
    return success();
  }

private:
  static Value resize(OpBuilder &b, Location loc, Value value, Type type) {
    if (type.isIndex())
      return arith::IndexCastOp::create(b, loc, type, value);
    unsigned bits = type.getIntOrFloatBitWidth();
    if (bits > 32)
      return arith::ExtUIOp::create(b, loc, type, value);
    if (bits < 32)
      return arith::TruncIOp::create(b, loc, type, value);
    return value;
  }
};

} // namespace

/// Scratch of the ops above, where they need it.
int64_t tilewright::getShapeScratch(Operation *op) {
  Value source = op->getOperand(0);
  auto type = cast<tile::TileType>(source.getType());
  LinearLayout layout = *LinearLayout::of(type);
  int64_t bytes = bytesOfElement(type.getElementType());
  int64_t all = type.getNumElements() * bytes;
  if (isa<tile::InsertOp>(op))
    return all;
  if (auto reshape = dyn_cast<tile::ReshapeOp>(op))
    return getResultLayout(reshape, layout) ==
                   LinearLayout::of(reshape.getResult().getType())
               ? 0
               : all;
  auto extract = cast<tile::ExtractOp>(op);
  auto result = LinearLayout::of(extract.getResult().getType());
  if (!result) // a shuffle, where the lanes of a warp hold all
    return llvm::all_of(
               layout.getThreadBits().drop_front(LinearLayout::laneBits),
               [](CoordinateBit bit) { return bit.isNone(); })
               ? 0
               : bytes;
  return getExtractLayout(extract, layout) == result ? 0 : all;
}

void tilewright::populateDistributedShapePatterns(
    const DistributedConverter &converter, RewritePatternSet &patterns) {
  patterns.add<BroadcastPattern, RenamePattern<tile::TransposeOp>,
               RenamePattern<tile::ReshapeOp>, ExtractPattern, InsertPattern,
               SplatPattern, IotaPattern>(converter, patterns.getContext());
}

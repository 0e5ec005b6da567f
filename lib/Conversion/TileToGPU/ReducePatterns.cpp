//===- ReducePatterns.cpp - reductions and scans over threads -------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToGPU/Exchange.h"
#include "lib/Conversion/TileToGPU/MemoryAccess.h"
#include "lib/Conversion/TileToVector/Combine.h"

using namespace mlir;
using namespace tilewright;

/// Values with the neutral element in place of padding.
static SmallVector<Value> withoutPadding(OpBuilder &b, Location loc,
                                         ThreadView &view, ValueRange values,
                                         Value neutral) {
  SmallVector<Value> result(values);
  for (auto [index, value] : llvm::enumerate(result)) {
    auto number = static_cast<int64_t>(index);
    if (view.neverExists(number))
      value = neutral;
    else if (Value exists = view.exists(number))
      value = arith::SelectOp::create(b, loc, exists, value, neutral);
  }
  return result;
}

static Value makeNeutral(OpBuilder &b, Location loc, tile::ReduceKind kind,
                         Type element) {
  return arith::ConstantOp::create(b, loc, neutralElement(b, kind, element));
}

/// Thread bits of `dims`, above or below the border between lanes and warps.
static SmallVector<int64_t> threadBitsOf(const LinearLayout &layout,
                                         ArrayRef<int64_t> dims, bool warps) {
  SmallVector<int64_t> bits;
  for (auto [index, bit] : llvm::enumerate(layout.getThreadBits()))
    if (!bit.isNone() && llvm::is_contained(dims, bit.dim) &&
        (static_cast<int64_t>(index) >= LinearLayout::laneBits) == warps)
      bits.push_back(static_cast<int64_t>(index));
  return bits;
}

namespace {
/// Partial results in scratch: the bits of one layout beside each other, lanes
/// first, then warps that hold different parts.
struct PartialMap {
  SmallVector<std::pair<CoordinateBit, int64_t>> places;
  int64_t bytes;

  PartialMap(const LinearLayout &layout, int64_t elementBytes)
      : bytes(elementBytes) {
    for (ArrayRef<CoordinateBit> bits :
         {layout.getThreadBits(), layout.getRegisterBits()})
      for (CoordinateBit bit : bits)
        if (!bit.isNone()) {
          places.push_back({bit, bytes});
          bytes *= 2;
        }
  }

  int64_t getOffset(CoordinateBit bit) const {
    for (auto [known, offset] : places)
      if (known == bit)
        return offset;
    return 0;
  }
};

/// Byte offset of what a thread and a register hold.
Value partialOffset(OpBuilder &b, Location loc, const LinearLayout &layout,
                    const PartialMap &map, int64_t constant) {
  SmallVector<CoordinateBit> bits;
  for (CoordinateBit bit : layout.getThreadBits())
    if (int64_t offset = map.getOffset(bit))
      bits.push_back({0, static_cast<int64_t>(llvm::Log2_64(offset))});
    else
      bits.push_back({});
  Value offset = gatherBits(b, loc, getThreadNumber(b, loc), bits, 0);
  if (constant == 0)
    return offset;
  return arith::AddIOp::create(b, loc, offset, constantI32(b, loc, constant));
}

int64_t registerOffset(const LinearLayout &layout, const PartialMap &map,
                       int64_t number) {
  int64_t offset = 0;
  for (auto [index, bit] : llvm::enumerate(layout.getRegisterBits()))
    if (number >> index & 1)
      offset += map.getOffset(bit);
  return offset;
}

/// The layout of partial results: without reduced registers and lanes.
LinearLayout partialLayout(const LinearLayout &source, ArrayRef<int64_t> dims) {
  LinearLayout result(source.getRank());
  for (CoordinateBit bit : source.getRegisterBits())
    if (!llvm::is_contained(dims, bit.dim))
      result.addRegister(bit.dim, bit.bit);
  for (auto [index, bit] : llvm::enumerate(source.getThreadBits()))
    if (bit.isNone() || (static_cast<int64_t>(index) < LinearLayout::laneBits &&
                         llvm::is_contained(dims, bit.dim)))
      result.addReplica();
    else
      result.addThread(bit.dim, bit.bit);
  return result;
}

struct ReducePattern : DistributedPattern<tile::ReduceOp> {
  using Base::Base;

  LogicalResult
  matchAndRewrite(tile::ReduceOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    auto type = cast<tile::TileType>(op.getSource().getType());
    ThreadView view(rewriter, loc, type);
    const LinearLayout &layout = view.getLayout();
    if (layout.slice(op.getDims()) !=
        LinearLayout::of(op.getResult().getType()))
      return op.emitOpError("must give a slice of its source's layout");
    Value neutral =
        makeNeutral(rewriter, loc, op.getKind(), type.getElementType());
    SmallVector<Value> values =
        withoutPadding(rewriter, loc, view, adaptor.getSource(), neutral);
    values = reduceRegisters(rewriter, op, layout, values);
    for (int64_t bit : threadBitsOf(layout, op.getDims(), /*warps=*/false))
      for (Value &value : values) {
        Value other = shuffleXor(rewriter, loc, value, int64_t(1) << bit);
        value = combine(rewriter, loc, op.getKind(), value, other);
      }
    if (!threadBitsOf(layout, op.getDims(), /*warps=*/true).empty() &&
        failed(reduceWarps(rewriter, op, layout, values)))
      return failure();
    rewriter.replaceOpWithMultiple(op, {values});
    return success();
  }

private:
  /// Registers of one thread, by halves: the order of the sums is a tree.
  static SmallVector<Value> reduceRegisters(OpBuilder &b, tile::ReduceOp op,
                                            const LinearLayout &layout,
                                            SmallVector<Value> values) {
    auto bits = llvm::to_vector(layout.getRegisterBits());
    for (auto index = static_cast<int64_t>(bits.size()) - 1; index >= 0;
         --index) {
      if (!llvm::is_contained(op.getDims(), bits[index].dim))
        continue;
      int64_t half = int64_t(1) << index;
      SmallVector<Value> rest;
      for (int64_t number = 0; number < static_cast<int64_t>(values.size());
           ++number)
        if (!(number & half))
          rest.push_back(combine(b, op.getLoc(), op.getKind(), values[number],
                                 values[number | half]));
      values = std::move(rest);
    }
    return values;
  }

  /// Through scratch: each warp writes its part, all read all parts in order.
  static LogicalResult reduceWarps(OpBuilder &b, tile::ReduceOp op,
                                   const LinearLayout &layout,
                                   SmallVectorImpl<Value> &values) {
    Location loc = op.getLoc();
    FailureOr<Value> base = getScratch(b, op);
    if (failed(base))
      return failure();
    Type element = values.front().getType();
    LinearLayout partial = partialLayout(layout, op.getDims());
    PartialMap map(partial, bytesOfElement(element));
    ThreadView view(b, loc, partial, SmallVector<int64_t>(partial.getSizes()));
    waitForScratch(b, op);
    guarded(b, loc, view.isFirstReplica(), [&](OpBuilder &nested) {
      for (auto [index, value] : llvm::enumerate(values)) {
        int64_t constant =
            registerOffset(partial, map, static_cast<int64_t>(index));
        Value place = partialOffset(nested, loc, partial, map, constant);
        storeRaw(nested, loc, movePointer(nested, loc, *base, place),
                 toMemory(nested, loc, value));
      }
    });
    gpu::BarrierOp::create(b, loc);
    readParts(b, op, layout, partial, map, *base, values);
    return success();
  }

  static void readParts(OpBuilder &b, tile::ReduceOp op,
                        const LinearLayout &layout, const LinearLayout &partial,
                        const PartialMap &map, Value base,
                        SmallVectorImpl<Value> &values) {
    Location loc = op.getLoc();
    Type element = values.front().getType();
    LinearLayout result = layout.slice(op.getDims());
    SmallVector<int64_t> warpOffsets = {0};
    for (int64_t bit : threadBitsOf(layout, op.getDims(), /*warps=*/true)) {
      int64_t offset = map.getOffset(layout.getThreadBits()[bit]);
      for (int64_t i = 0, end = warpOffsets.size(); i < end; ++i)
        warpOffsets.push_back(warpOffsets[i] + offset);
    }
    for (auto [index, value] : llvm::enumerate(values)) {
      Value sum;
      for (int64_t offset : warpOffsets) {
        int64_t constant =
            offset + registerOffset(partial, map, static_cast<int64_t>(index));
        Value place = partialOffset(b, loc, result, map, constant);
        Value raw =
            loadRaw(b, loc, movePointer(b, loc, base, place), element, 1);
        Value part = fromMemory(b, loc, raw, element);
        sum = sum ? combine(b, loc, op.getKind(), sum, part) : part;
      }
      value = sum;
    }
  }
};

/// Block by block, doubling: each element knows what comes before it in its
/// block, and the whole block. Works for bits in any place.
struct ScanPattern : DistributedPattern<tile::ScanOp> {
  using Base::Base;

  LogicalResult
  matchAndRewrite(tile::ScanOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    ThreadView view(rewriter, loc, op.getSource().getType());
    const LinearLayout &layout = view.getLayout();
    auto dim = static_cast<int64_t>(op.getDim());
    Value neutral = makeNeutral(
        rewriter, loc, op.getKind(),
        cast<tile::TileType>(op.getSource().getType()).getElementType());
    SmallVector<Value> totals =
        withoutPadding(rewriter, loc, view, adaptor.getSource(), neutral);
    SmallVector<Value> own = totals;
    SmallVector<Value> before(totals.size(), neutral);
    int64_t count = llvm::Log2_64(layout.getSizes()[dim]);
    for (int64_t bit = 0; bit < count; ++bit)
      if (failed(step(rewriter, op, layout, {dim, bit}, before, totals)))
        return failure();
    if (!op.getExclusive())
      for (auto [value, self] : llvm::zip_equal(before, own))
        value = merge(rewriter, op, value, self);
    rewriter.replaceOpWithMultiple(op, {before});
    return success();
  }

private:
  /// `first` comes before `second` along the direction of the scan.
  static Value merge(OpBuilder &b, tile::ScanOp op, Value first, Value second) {
    return combine(b, op.getLoc(), op.getKind(), first, second);
  }

  /// Joins blocks of 2^bit elements.
  static LogicalResult step(OpBuilder &b, tile::ScanOp op,
                            const LinearLayout &layout, CoordinateBit bit,
                            SmallVectorImpl<Value> &before,
                            SmallVectorImpl<Value> &totals) {
    Location loc = op.getLoc();
    SmallVector<Value> siblings;
    Value isLater;
    auto inRegister = layout.findRegister(bit);
    if (inRegister) {
      for (int64_t number = 0; number < layout.getNumRegisters(); ++number)
        siblings.push_back(totals[number ^ (int64_t(1) << *inRegister)]);
    } else {
      int64_t thread = *layout.findThread(bit);
      FailureOr<SmallVector<Value>> exchanged =
          fromThread(b, op, totals, thread);
      if (failed(exchanged))
        return failure();
      siblings = *exchanged;
      Value own =
          arith::AndIOp::create(b, loc, getThreadNumber(b, loc),
                                constantI32(b, loc, int64_t(1) << thread));
      isLater = arith::CmpIOp::create(
          b, loc,
          op.getReverse() ? arith::CmpIPredicate::eq : arith::CmpIPredicate::ne,
          own, constantI32(b, loc, 0));
    }
    SmallVector<Value> joined;
    for (int64_t number = 0; number < layout.getNumRegisters(); ++number) {
      Value sibling = siblings[number];
      Value after = merge(b, op, sibling, before[number]);
      Value total = merge(b, op, totals[number], sibling);
      if (inRegister) {
        bool later = (number >> *inRegister & 1) != op.getReverse();
        if (later)
          before[number] = after;
        joined.push_back(later ? merge(b, op, sibling, totals[number]) : total);
        continue;
      }
      before[number] =
          arith::SelectOp::create(b, loc, isLater, after, before[number]);
      joined.push_back(arith::SelectOp::create(
          b, loc, isLater, merge(b, op, sibling, totals[number]), total));
    }
    totals = std::move(joined);
    return success();
  }

  /// The values of the thread whose number differs in one bit.
  static FailureOr<SmallVector<Value>> fromThread(OpBuilder &b, tile::ScanOp op,
                                                  ArrayRef<Value> values,
                                                  int64_t bit) {
    Location loc = op.getLoc();
    if (bit < LinearLayout::laneBits)
      return llvm::map_to_vector(values, [&](Value value) {
        return shuffleXor(b, loc, value, int64_t(1) << bit);
      });
    FailureOr<Value> base = getScratch(b, op);
    if (failed(base))
      return failure();
    Type element = values.front().getType();
    auto layout = *LinearLayout::of(op.getSource().getType());
    int64_t bytes = bytesOfElement(element);
    auto place = [&](OpBuilder &at, Value thread, size_t index) {
      Value offset =
          arith::MulIOp::create(at, loc, thread, constantI32(at, loc, bytes));
      Value pointer = movePointer(at, loc, *base, offset);
      return movePointer(at, loc, pointer,
                         static_cast<int64_t>(index) * bytes *
                             layout.getNumThreads());
    };
    Value thread = getThreadNumber(b, loc);
    gpu::BarrierOp::create(b, loc);
    for (auto [index, value] : llvm::enumerate(values))
      storeRaw(b, loc, place(b, thread, index), toMemory(b, loc, value));
    gpu::BarrierOp::create(b, loc);
    Value other = arith::XOrIOp::create(b, loc, thread,
                                        constantI32(b, loc, int64_t(1) << bit));
    SmallVector<Value> result;
    for (size_t index = 0; index < values.size(); ++index)
      result.push_back(fromMemory(
          b, loc, loadRaw(b, loc, place(b, other, index), element, 1),
          element));
    return result;
  }
};

} // namespace

/// Scratch of reductions and scans that cross warps.
int64_t tilewright::getReduceScratch(Operation *op) {
  auto layout = LinearLayout::of(op->getOperand(0).getType());
  auto type = cast<tile::TileType>(op->getOperand(0).getType());
  int64_t bytes = bytesOfElement(type.getElementType());
  if (auto reduce = dyn_cast<tile::ReduceOp>(op)) {
    if (threadBitsOf(*layout, reduce.getDims(), /*warps=*/true).empty())
      return 0;
    return PartialMap(partialLayout(*layout, reduce.getDims()), bytes).bytes;
  }
  auto scan = cast<tile::ScanOp>(op);
  if (threadBitsOf(*layout, {static_cast<int64_t>(scan.getDim())}, true)
          .empty())
    return 0;
  return bytes * layout->getNumThreads() * layout->getNumRegisters();
}

void tilewright::populateDistributedReducePatterns(
    const DistributedConverter &converter, RewritePatternSet &patterns) {
  patterns.add<ReducePattern, ScanPattern>(converter, patterns.getContext());
}

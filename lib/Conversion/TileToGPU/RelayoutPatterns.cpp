//===- RelayoutPatterns.cpp - tiles in another layout or type -------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDecisions.h"
#include "lib/Conversion/TileToGPU/Exchange.h"
#include "lib/Conversion/TileToGPU/Fragments.h"
#include "lib/Conversion/TileToGPU/Ldmatrix.h"
#include "lib/Conversion/TileToGPU/SharedOperand.h"
#include "lib/Conversion/TileToGPU/WidenBytes.h"
#include "lib/Conversion/TileToVector/TileParts.h"

using namespace mlir;
using namespace tilewright;

/// The source's bits that the result has in the number of the thread, not in
/// that of the register: each doubles what a thread must look at.
static SmallVector<std::pair<int64_t, int64_t>>
registersByThread(const LinearLayout &from, const LinearLayout &to,
                  bool lanesOnly) {
  SmallVector<std::pair<int64_t, int64_t>> pairs; // register bit, thread bit
  for (auto [index, bit] : llvm::enumerate(from.getRegisterBits()))
    if (auto thread = to.findThread(bit))
      if (!lanesOnly || *thread < LinearLayout::laneBits)
        pairs.push_back({static_cast<int64_t>(index), *thread});
  return pairs;
}

RelayoutKind tilewright::getRelayoutKind(const LinearLayout &from,
                                         const LinearLayout &to) {
  if (from == to)
    return RelayoutKind::none;
  switch (getExchange(from, to)) {
  case Exchange::none:
    return RelayoutKind::registers;
  case Exchange::warps:
    return RelayoutKind::scratch;
  case Exchange::lanes:
    break;
  }
  // A shuffle costs about as much as a store or a load of shared memory, and
  // needs no barrier.
  int64_t looks = int64_t(1) << registersByThread(from, to, false).size();
  return looks * to.getNumRegisters() <= 16 ? RelayoutKind::shuffles
                                            : RelayoutKind::scratch;
}

namespace {

/// Moves values between registers of a thread or of a warp.
class RegisterMove {
public:
  RegisterMove(OpBuilder &b, Location loc, const LinearLayout &from,
               const LinearLayout &to, ValueRange values)
      : b(b), loc(loc), from(from), to(to), values(values),
        pairs(registersByThread(from, to, false)) {}

  SmallVector<Value> run(bool shuffles) {
    SmallVector<Value> results;
    for (int64_t number = 0; number < to.getNumRegisters(); ++number)
      results.push_back(makeOne(number, shuffles));
    return results;
  }

private:
  Value makeOne(int64_t number, bool shuffles) {
    int64_t fixed = 0;
    for (auto [index, bit] : llvm::enumerate(from.getRegisterBits()))
      if (auto target = to.findRegister(bit))
        fixed |= (number >> *target & 1) << index;
    Value lane = shuffles ? makeLane(number) : Value();
    return choose(fixed, 0, lane);
  }

  /// The register among those that differ in `pairs` from `next` on.
  Value choose(int64_t number, size_t next, Value lane) {
    if (next == pairs.size()) {
      Value value = values[number];
      return lane ? shuffleFrom(b, loc, value, lane) : value;
    }
    auto [index, thread] = pairs[next];
    Value clear = choose(number, next + 1, lane);
    Value set = choose(number | int64_t(1) << index, next + 1, lane);
    Value bit =
        arith::AndIOp::create(b, loc, getThreadNumber(b, loc),
                              constantI32(b, loc, int64_t(1) << thread));
    Value isSet = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, bit,
                                        constantI32(b, loc, 0));
    return arith::SelectOp::create(b, loc, isSet, set, clear);
  }

  /// The lane that holds what goes into register `number`.
  Value makeLane(int64_t number) {
    Value thread = getThreadNumber(b, loc);
    Value lane = constantI32(b, loc, 0);
    for (int64_t index = 0; index < LinearLayout::laneBits; ++index) {
      CoordinateBit bit = from.getThreadBits()[index];
      int64_t source = index;
      if (!bit.isNone()) {
        if (auto inRegister = to.findRegister(bit)) {
          if (number >> *inRegister & 1)
            lane = arith::AddIOp::create(
                b, loc, lane, constantI32(b, loc, int64_t(1) << index));
          continue;
        }
        auto inThread = to.findThread(bit);
        if (!inThread)
          continue;
        source = *inThread;
      }
      Value part =
          gatherBits(b, loc, thread, bitsWith(source, index), /*dim=*/0);
      lane = arith::AddIOp::create(b, loc, lane, part);
    }
    return lane;
  }

  /// Bit `source` of a number goes to bit `target`.
  static SmallVector<CoordinateBit> bitsWith(int64_t source, int64_t target) {
    SmallVector<CoordinateBit> bits(source + 1);
    bits[source] = {0, target};
    return bits;
  }

  OpBuilder &b;
  Location loc;
  const LinearLayout &from, &to;
  ValueRange values;
  SmallVector<std::pair<int64_t, int64_t>> pairs;
};

/// Whether results of a loop are rounded two by two. ptxas rounds single ones
/// too early for products to run in the background (C7514). In the loop itself
/// only what a product reads is: pairs that are taken apart again take more
/// registers than there are.
bool narrowInPairs(Operation *op, ValueRange values, Type element,
                   int64_t arch) {
  auto loop = op->getParentOfType<scf::ForOp>();
  auto multiplies = [](Operation *user) {
    return isa<tile::MmaOp, scf::YieldOp>(user);
  };
  bool isProductOperand = llvm::any_of(op->getUsers(), [&](Operation *user) {
    return multiplies(user) || (isa<tile::ConvertOp>(user) &&
                                llvm::any_of(user->getUsers(), multiplies));
  });
  return !isAmd(arch) &&
         (!loop || loop->hasAttr(tile::decisions::kTasks) ||
          isProductOperand) &&
         values.size() % 2 == 0 && values.front().getType().isF32() &&
         (element.isF16() || element.isBF16());
}

SmallVector<Value> narrowPairs(OpBuilder &b, Location loc, ValueRange values,
                               Type element) {
  StringAttr name = b.getStringAttr(element.isF16() ? "llvm.nvvm.ff2f16x2.rn"
                                                    : "llvm.nvvm.ff2bf16x2.rn");
  SmallVector<Value> results;
  for (size_t at = 0; at < values.size(); at += 2) {
    // The first operand is the upper half.
    Value both =
        LLVM::CallIntrinsicOp::create(b, loc, VectorType::get(2, element), name,
                                      ValueRange{values[at + 1], values[at]})
            .getResult(0);
    for (int64_t half : {0, 1})
      results.push_back(LLVM::ExtractElementOp::create(
          b, loc, both, constantI32(b, loc, half)));
  }
  return results;
}

/// Another number type, or another layout.
struct ConvertPattern : DistributedPattern<tile::ConvertOp> {
  using Base::Base;

  LogicalResult
  matchAndRewrite(tile::ConvertOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto from = cast<tile::TileType>(op.getSource().getType());
    auto to = cast<tile::TileType>(op.getResult().getType());
    if (from.getElementType() == to.getElementType())
      return relayout(op, adaptor, rewriter);
    SmallVector<Value> results;
    auto &distributed = *getTypeConverter<DistributedConverter>();
    if (narrowInPairs(op, adaptor.getSource(), to.getElementType(),
                      distributed.getArch())) {
      results = narrowPairs(rewriter, op.getLoc(), adaptor.getSource(),
                            to.getElementType());
      rewriter.replaceOpWithMultiple(op, {results});
      return success();
    }
    if (canWidenBytes(adaptor.getSource(), to.getElementType(),
                      distributed.getArch())) {
      results = widenBytes(rewriter, op.getLoc(), adaptor.getSource(),
                           to.getElementType(), op.getIsUnsigned());
      rewriter.replaceOpWithMultiple(op, {results});
      return success();
    }
    for (Value value : adaptor.getSource())
      results.push_back(convertNumber(rewriter, op.getLoc(), value,
                                      to.getElementType(), op.getIsUnsigned()));
    rewriter.replaceOpWithMultiple(op, {results});
    return success();
  }

private:
  LogicalResult relayout(tile::ConvertOp op, Adaptor adaptor,
                         ConversionPatternRewriter &rewriter) const {
    auto to = cast<tile::TileType>(op.getResult().getType());
    auto source = LinearLayout::of(op.getSource().getType());
    if (!source)
      return op.emitOpError("takes a tile that is not in registers");
    if (to.isInShared())
      return share(op, adaptor, rewriter);
    LinearLayout target = *LinearLayout::of(to);
    RegisterMove move(rewriter, op.getLoc(), *source, target,
                      adaptor.getSource());
    switch (getRelayoutKind(*source, target)) {
    case RelayoutKind::none:
      rewriter.replaceOpWithMultiple(op, {adaptor.getSource()});
      return success();
    case RelayoutKind::registers:
      rewriter.replaceOpWithMultiple(op, {move.run(/*shuffles=*/false)});
      return success();
    case RelayoutKind::shuffles:
      rewriter.replaceOpWithMultiple(op, {move.run(/*shuffles=*/true)});
      return success();
    case RelayoutKind::scratch:
      return exchange(op, adaptor, *source, target, rewriter);
    }
    llvm_unreachable("all kinds are above");
  }

  LogicalResult exchange(tile::ConvertOp op, Adaptor adaptor,
                         const LinearLayout &source, const LinearLayout &target,
                         ConversionPatternRewriter &rewriter) const {
    Location loc = op.getLoc();
    FailureOr<Value> base = getScratch(rewriter, op);
    if (failed(base))
      return failure();
    auto type = cast<tile::TileType>(op.getSource().getType());
    Type element = type.getElementType();
    ScratchExchange plan(source, target, element);
    ThreadView view(rewriter, loc, type);
    waitForScratch(rewriter, op);
    storeToScratch(rewriter, loc, view, adaptor.getSource(), plan.map,
                   plan.fastest, plan.storeVector, *base);
    gpu::BarrierOp::create(rewriter, loc);
    // Rows of a matrix are chunks of 16 bytes, all of which scratch must have.
    bool hasRows =
        source.getSizes()[plan.fastest] * bytesOfElement(element) >= 16;
    auto matrix = Ldmatrix::plan(target, plan.fastest, element);
    SmallVector<Value> results;
    if (distributed.getArch() >= 80 && hasRows && matrix) {
      ThreadOffsets rows(rewriter, loc, matrix->getRows(), plan.map, *base);
      results = matrix->load(rewriter, loc, element, [&](int64_t number) {
        return rows.getPointer(number);
      });
    } else {
      results = loadFromScratch(rewriter, loc, target, element, plan.map,
                                plan.fastest, plan.loadVector, *base);
    }
    rewriter.replaceOpWithMultiple(op, {results});
    return success();
  }

  /// Into scratch, where a product reads it, behind a barrier of
  /// `tile-place-barriers`.
  LogicalResult share(tile::ConvertOp op, Adaptor adaptor,
                      ConversionPatternRewriter &rewriter) const {
    Location loc = op.getLoc();
    waitForScratch(rewriter, op);
    FailureOr<SharedOperand> operand =
        SharedOperand::get(rewriter, op.getResult());
    if (failed(operand))
      return failure();
    ThreadView view(rewriter, loc, op.getSource().getType());
    Value owner = view.isFirstReplica();
    guarded(rewriter, loc, owner, [&](OpBuilder &b) {
      operand->store(b, loc, view.getLayout(), adaptor.getSource());
    });
    rewriter.replaceOpWithMultiple(op, {SmallVector<Value>()});
    return success();
  }
};

} // namespace

void tilewright::populateRelayoutPatterns(const DistributedConverter &converter,
                                          RewritePatternSet &patterns) {
  patterns.add<ConvertPattern>(converter, patterns.getContext());
}

//===- FmaPatterns.cpp - products on the ordinary units -------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each thread computes a block of the result, as outer products of columns of
// `a` and rows of `b` that it reads from shared memory.
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToGPU/SharedOperand.h"
#include "lib/Conversion/TileToVector/TileParts.h"

using namespace mlir;
using namespace tilewright;

namespace {

/// The layout in which a thread reads an operand: the result's, without the
/// other dimension, and `steps` of k in registers.
LinearLayout operandLayout(const LinearLayout &result, int64_t kDim,
                           int64_t steps) {
  LinearLayout layout = result.slice({kDim});
  for (int64_t bit = 0; (int64_t(1) << bit) < steps; ++bit)
    layout.addRegister(kDim, bit);
  return layout;
}

struct FmaPattern : DistributedPattern<tile::MmaOp> {
  using Base::Base;

  LogicalResult
  matchAndRewrite(tile::MmaOp op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto aType = cast<tile::TileType>(op.getA().getType());
    auto bType = cast<tile::TileType>(op.getB().getType());
    if (!aType.isInShared() || !bType.isInShared())
      return rewriter.notifyMatchFailure(op, "operands are in registers");
    if (op.getMeta())
      return op.emitOpError("with sparsity metadata has no GPU lowering yet; "
                            "unpack the operand before");
    Location loc = op.getLoc();
    FailureOr<SharedOperand> lhs = SharedOperand::get(rewriter, op.getA());
    FailureOr<SharedOperand> rhs = SharedOperand::get(rewriter, op.getB());
    if (failed(lhs) || failed(rhs))
      return failure();
    LinearLayout layout = *LinearLayout::of(op.getC().getType());
    int64_t depth = aType.getShape()[1];
    int64_t steps = depth % 4 == 0 ? 4 : 1;
    LinearLayout left = operandLayout(layout, 1, steps);
    LinearLayout right = operandLayout(layout, 0, steps);
    auto loop =
        scf::ForOp::create(rewriter, loc, constantIndex(rewriter, loc, 0),
                           constantIndex(rewriter, loc, depth),
                           constantIndex(rewriter, loc, steps), adaptor.getC());
    OpBuilder b = OpBuilder::atBlockBegin(loop.getBody());
    Value k = loop.getInductionVar();
    SmallVector<Value> x = lhs->load(b, loc, left, {Value(), k});
    SmallVector<Value> y = rhs->load(b, loc, right, {k, Value()});
    Type wide = cast<tile::TileType>(op.getC().getType()).getElementType();
    for (Value &value : x)
      value = widenTo(b, loc, wide, value, op.getAUnsigned());
    for (Value &value : y)
      value = widenTo(b, loc, wide, value, op.getBUnsigned());
    SmallVector<Value> sums(loop.getRegionIterArgs());
    for (int64_t step = 0; step < steps; ++step)
      for (auto [number, sum] : llvm::enumerate(sums)) {
        auto [row, column] =
            operandRegisters(layout, static_cast<int64_t>(number));
        int64_t rows = left.getNumRegisters() / steps;
        int64_t columns = right.getNumRegisters() / steps;
        sum = multiplyAdd(b, loc, x[step * rows + row],
                          y[step * columns + column], sum);
      }
    scf::YieldOp::create(b, loc, sums);
    rewriter.replaceOpWithMultiple(op, {loop.getResults()});
    return success();
  }

private:
  /// The operands' registers that a register of the result is a product of.
  static std::pair<int64_t, int64_t>
  operandRegisters(const LinearLayout &layout, int64_t number) {
    int64_t row = 0, column = 0, rows = 0, columns = 0;
    for (auto [index, bit] : llvm::enumerate(layout.getRegisterBits())) {
      int64_t value = number >> index & 1;
      if (bit.dim == 0)
        row |= value << rows++;
      else
        column |= value << columns++;
    }
    return {row, column};
  }
};

} // namespace

void tilewright::populateFmaPatterns(const DistributedConverter &converter,
                                     RewritePatternSet &patterns) {
  patterns.add<FmaPattern>(converter, patterns.getContext());
}

//===- ExpandFloats.cpp - the pass ----------------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/Device.h"
#include "lib/Transforms/ExpandFloats/Passes.h"
#include "lib/Transforms/ExpandFloats/SmallFloats.h"

#include "mlir/IR/TypeUtilities.h"

namespace tilewright {
#define GEN_PASS_DEF_EXPANDFLOATS
#include "lib/Transforms/ExpandFloats/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;

namespace {

/// The f32 of a small float.
Value toF32(OpBuilder &b, Location loc, Value x, bool expandF16) {
  Type element = getElementTypeOrSelf(x.getType());
  FloatBits bits(b, loc, x.getType());
  if (isa<Float8E8M0FNUType>(element))
    return bits.extendE8M0(x);
  if (isa<Float16Type>(element) && !expandF16)
    return arith::ExtFOp::create(b, loc, bits.withElement(b.getF32Type()), x);
  return bits.extend(x, *getSmallFloat(element));
}

/// An f32 as a small float.
Value fromF32(OpBuilder &b, Location loc, Value x, Type element,
              bool expandF16) {
  FloatBits bits(b, loc, x.getType());
  if (isa<Float8E8M0FNUType>(element))
    return bits.truncateE8M0(x, element);
  if (isa<Float16Type>(element) && !expandF16)
    return arith::TruncFOp::create(b, loc, bits.withElement(element), x);
  return bits.truncate(x, *getSmallFloat(element), element);
}

struct ExpandFloats : public tilewright::impl::ExpandFloatsBase<ExpandFloats> {
  using ExpandFloatsBase::ExpandFloatsBase;

  /// Whether values of the type are floats that a conversion here is about.
  static bool isSmall(Type element) {
    return isa<Float8E8M0FNUType>(element) || getSmallFloat(element);
  }

  /// Whether the processor converts between the two types itself.
  bool isNative(Type wide, Type narrow) const {
    if (!isSmall(narrow))
      return true;
    return isa<Float16Type>(narrow) && wide.isF32() && !half;
  }

  Value extend(OpBuilder &b, arith::ExtFOp op) const {
    Type target = getElementTypeOrSelf(op.getType());
    Value wide = toF32(b, op.getLoc(), op.getIn(), half);
    if (target.isF32())
      return wide;
    if (target.isF64())
      return arith::ExtFOp::create(b, op.getLoc(), op.getType(), wide);
    return fromF32(b, op.getLoc(), wide, target, half);
  }

  Value truncate(OpBuilder &b, arith::TruncFOp op) const {
    Value x = op.getIn();
    Type source = getElementTypeOrSelf(x.getType());
    if (source.isF64())
      x = FloatBits(b, op.getLoc(), x.getType()).roundToOdd(x);
    else if (!source.isF32())
      x = toF32(b, op.getLoc(), x, half);
    return fromF32(b, op.getLoc(), x, getElementTypeOrSelf(op.getType()), half);
  }

  LogicalResult expand(Operation *op) const {
    Type from = getElementTypeOrSelf(op->getOperand(0).getType());
    Type to = getElementTypeOrSelf(op->getResult(0).getType());
    bool extends = isa<arith::ExtFOp>(op);
    if (isNative(extends ? to : from, extends ? from : to))
      return success();
    auto truncation = dyn_cast<arith::TruncFOp>(op);
    if (truncation && truncation.getRoundingmode().value_or(
                          arith::RoundingMode::to_nearest_even) !=
                          arith::RoundingMode::to_nearest_even)
      return op->emitOpError("to ")
             << to << " has no expansion of this rounding mode; leave it out: "
             << "it then rounds to nearest even";
    OpBuilder b(op);
    Value result =
        extends ? extend(b, cast<arith::ExtFOp>(op)) : truncate(b, truncation);
    op->getResult(0).replaceAllUsesWith(result);
    op->erase();
    return success();
  }

  void runOnOperation() override {
    half = expandF16 || Device(getOperation()).lacksHalf();
    SmallVector<Operation *> ops;
    getOperation()->walk([&](Operation *op) {
      if (isa<arith::ExtFOp, arith::TruncFOp>(op))
        ops.push_back(op);
    });
    for (Operation *op : ops)
      if (failed(expand(op)))
        return signalPassFailure();
  }

private:
  /// Whether f16 is converted by arithmetic, too.
  bool half = false;
};

} // namespace

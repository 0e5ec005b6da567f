//===- Remainders.cpp - fmod without a library ----------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A remainder is exact, and the quotient may have two thousand bits: a division
// of integers, eleven bits at a time. All floats go through f64, which has room
// for the remainders of the others.
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/ExpandMath/MathBuilder.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <limits>

using namespace mlir;
using namespace tilewright;
using Compare = MathBuilder::Compare;

namespace {

constexpr int64_t kMantissa = 52, kBias = 1075, kStep = 11;

/// mantissa * 2^(exponent - 1075), both i64.
struct Parts {
  Value mantissa, exponent;
};

class Remainder {
public:
  Remainder(OpBuilder &b, Location loc)
      : b(b), loc(loc), m(b, loc, b.getF64Type()) {}

  Value make(Value x, Value y) {
    Parts left = split(m.abs(x)), right = split(m.abs(y));
    Value zero = m.integer(0), one = m.integer(1);
    Value divisor = arith::SelectOp::create(b, loc, m.isZeroInt(right.mantissa),
                                            one, right.mantissa);
    Value gap = m.subInt(left.exponent, right.exponent);
    Value isSmaller =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, gap, zero);
    gap = arith::SelectOp::create(b, loc, isSmaller, zero, gap);
    Value rest = divide(left.mantissa, gap, divisor);
    Value size = scale(m.intToFloat(rest), right.exponent);
    Value result = m.select(isSmaller, x, m.copysign(size, x));
    return fixEnds(x, y, result);
  }

private:
  Parts split(Value size) {
    Value bits = m.bits(size), exponent = m.shiftRight(bits, kMantissa);
    Value fraction = m.andInt(bits, m.integer((int64_t(1) << kMantissa) - 1));
    Value isDenormal = m.isZeroInt(exponent);
    Value hidden = m.integer(int64_t(1) << kMantissa);
    return {m.select(isDenormal, fraction, m.addInt(fraction, hidden)),
            m.select(isDenormal, m.integer(1), exponent)};
  }

  Value remainder(Value x, Value divisor) {
    return arith::RemUIOp::create(b, loc, x, divisor);
  }

  /// mantissa * 2^gap modulo divisor.
  Value divide(Value mantissa, Value gap, Value divisor) {
    Value step = m.integer(kStep);
    Value odd = remainder(gap, step);
    Value rest = remainder(mantissa, divisor);
    rest = remainder(arith::ShLIOp::create(b, loc, rest, odd), divisor);
    Value count = arith::DivUIOp::create(b, loc, gap, step);
    auto loop = scf::ForOp::create(b, loc, m.integer(0), count, m.integer(1),
                                   ValueRange{rest});
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value shifted = m.shiftLeft(loop.getRegionIterArg(0), kStep);
    scf::YieldOp::create(b, loc, remainder(shifted, divisor));
    return loop.getResult(0);
  }

  /// number * 2^(exponent - 1075), which is exact, in two steps, since that
  /// power alone may be denormal.
  Value scale(Value number, Value exponent) {
    Value power = m.subInt(exponent, m.integer(kBias));
    Value half = m.shiftRight(power, 1);
    auto twoTo = [&](Value n) {
      return m.fromBits(m.shiftLeft(m.addInt(n, m.integer(1023)), kMantissa));
    };
    return m.mul(m.mul(number, twoTo(half)), twoTo(m.subInt(power, half)));
  }

  /// Nothing divides by zero, and infinity has no remainder.
  Value fixEnds(Value x, Value y, Value result) {
    Value none = m.constant(std::numeric_limits<double>::quiet_NaN());
    double infinity = std::numeric_limits<double>::infinity();
    Value isFinite = m.compare(Compare::OLT, m.abs(x), infinity);
    Value divides = m.compare(Compare::OGT, m.abs(y), 0.0);
    return m.select(isFinite, m.select(divides, result, none), none);
  }

  OpBuilder &b;
  Location loc;
  MathBuilder m;
};

} // namespace

void tilewright::expandRemainders(Operation *root) {
  SmallVector<arith::RemFOp> ops;
  root->walk([&](arith::RemFOp op) {
    if (isa<FloatType>(op.getType()) && op->getParentOfType<gpu::GPUModuleOp>())
      ops.push_back(op);
  });
  for (arith::RemFOp op : ops) {
    OpBuilder b(op);
    Location loc = op.getLoc();
    Type type = op.getType(), f64 = b.getF64Type();
    auto widen = [&](Value x) -> Value {
      return type == f64 ? x : arith::ExtFOp::create(b, loc, f64, x);
    };
    Value x = widen(op.getLhs()), y = widen(op.getRhs());
    Value result = Remainder(b, loc).make(x, y);
    if (type != f64)
      result = arith::TruncFOp::create(b, loc, type, result);
    op.replaceAllUsesWith(result);
    op->erase();
  }
}

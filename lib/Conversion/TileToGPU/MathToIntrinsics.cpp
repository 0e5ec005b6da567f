//===- MathToIntrinsics.cpp - math that a GPU's instructions do -----------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDecisions.h"
#include "lib/Analysis/Device.h"
#include "lib/Conversion/TileToGPU/Passes.h"

#include "llvm/ADT/StringMap.h"

namespace tilewright {
#define GEN_PASS_DEF_MATHTOINTRINSICS
#include "lib/Conversion/TileToGPU/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;

namespace {

Value callIntrinsic(OpBuilder &b, Location loc, StringRef name, Type type,
                    ValueRange operands) {
  return LLVM::CallIntrinsicOp::create(b, loc, type, b.getStringAttr(name),
                                       operands)
      .getResult(0);
}

Value constantLike(OpBuilder &b, Location loc, Type type, double value) {
  return arith::ConstantOp::create(b, loc, b.getFloatAttr(type, value));
}

/// An instruction, or a few: LLVM's intrinsic of the name.
StringRef nativeName(Operation *op) {
  static const llvm::StringMap<StringRef> table = {
      {"arith.maxnumf", "maxnum"},
      {"arith.minnumf", "minnum"},
      {"math.absf", "fabs"},
      {"math.absi", "abs"},
      {"math.ceil", "ceil"},
      {"math.copysign", "copysign"},
      {"math.ctlz", "ctlz"},
      {"math.ctpop", "ctpop"},
      {"math.cttz", "cttz"},
      {"math.floor", "floor"},
      {"math.fma", "fma"},
      {"math.round", "round"},
      {"math.roundeven", "roundeven"},
      {"math.sqrt", "sqrt"},
      {"math.trunc", "trunc"},
      {"math.exp2", "exp2"}};
  return table.lookup(op->getName().getStringRef());
}

/// 16-bit floats have instructions for these only; the others go through f32.
bool isForSmallFloats(Operation *op) {
  return isa<math::AbsFOp, math::FmaOp, math::CopySignOp>(op);
}

std::string typeName(Type type) {
  if (type.isBF16())
    return "bf16";
  return ((isa<FloatType>(type) ? "f" : "i") +
          Twine(type.getIntOrFloatBitWidth()))
      .str();
}

class MathRewriter {
public:
  MathRewriter(Operation *op, bool fast)
      : op(op), b(op), loc(op->getLoc()), fast(fast) {}

  /// Whether there is nothing left to do for another pass.
  bool run() {
    Type type = op->getResult(0).getType();
    if (!type.isIntOrIndexOrFloat())
      return false;
    SmallVector<Value> operands(op->getOperands());
    Type wide = type;
    bool isSmall = isa<FloatType>(type) && type.getIntOrFloatBitWidth() < 32;
    if (isSmall && !isForSmallFloats(op)) {
      wide = b.getF32Type();
      for (Value &operand : operands)
        operand = arith::ExtFOp::create(b, loc, wide, operand);
    }
    Value result = make(wide, operands);
    if (!result)
      return false;
    if (result.getType() != type)
      result = arith::TruncFOp::create(b, loc, type, result);
    op->getResult(0).replaceAllUsesWith(result);
    op->erase();
    return true;
  }

private:
  Value call(StringRef name, Type type, ValueRange operands) {
    return callIntrinsic(b, loc, name, type, operands);
  }
  Value mul(Value x, Value y) { return arith::MulFOp::create(b, loc, x, y); }

  Value make(Type type, ArrayRef<Value> operands) {
    if (Value approximate = type.isF32() ? makeF32(type, operands) : Value())
      return approximate;
    if (isa<math::IsNaNOp, math::IsInfOp, math::IsFiniteOp>(op))
      return makeTest(operands[0]);
    StringRef name = nativeName(op);
    if (name.empty() || (name == "exp2" && !type.isF32()) || type.isIndex())
      return {};
    SmallVector<Value> arguments(operands);
    if (isa<math::AbsIOp, math::CountLeadingZerosOp,
            math::CountTrailingZerosOp>(op))
      arguments.push_back(
          arith::ConstantOp::create(b, loc, b.getBoolAttr(false)));
    return call(("llvm." + name + "." + typeName(type)).str(), type, arguments);
  }

  /// By what the special function unit computes: to 2 units in the last place,
  /// or as it is where `fast` is set.
  Value makeF32(Type type, ArrayRef<Value> x) {
    if (isa<math::ExpOp>(op))
      return fast ? makeFastExp(type, x[0]) : makeExp(type, x[0]);
    if (isa<math::RsqrtOp>(op))
      return fast ? call("llvm.nvvm.rsqrt.approx.f", type, x)
                  : makeRsqrt(type, x[0]);
    return fast ? makeApproximation(type, x) : Value();
  }

  Value makeFastExp(Type type, Value x) {
    constexpr double log2e = 1.4426950408889634;
    return call("llvm.nvvm.ex2.approx.ftz.f32", type,
                mul(x, constantLike(b, loc, type, log2e)));
  }

  /// One instruction of the unit (PTX ISA, "Floating point instructions"), and
  /// a multiplication where its base is another one.
  Value makeApproximation(Type type, ArrayRef<Value> x) {
    if (isa<math::TanhOp>(op)) // no intrinsic has it
      return LLVM::InlineAsmOp::create(
                 b, loc, type, x, "tanh.approx.f32 $0, $1;", "=f,f",
                 /*has_side_effects=*/false, /*is_align_stack=*/false,
                 LLVM::tailcallkind::TailCallKind::None, LLVM::AsmDialectAttr(),
                 ArrayAttr())
          .getRes();
    struct Unit {
      StringRef name;
      double factor;
    };
    static const llvm::StringMap<Unit> table = {
        {"math.exp2", {"ex2.approx.ftz.f32", 1.0}},
        {"math.log", {"lg2.approx.f", 0.693147180559945309}},
        {"math.log2", {"lg2.approx.f", 1.0}},
        {"math.log10", {"lg2.approx.f", 0.301029995663981195}},
        {"math.sin", {"sin.approx.f", 1.0}},
        {"math.cos", {"cos.approx.f", 1.0}},
        {"math.sqrt", {"sqrt.approx.f", 1.0}},
    };
    Unit unit = table.lookup(op->getName().getStringRef());
    if (unit.name.empty())
      return {};
    Value result = call(("llvm.nvvm." + unit.name).str(), type, x);
    return unit.factor == 1.0
               ? result
               : mul(result, constantLike(b, loc, type, unit.factor));
  }

  /// exp(x) = 2^p * (1 + t), p being x * log2(e) as it is rounded, and t * log2
  /// of e what that lost. The unit is within 2^-22.5 of a result in [1, 2), or
  /// 1.42 units in the last place; the last fma adds half of one.
  Value makeExp(Type type, Value x) {
    constexpr double high = 1.44269502162933349609375; // f32(log2 e)
    constexpr double low = 1.925963033500011079e-08;   // log2 e - high
    constexpr double ln2 = 0.693147180559945309;
    auto number = [&](double value) {
      return constantLike(b, loc, type, value);
    };
    auto fma = [&](Value first, Value second, Value third) {
      return call("llvm.fma.f32", type, {first, second, third});
    };
    // Past these 0 and infinity come out; NaN stays.
    x = arith::MinimumFOp::create(b, loc, x, number(90.0));
    x = arith::MaximumFOp::create(b, loc, x, number(-110.0));
    // A power that is infinite has no product with t.
    Value product = arith::MinimumFOp::create(b, loc, mul(x, number(high)),
                                              number(127.99999));
    Value rest = fma(x, number(high), arith::NegFOp::create(b, loc, product));
    rest = fma(x, number(low), rest);
    Value power = call("llvm.exp2.f32", type, product);
    return fma(power, mul(rest, number(ln2)), power);
  }

  /// The unit is within 2^-22.9 of the result, 2.2 units in the last place;
  /// a step of Newton leaves less than one.
  Value makeRsqrt(Type type, Value x) {
    Value root = call("llvm.nvvm.rsqrt.approx.f", type, x);
    Value error = call("llvm.fma.f32", type,
                       {arith::NegFOp::create(b, loc, mul(x, root)), root,
                        constantLike(b, loc, type, 1.0)});
    Value half = mul(root, constantLike(b, loc, type, 0.5));
    Value better = call("llvm.fma.f32", type, {half, error, root});
    // 0 * infinity: the ends are the unit's.
    Value inside =
        arith::CmpFOp::create(b, loc, arith::CmpFPredicate::ORD, error, error);
    return arith::SelectOp::create(b, loc, inside, better, root);
  }

  Value makeTest(Value x) {
    Value infinity = constantLike(b, loc, x.getType(),
                                  std::numeric_limits<double>::infinity());
    Value size = call("llvm.fabs." + typeName(x.getType()), x.getType(), x);
    auto predicate = isa<math::IsNaNOp>(op)   ? arith::CmpFPredicate::UNO
                     : isa<math::IsInfOp>(op) ? arith::CmpFPredicate::OEQ
                                              : arith::CmpFPredicate::OLT;
    return arith::CmpFOp::create(b, loc, predicate, size, infinity);
  }

  Operation *op;
  OpBuilder b;
  Location loc;
  bool fast;
};

struct MathToIntrinsics
    : public tilewright::impl::MathToIntrinsicsBase<MathToIntrinsics> {
  using MathToIntrinsicsBase::MathToIntrinsicsBase;

  void runOnOperation() override {
    bool rough = fast || Device(getOperation()).getOption("accuracy") == "fast";
    SmallVector<Operation *> ops;
    getOperation()->walk([&](gpu::GPUModuleOp device) {
      device.walk([&](Operation *op) {
        if (isa_and_nonnull<math::MathDialect>(op->getDialect()) ||
            isa<arith::MaxNumFOp, arith::MinNumFOp>(op))
          ops.push_back(op);
      });
    });
    for (Operation *op : ops)
      MathRewriter(op, rough || op->hasAttr(tile::decisions::kApproximate))
          .run();
  }
};

} // namespace

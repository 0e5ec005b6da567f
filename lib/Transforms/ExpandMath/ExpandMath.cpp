//===- ExpandMath.cpp - the pass ------------------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/Device.h"
#include "lib/Transforms/ExpandMath/Doubles.h"
#include "lib/Transforms/ExpandMath/Passes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"

#include "llvm/ADT/StringMap.h"

namespace tilewright {
#define GEN_PASS_DEF_EXPANDMATH
#include "lib/Transforms/ExpandMath/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;

namespace {

using Expansion = Value (*)(const MathBuilder &, ValueRange);

template <Value (*function)(const MathBuilder &, Value)>
Value unary(const MathBuilder &m, ValueRange operands) {
  return function(m, operands[0]);
}

template <Value (*function)(const MathBuilder &, Value, Value)>
Value binary(const MathBuilder &m, ValueRange operands) {
  return function(m, operands[0], operands[1]);
}

Value expandRsqrt(const MathBuilder &m, ValueRange operands) {
  return m.div(m.constant(1.0), m.sqrt(operands[0]));
}

Expansion findExpansion(StringRef name) {
  static const llvm::StringMap<Expansion> table = {
      {"math.exp", unary<expandExp>},     {"math.exp2", unary<expandExp2>},
      {"math.expm1", unary<expandExpM1>}, {"math.erf", unary<expandErf>},
      {"math.erfc", unary<expandErfc>},   {"math.tanh", unary<expandTanh>},
      {"math.sinh", unary<expandSinh>},   {"math.cosh", unary<expandCosh>},
      {"math.log", unary<expandLog>},     {"math.log2", unary<expandLog2>},
      {"math.log10", unary<expandLog10>}, {"math.log1p", unary<expandLog1p>},
      {"math.powf", binary<expandPow>},   {"math.cbrt", unary<expandCbrt>},
      {"math.asinh", unary<expandAsinh>}, {"math.acosh", unary<expandAcosh>},
      {"math.atanh", unary<expandAtanh>}, {"math.sin", unary<expandSin>},
      {"math.cos", unary<expandCos>},     {"math.tan", unary<expandTan>},
      {"math.atan", unary<expandAtan>},   {"math.asin", unary<expandAsin>},
      {"math.acos", unary<expandAcos>},   {"math.atan2", binary<expandAtan2>},
      {"math.rsqrt", expandRsqrt},
  };
  return table.lookup(name);
}

/// The operation on f64; null where there is no expansion.
Value expandDouble(Operation *op, const MathBuilder &m) {
  Value x = op->getOperand(0);
  if (isa<math::RsqrtOp>(op))
    return expandRsqrt(m, op->getOperands());
  if (isa<math::PowFOp>(op))
    return powOfDouble(m, x, op->getOperand(1));
  if (isa<math::Atan2Op>(op))
    return atan2OfDouble(m, x, op->getOperand(1));
  UnaryExpansion expansion = findDoubleExpansion(op->getName().getStringRef());
  return expansion ? expansion(m, x) : Value();
}

/// Functions that a processor computes without a library.
bool isNative(Operation *op) {
  return isa<math::AbsFOp, math::AbsIOp, math::CeilOp, math::FloorOp,
             math::FmaOp, math::RoundOp, math::RoundEvenOp, math::TruncOp,
             math::SqrtOp, math::CopySignOp, math::CountLeadingZerosOp,
             math::CountTrailingZerosOp, math::CtPopOp, math::IsFiniteOp,
             math::IsInfOp, math::IsNaNOp, math::IsNormalOp>(op);
}

/// The host may call the C library for f64; kernels may not.
bool isForLibrary(Operation *op) {
  Type element = getElementTypeOrSelf(op->getResult(0).getType());
  if (!element.isF64() || isa<math::RsqrtOp>(op))
    return false;
  for (Operation *parent = op->getParentOp(); parent;
       parent = parent->getParentOp())
    if (isa<func::FuncOp>(parent))
      return true;
  return false;
}

Type f32Like(Type type) {
  Type f32 = Float32Type::get(type.getContext());
  if (auto shaped = dyn_cast<VectorType>(type))
    return shaped.clone(f32);
  return f32;
}

LogicalResult failWithoutExpansion(Operation *op) {
  return op->emitOpError("on ")
         << getElementTypeOrSelf(op->getResult(0).getType())
         << " has no expansion into arithmetic, and kernels call no math "
            "library; write it with the functions that tile-expand-math knows";
}

LogicalResult expand(Operation *op, bool avx512) {
  Type type = op->getResult(0).getType();
  unsigned bits = getElementTypeOrSelf(type).getIntOrFloatBitWidth();
  OpBuilder b(op);
  Location loc = op->getLoc();
  Type wide = bits < 32 ? f32Like(type) : type;
  MathBuilder m(b, loc, wide, avx512);
  Value result;
  if (bits == 64) {
    result = expandDouble(op, m);
  } else if (Expansion expansion =
                 findExpansion(op->getName().getStringRef())) {
    SmallVector<Value> operands(op->getOperands());
    if (bits < 32)
      for (Value &operand : operands)
        operand = arith::ExtFOp::create(b, loc, wide, operand);
    result = expansion(m, operands);
  }
  if (!result)
    return failWithoutExpansion(op);
  if (bits < 32)
    result = arith::TruncFOp::create(b, loc, type, result);
  op->getResult(0).replaceAllUsesWith(result);
  op->erase();
  return success();
}

/// Whether a division is worth that: on a CPU one of vectors, on a GPU each
/// (PTX has a subroutine for its rare ends, and what lives across spills).
bool isOfKernel(arith::DivFOp op) {
  return isa<VectorType>(op.getType()) ||
         op->getParentOfType<gpu::GPUModuleOp>();
}

/// Divisions by constants inside kernels.
void expandDivisions(Operation *root, bool avx512) {
  SmallVector<arith::DivFOp> divisions;
  root->walk([&](arith::DivFOp op) {
    if (isOfKernel(op))
      divisions.push_back(op);
  });
  for (arith::DivFOp op : divisions) {
    std::optional<double> by = reciprocalOf(op.getRhs());
    if (!by)
      continue;
    OpBuilder b(op);
    MathBuilder m(b, op.getLoc(), op.getType(), avx512);
    op.replaceAllUsesWith(expandDivision(m, op.getLhs(), op.getRhs(), *by));
    op.erase();
  }
}

/// Sums of 1 and an exponential, on f32: logistic functions. What stays of the
/// exponentials has no reader.
void expandLogistic(Operation *root, bool avx512) {
  SmallVector<arith::AddFOp> sums;
  root->walk([&](arith::AddFOp op) {
    if (getElementTypeOrSelf(op.getType()).isF32())
      sums.push_back(op);
  });
  for (arith::AddFOp op : sums) {
    bool isFirst = matchPattern(op.getRhs(), m_OneFloat());
    if (!isFirst && !matchPattern(op.getLhs(), m_OneFloat()))
      continue;
    auto exp = op->getOperand(isFirst ? 0 : 1).getDefiningOp<math::ExpOp>();
    if (!exp || !exp->hasOneUse())
      continue;
    auto negation = exp.getOperand().getDefiningOp<arith::NegFOp>();
    OpBuilder b(op);
    MathBuilder m(b, op.getLoc(), op.getType(), avx512);
    Value x = negation ? negation.getOperand() : exp.getOperand();
    op.replaceAllUsesWith(expandOnePlusExp(m, x, negation != nullptr));
    op.erase();
    exp.erase();
  }
}

struct ExpandMath : public tilewright::impl::ExpandMathBase<ExpandMath> {
  using ExpandMathBase::ExpandMathBase;

  void runOnOperation() override {
    bool wide =
        avx512 || Device(getOperation()).getVectorBits().value_or(0) >= 512;
    expandLogistic(getOperation(), wide);
    SmallVector<Operation *> ops;
    getOperation()->walk([&](Operation *op) {
      if (isa_and_nonnull<math::MathDialect>(op->getDialect()) &&
          !isNative(op) && !isForLibrary(op))
        ops.push_back(op);
    });
    expandDivisions(getOperation(), wide);
    for (Operation *op : ops)
      if (failed(expand(op, wide)))
        return signalPassFailure();
    expandRemainders(getOperation());
  }
};

} // namespace

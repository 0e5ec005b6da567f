//===- GPUMathToAMDGCN.cpp - math that the back end expands --------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/GPUToROCm/Passes.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/StringSwitch.h"

namespace tilewright {
#define GEN_PASS_DEF_GPUMATHTOAMDGCN
#include "lib/Conversion/GPUToROCm/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;

/// The intrinsic of a math op; empty where the back end has none.
static StringRef getIntrinsic(Operation *op) {
  return llvm::StringSwitch<StringRef>(op->getName().getStringRef())
      .Case("math.absf", "llvm.fabs")
      .Case("math.ceil", "llvm.ceil")
      .Case("math.copysign", "llvm.copysign")
      .Case("math.cos", "llvm.cos")
      .Case("math.exp", "llvm.exp")
      .Case("math.exp2", "llvm.exp2")
      .Case("math.floor", "llvm.floor")
      .Case("math.fma", "llvm.fma")
      .Case("math.log", "llvm.log")
      .Case("math.log10", "llvm.log10")
      .Case("math.log2", "llvm.log2")
      .Case("math.rint", "llvm.rint")
      .Case("math.roundeven", "llvm.roundeven")
      .Case("math.sin", "llvm.sin")
      .Case("math.sqrt", "llvm.sqrt")
      .Case("math.trunc", "llvm.trunc")
      .Default("");
}

/// Whether the expansion exists for f32 and f16 only.
static bool isTranscendental(Operation *op) {
  return isa<math::CosOp, math::ExpOp, math::Exp2Op, math::LogOp, math::Log10Op,
             math::Log2Op, math::SinOp>(op);
}

static Value callIntrinsic(OpBuilder &b, Location loc, StringRef name,
                           Type type, ValueRange operands) {
  std::string full = (name + ".f" + Twine(type.getIntOrFloatBitWidth())).str();
  return LLVM::CallIntrinsicOp::create(b, loc, type, b.getStringAttr(full),
                                       operands)
      .getResult(0);
}

namespace {

struct GPUMathToAMDGCN
    : public tilewright::impl::GPUMathToAMDGCNBase<GPUMathToAMDGCN> {
  void runOnOperation() override {
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) {
      if (isa_and_nonnull<math::MathDialect>(op->getDialect()))
        ops.push_back(op);
    });
    for (Operation *op : ops)
      if (failed(replace(op)))
        return signalPassFailure();
  }

  LogicalResult replace(Operation *op) {
    Type type = op->getResult(0).getType();
    bool known =
        type.isF16() || type.isF32() || (type.isF64() && !isTranscendental(op));
    StringRef name =
        isa<math::RsqrtOp>(op) ? StringRef("llvm.sqrt") : getIntrinsic(op);
    if (!known || name.empty())
      return op->emitOpError("of ")
             << type
             << " has no expansion in the AMDGPU back end; take it "
                "apart into functions that have one (exp, log, ...)";
    OpBuilder b(op);
    Location loc = op->getLoc();
    Value result = callIntrinsic(b, loc, name, type, op->getOperands());
    if (isa<math::RsqrtOp>(op)) {
      Value one = arith::ConstantOp::create(b, loc, b.getFloatAttr(type, 1.0));
      result = arith::DivFOp::create(b, loc, one, result);
    }
    op->getResult(0).replaceAllUsesWith(result);
    op->erase();
    return success();
  }
};

} // namespace

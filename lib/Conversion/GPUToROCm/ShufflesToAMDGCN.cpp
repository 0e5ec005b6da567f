//===- ShufflesToAMDGCN.cpp - exchanges within a wave --------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/GPUToROCm/Passes.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Matchers.h"

namespace tilewright {
#define GEN_PASS_DEF_SHUFFLESTOAMDGCN
#include "lib/Conversion/GPUToROCm/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;

static Value constant(OpBuilder &b, Location loc, int32_t value) {
  return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(value));
}

static Value call(OpBuilder &b, Location loc, StringRef name,
                  ValueRange operands) {
  return LLVM::CallIntrinsicOp::create(b, loc, b.getI32Type(),
                                       b.getStringAttr(name), operands)
      .getResult(0);
}

/// The lane's number within its wave: lanes before it, of all 64.
static Value getLane(OpBuilder &b, Location loc) {
  Value all = constant(b, loc, -1);
  Value low = call(b, loc, "llvm.amdgcn.mbcnt.lo", {all, constant(b, loc, 0)});
  return call(b, loc, "llvm.amdgcn.mbcnt.hi", {all, low});
}

/// The lane of the wave that `op` reads from; null where it says more than a
/// lane of 32.
static Value getSource(OpBuilder &b, NVVM::ShflOp op) {
  Location loc = op.getLoc();
  APInt clamp;
  if (!matchPattern(op.getMaskAndClamp(), m_ConstantInt(&clamp)) ||
      clamp != 31 || op.getReturnValueAndIsValid())
    return nullptr;
  Value lane = getLane(b, loc);
  if (op.getKind() == NVVM::ShflKind::bfly)
    return arith::XOrIOp::create(b, loc, lane, op.getOffset());
  if (op.getKind() != NVVM::ShflKind::idx)
    return nullptr;
  Value half = arith::AndIOp::create(b, loc, lane, constant(b, loc, 32));
  Value other =
      arith::AndIOp::create(b, loc, op.getOffset(), constant(b, loc, 31));
  return arith::OrIOp::create(b, loc, half, other);
}

namespace {

struct ShufflesToAMDGCN
    : public tilewright::impl::ShufflesToAMDGCNBase<ShufflesToAMDGCN> {
  void runOnOperation() override {
    SmallVector<NVVM::ShflOp> shuffles;
    getOperation().walk([&](NVVM::ShflOp op) { shuffles.push_back(op); });
    for (NVVM::ShflOp op : shuffles)
      if (failed(replace(op)))
        return signalPassFailure();
  }

  LogicalResult replace(NVVM::ShflOp op) {
    OpBuilder b(op);
    Location loc = op.getLoc();
    if (op.getRes().getType() != b.getI32Type())
      return op.emitOpError("of ")
             << op.getRes().getType() << ": exchange words of i32";
    Value source = getSource(b, op);
    if (!source)
      return op.emitOpError("has no form for a wave of 64 lanes: only modes "
                            "bfly and idx over 32 lanes have");
    Value address = arith::ShLIOp::create(b, loc, source, constant(b, loc, 2));
    op.getRes().replaceAllUsesWith(
        call(b, loc, "llvm.amdgcn.ds.bpermute", {address, op.getVal()}));
    op.erase();
    return success();
  }
};

} // namespace

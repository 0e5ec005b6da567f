//===- MaterializeFills.cpp - tile-materialize-fills ----------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/Elements.h"
#include "lib/Analysis/Device.h"
#include "lib/Transforms/Plan/PaddingFills.h"
#include "lib/Transforms/Plan/Passes.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_MATERIALIZEFILLS
#include "lib/Transforms/Plan/Passes.h.inc"

namespace {

/// Only operations that start from the fill use it.
bool onlyInitializes(linalg::FillOp fill) {
  return llvm::all_of(fill->getUses(), [](OpOperand &use) {
    auto op = dyn_cast<linalg::GenericOp>(use.getOwner());
    return op && op.isDpsInit(&use);
  });
}

/// A constant in a tensor that kernels can make; others are filled on the host.
bool isForKernels(linalg::FillOp fill) {
  auto type = dyn_cast<RankedTensorType>(fill.getOutputs()[0].getType());
  if (!type || llvm::is_contained(type.getShape(), 0) ||
      !matchPattern(fill.getInputs()[0], m_Constant()))
    return false;
  return hasTiles(type.getElementType());
}

/// The least bytes of a tensor: each open size is at least one where there is
/// work.
int64_t bytesOf(Type kind) {
  auto type = cast<RankedTensorType>(kind);
  int64_t bytes = llvm::divideCeil(type.getElementTypeBitWidth(), 8);
  for (int64_t size : type.getShape())
    bytes *= ShapedType::isDynamic(size) ? 1 : size;
  return bytes;
}

struct MaterializeFills : public impl::MaterializeFillsBase<MaterializeFills> {
  using MaterializeFillsBase::MaterializeFillsBase;
  void runOnOperation() override {
    SmallVector<linalg::FillOp> fills;
    getOperation()->walk([&](linalg::FillOp fill) {
      if (isForKernels(fill) && !onlyInitializes(fill))
        fills.push_back(fill);
    });
    if (fills.empty())
      return markAllAnalysesPreserved();
    int64_t whole = wholeBelow;
    if (whole < 0)
      whole = Device(getOperation()).getBytesPerLaunch().value_or(0);
    for (linalg::FillOp fill : fills) {
      if (bytesOf(fill.getResult(0).getType()) >= whole)
        fillPaddingOnly(fill);
      if (!onlyInitializes(fill))
        materialize(fill);
      else if (fill->use_empty())
        fill->erase();
    }
  }

  static void materialize(linalg::FillOp fill) {
    OpBuilder builder(fill);
    Value whole = fillAsGeneric(builder, fill.getLoc(), fill.getOutputs()[0],
                                fill.getInputs()[0]);
    fill->getResult(0).replaceUsesWithIf(whole, [](OpOperand &use) {
      auto op = dyn_cast<linalg::GenericOp>(use.getOwner());
      return !op || !op.isDpsInit(&use);
    });
    if (fill->use_empty())
      fill->erase();
  }
};

} // namespace
} // namespace tilewright

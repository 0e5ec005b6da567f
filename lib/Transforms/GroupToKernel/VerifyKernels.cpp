//===- VerifyKernels.cpp - tile-verify-kernels ----------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/Tile.h"
#include "lib/Transforms/GroupToKernel/Passes.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_VERIFYKERNELS
#include "lib/Transforms/GroupToKernel/Passes.h.inc"

namespace {

struct VerifyKernels : public impl::VerifyKernelsBase<VerifyKernels> {
  void runOnOperation() override {
    bool ok = true;
    getOperation().walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (isa<tile::GroupOp>(op)) {
        op->emitError("is left after `tile`, which makes a kernel of each "
                      "outermost group");
        ok = false;
      }
      bool tensorLevel =
          isa_and_nonnull<linalg::LinalgDialect, tensor::TensorDialect>(
              op->getDialect());
      if (tensorLevel && op->getParentOfType<tile::KernelOp>()) {
        op->emitError("is in a kernel after `tile`: kernels hold tile, arith, "
                      "math, scf, affine and memref operations only");
        ok = false;
        return WalkResult::skip();
      }
      return WalkResult::advance();
    });
    if (!ok)
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};

} // namespace
} // namespace tilewright

//===- ConvertTileToVector.cpp - the pass ---------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDecisions.h"
#include "lib/Analysis/Device.h"
#include "lib/Conversion/TileToVector/MemoryAccess.h"
#include "lib/Conversion/TileToVector/Passes.h"
#include "lib/Conversion/TileToVector/TileParts.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/Transforms/Patterns.h"

namespace tilewright {
#define GEN_PASS_DEF_CONVERTTILETOVECTOR
#include "lib/Conversion/TileToVector/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;

namespace {

bool usesTiles(Operation *op) {
  auto isTile = [](Type type) {
    return isa<tile::TileType, tile::TokenType>(type);
  };
  return llvm::any_of(op->getOperandTypes(), isTile) ||
         llvm::any_of(op->getResultTypes(), isTile);
}

struct ConvertTileToVector
    : public tilewright::impl::ConvertTileToVectorBase<ConvertTileToVector> {
  using ConvertTileToVectorBase::ConvertTileToVectorBase;

  void runOnOperation() override {
    Device device(getOperation());
    int64_t width = vectorBits;
    if (width == 0)
      width = device.getVectorBits().value_or(512);
    if (width < 128 || !llvm::isPowerOf2_64(width)) {
      getOperation().emitError("vectors of ")
          << width
          << " bits were asked for (vector-bits or tile.device), but that must"
             " be a power of two of at least 128";
      return signalPassFailure();
    }
    DotUnits units;
    if (dots.empty())
      units = {device.addsProductsOf("bf16"), device.addsProductsOf("i8")};
    for (const std::string &name : dots) {
      if (name != "bf16" && name != "i8") {
        getOperation().emitError("dots names ")
            << name << "; there are instructions for bf16 and i8";
        return signalPassFailure();
      }
      (name == "i8" ? units.i8 : units.bf16) = true;
    }
    // Lanes follow 32-bit elements for every type, so that a compare of i64,
    // the i1 it gives and the f32 it selects are cut alike.
    TilePartsConverter converter(width / 32);
    ConversionTarget target(getContext());
    target.markUnknownOpDynamicallyLegal(
        [](Operation *op) { return !usesTiles(op); });
    target.addIllegalOp<tile::CopyOp, tile::AsyncOp, tile::AwaitOp,
                        tile::BarrierOp>();
    RewritePatternSet patterns(&getContext());
    populateCopyPatterns(converter, patterns);
    populateElementwisePatterns(converter, patterns);
    populateMemoryPatterns(converter, patterns);
    populateMatrixPatterns(converter, patterns);
    populateMmaPatterns(converter, units, patterns);
    populateReducePatterns(converter, patterns);
    populateShapePatterns(converter, patterns);
    if (device.isCPU() && width >= 256 && device.getVectorBits() >= width)
      populateTablePatterns(converter, patterns);
    scf::populateSCFStructuralTypeConversionsAndLegality(converter, patterns,
                                                         target);
    if (failed(applyPartialConversion(getOperation(), target,
                                      std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace

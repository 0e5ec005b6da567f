//===- ConvertTileToGPU.cpp - tiles become registers ----------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDecisions.h"
#include "lib/Conversion/TileToGPU/DistributedTiles.h"
#include "lib/Conversion/TileToGPU/Fragments.h"
#include "lib/Conversion/TileToGPU/MemoryAccess.h"
#include "lib/Conversion/TileToGPU/TaskWaits.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/Transforms/Patterns.h"

namespace tilewright {
#define GEN_PASS_DEF_CONVERTTILETOGPU
#include "lib/Conversion/TileToGPU/Passes.h.inc"
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

/// How wide each access may be: what that follows from is about to change.
void noteVectors(gpu::GPUFuncOp function) {
  Builder b(function.getContext());
  auto note = [&](auto op) {
    op->setAttr(tile::decisions::kVector,
                b.getI64IntegerAttr(AccessShape::of(op).getVectorSize()));
  };
  function.walk([&](tile::LoadOp op) { note(op); });
  function.walk([&](tile::StoreOp op) { note(op); });
}

/// A scalar is stored once, not by each thread. Beside launches all blocks have
/// it, which meet there: tile-inline-launches sees to that.
void storeScalarsOnce(gpu::GPUFuncOp function) {
  auto launches = [](tile::LaunchOp) { return WalkResult::interrupt(); };
  if (function->hasAttr(tile::decisions::kOneThread) ||
      function.walk(launches).wasInterrupted())
    return;
  SmallVector<Operation *> stores;
  function.walk([&](Operation *op) {
    if (auto store = dyn_cast<memref::StoreOp>(op))
      if (!store.getMemref().getDefiningOp<memref::AllocaOp>())
        stores.push_back(op);
  });
  for (Operation *store : stores) {
    OpBuilder b(store);
    Location loc = store->getLoc();
    Value isFirst =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                              getThreadNumber(b, loc), constantI32(b, loc, 0));
    auto branch = scf::IfOp::create(b, loc, isFirst, /*withElse=*/false);
    store->moveBefore(branch.thenBlock()->getTerminator());
  }
}

struct ConvertTileToGPU
    : public tilewright::impl::ConvertTileToGPUBase<ConvertTileToGPU> {
  using ConvertTileToGPUBase::ConvertTileToGPUBase;

  void runOnOperation() override {
    WalkResult result = getOperation()->walk([&](gpu::GPUFuncOp function) {
      return failed(convert(function)) ? WalkResult::interrupt()
                                       : WalkResult::skip();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }

private:
  LogicalResult convert(gpu::GPUFuncOp function) {
    if (!function->hasAttr(tile::decisions::kThreads))
      return success();
    if (failed(checkDistributedLayouts(function)))
      return failure();
    storeScalarsOnce(function);
    lowerTaskWaits(function);
    noteVectors(function);
    int64_t unit = getCapability(arch, function);
    DistributedConverter converter(unit);
    ConversionTarget target(getContext());
    target.markUnknownOpDynamicallyLegal(
        [](Operation *op) { return !usesTiles(op); });
    target.addIllegalOp<tile::CopyOp, tile::AsyncOp, tile::AwaitOp,
                        tile::BarrierOp>();
    RewritePatternSet patterns(&getContext());
    populateDistributedElementwisePatterns(converter, patterns);
    populateDistributedMemoryPatterns(converter, patterns);
    populateDistributedCopyPatterns(converter, patterns);
    populateDistributedReducePatterns(converter, patterns);
    populateDistributedShapePatterns(converter, patterns);
    populateRelayoutPatterns(converter, patterns);
    populateFmaPatterns(converter, patterns);
    if (isAmd(unit))
      populateMfmaPatterns(converter, patterns);
    else
      populateMmaSyncPatterns(converter, patterns);
    populateWgmmaPatterns(converter, patterns);
    populateStagedStorePatterns(converter, patterns);
    scf::populateSCFStructuralTypeConversionsAndLegality(converter, patterns,
                                                         target);
    return applyPartialConversion(function, target, std::move(patterns));
  }

  /// Every tile must say where it lies, over as many threads as there are.
  static LogicalResult checkDistributedLayouts(gpu::GPUFuncOp function) {
    int64_t threads = tile::decisions::kThreads.get(function).getInt();
    auto check = [&](Operation *op, Type type) -> LogicalResult {
      auto tile = dyn_cast<tile::TileType>(type);
      if (!tile || tile.isInShared())
        return success();
      auto layout = LinearLayout::of(tile);
      if (!layout)
        return op->emitOpError("has a tile without a #tile.distributed; run "
                               "tile-assign-distributed-layouts before");
      if (layout->getNumThreads() > threads)
        return op->emitOpError("has a tile that is distributed over ")
               << layout->getNumThreads() << " threads in a kernel of "
               << threads;
      return success();
    };
    WalkResult result = function.walk([&](Operation *op) {
      for (Type type : op->getResultTypes())
        if (failed(check(op, type)))
          return WalkResult::interrupt();
      return WalkResult::advance();
    });
    return failure(result.wasInterrupted());
  }
};

} // namespace

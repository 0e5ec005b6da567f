//===- FetchMatrices.cpp - what follows a product, fetched beside it ------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDecisions.h"
#include "lib/Analysis/Device.h"
#include "lib/Transforms/Pipelining/Passes.h"
#include "lib/Transforms/Pipelining/RingLoads.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_FETCHMATRICES
#include "lib/Transforms/Pipelining/Passes.h.inc"

namespace {

/// Whether a loop with products stands in or at `op`.
bool multiplies(Operation *op) {
  return op
      ->walk([](tile::MmaOp mma) {
        return mma->getParentOfType<scf::ForOp>() ? WalkResult::interrupt()
                                                  : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Whether a tile extends along two dimensions or more: rows of numbers are
/// small, and each thread reads those of its columns.
bool isMatrix(tile::LoadOp load) {
  return llvm::count_if(load.getType().getShape(),
                        [](int64_t size) { return size > 1; }) > 1;
}

struct FetchMatrices
    : public tilewright::impl::FetchMatricesBase<FetchMatrices> {
  void runOnOperation() override {
    if (Device(getOperation()).lacksHopper())
      return;
    getOperation()->walk([](tile::KernelOp kernel) {
      if (kernel->hasAttr(tile::decisions::kFetched) &&
          kernel->hasAttr(tile::decisions::kSpecialized))
        fetch(kernel);
    });
  }

private:
  static void fetch(tile::KernelOp kernel) {
    SmallVector<tile::LoadOp> loads;
    bool behind = false;
    for (Operation &op : kernel.getBody().front()) {
      behind |= multiplies(&op);
      auto load = dyn_cast<tile::LoadOp>(op);
      if (load && behind && isMatrix(load) && !isInShared(load))
        loads.push_back(load);
    }
    for (tile::LoadOp load : loads) {
      std::string reason;
      std::optional<RingLoad> slot = analyzeOnceLoad(load, reason);
      if (!slot) {
        load.emitRemark("is not fetched beside the product, since it ")
            << reason;
        continue;
      }
      Value buffer = copyOnce(*slot);
      OpBuilder b(load);
      Value first = arith::ConstantIndexOp::create(b, load.getLoc(), 0);
      load.getResult().replaceAllUsesWith(loadSlot(b, *slot, buffer, first));
      load.erase();
    }
  }

  static bool isInShared(tile::LoadOp load) {
    auto level = dyn_cast_or_null<tile::LevelAttr>(
        load.getMemRefType().getMemorySpace());
    return level && level.getName() == "shared";
  }
};

} // namespace
} // namespace tilewright

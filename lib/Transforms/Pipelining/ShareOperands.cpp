//===- ShareOperands.cpp - operands that shared memory holds for long -----===//
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
#define GEN_PASS_DEF_SHAREOPERANDS
#include "lib/Transforms/Pipelining/Passes.h.inc"

namespace {

/// Whether only products read the tile, as operands.
bool isProductOperand(tile::LoadOp load) {
  return !load->use_empty() &&
         llvm::all_of(load->getUses(), [](OpOperand &use) {
           return isa<tile::MmaOp>(use.getOwner()) &&
                  use.getOperandNumber() < 2;
         });
}

/// Whether the load runs at most once.
bool runsOnce(tile::LoadOp load) {
  Operation *parent = load->getParentOp();
  while (isa<scf::IfOp>(parent))
    parent = parent->getParentOp();
  return isa<tile::KernelOp>(parent);
}

/// Makes of one load a copy into a buffer of its own, and loads from there
/// beside the products: matrix units read shared memory themselves.
void copyToBuffer(const RingLoad &slot) {
  tile::LoadOp load = slot.load;
  Value buffer = copyOnce(slot);
  for (OpOperand &use : llvm::make_early_inc_range(load->getUses())) {
    OpBuilder beside(use.getOwner());
    Value first = arith::ConstantIndexOp::create(beside, load.getLoc(), 0);
    use.set(loadSlot(beside, slot, buffer, first));
  }
  load.erase();
}

struct ShareOperands
    : public tilewright::impl::ShareOperandsBase<ShareOperands> {
  void runOnOperation() override {
    if (Device(getOperation()).lacksHopper())
      return;
    getOperation()->walk([](tile::KernelOp kernel) {
      if (kernel->hasAttr(tile::decisions::kSpecialized))
        share(kernel);
    });
  }

private:
  static void share(tile::KernelOp kernel) {
    SmallVector<tile::LoadOp> loads;
    kernel.walk([&](tile::LoadOp load) {
      if (isProductOperand(load) && runsOnce(load))
        loads.push_back(load);
    });
    for (tile::LoadOp load : loads) {
      std::string reason;
      std::optional<RingLoad> slot = analyzeOnceLoad(load, reason);
      if (slot)
        copyToBuffer(*slot);
      else
        load.emitRemark("is not read by matrix units from shared memory, "
                        "since it ")
            << reason;
    }
  }
};

} // namespace
} // namespace tilewright

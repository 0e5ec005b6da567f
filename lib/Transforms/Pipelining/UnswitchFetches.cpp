//===- UnswitchFetches.cpp - a loop for each way of fetching --------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/Tile.h"
#include "lib/Transforms/Pipelining/Passes.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_UNSWITCHFETCHES
#include "lib/Transforms/Pipelining/Passes.h.inc"

namespace {

/// Whether a region only fetches, under conditions or not.
bool onlyFetches(Region &region) {
  WalkResult found = region.walk([](Operation *op) {
    bool fetches = isa<memref::PrefetchOp, scf::IfOp, scf::YieldOp>(op);
    return fetches || isPure(op) ? WalkResult::advance()
                                 : WalkResult::interrupt();
  });
  return !found.wasInterrupted();
}

/// The first branch of a loop that only fetches, on a condition that each
/// iteration finds the same.
scf::IfOp findFetches(scf::ForOp loop) {
  for (auto branch : loop.getBody()->getOps<scf::IfOp>())
    if (branch->getNumResults() == 0 &&
        loop.isDefinedOutsideOfLoop(branch.getCondition()) &&
        onlyFetches(branch.getThenRegion()) &&
        onlyFetches(branch.getElseRegion()))
      return branch;
  return nullptr;
}

/// Puts what a side of a branch does into its place.
void takeSide(scf::IfOp branch, Region &side) {
  if (!side.empty()) {
    Block &block = side.front();
    block.getTerminator()->erase();
    branch->getBlock()->getOperations().splice(branch->getIterator(),
                                               block.getOperations());
  }
  branch.erase();
}

struct UnswitchFetches
    : public tilewright::impl::UnswitchFetchesBase<UnswitchFetches> {
  void runOnOperation() override {
    SmallVector<scf::ForOp> loops;
    getOperation()->walk([&](scf::ForOp loop) {
      if (loop.getBody()->getOps<scf::ForOp>().empty())
        loops.push_back(loop);
    });
    while (!loops.empty()) {
      scf::ForOp loop = loops.pop_back_val();
      if (scf::IfOp branch = findFetches(loop))
        unswitch(loop, branch, loops);
    }
  }

private:
  /// Makes two loops of one; they may have other such branches.
  static void unswitch(scf::ForOp loop, scf::IfOp branch,
                       SmallVector<scf::ForOp> &made) {
    OpBuilder b(loop);
    auto outer = scf::IfOp::create(b, loop.getLoc(), loop.getResultTypes(),
                                   branch.getCondition(), /*addThen=*/true,
                                   /*addElse=*/true);
    for (bool isThen : {true, false}) {
      Block *block = isThen ? outer.thenBlock() : outer.elseBlock();
      b.setInsertionPointToEnd(block);
      IRMapping mapping;
      auto copy = cast<scf::ForOp>(b.clone(*loop, mapping));
      auto own = cast<scf::IfOp>(mapping.lookup(branch.getOperation()));
      takeSide(own, isThen ? own.getThenRegion() : own.getElseRegion());
      scf::YieldOp::create(b, loop.getLoc(), copy.getResults());
      made.push_back(copy);
    }
    loop.replaceAllUsesWith(outer.getResults());
    loop.erase();
  }
};

} // namespace
} // namespace tilewright

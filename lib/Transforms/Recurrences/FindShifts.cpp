//===- FindShifts.cpp - loops that may be one with the loop in front ------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDecisions.h"
#include "lib/Transforms/Recurrences/Passes.h"
#include "lib/Transforms/Recurrences/ShiftedLoops.h"

namespace tilewright {
#define GEN_PASS_DEF_FINDSHIFTS
#include "lib/Transforms/Recurrences/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;

/// Whether a loop hands tensors on: others are no recurrences.
static bool isRecurrence(scf::ForOp loop) {
  return loop.getNumResults() > 0 &&
         llvm::all_of(loop.getResultTypes(), llvm::IsaPred<RankedTensorType>);
}

static void findIn(Block &block) {
  std::optional<ShiftedLoops> group;
  for (auto loop : block.getOps<scf::ForOp>()) {
    std::string reason;
    bool recurs = isRecurrence(loop);
    std::optional<int64_t> shift =
        recurs && group ? group->leastShift(loop, reason) : std::nullopt;
    if (!recurs) {
      group.reset();
    } else if (!shift) {
      group.emplace(loop);
    } else {
      group->add(loop, *shift);
      loop->setAttr(tile::decisions::kShift.name,
                    Builder(loop).getI64IntegerAttr(*shift));
    }
  }
}

namespace {
struct FindShifts : tilewright::impl::FindShiftsBase<FindShifts> {
  void runOnOperation() override {
    getOperation()->walk([](Block *block) { findIn(*block); });
  }
};
} // namespace

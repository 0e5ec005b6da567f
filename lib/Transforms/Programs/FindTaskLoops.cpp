//===- FindTaskLoops.cpp - loops whose tasks need no others ---------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDecisions.h"
#include "lib/Transforms/Programs/Passes.h"
#include "lib/Transforms/Programs/TaskLoop.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tilewright {
#define GEN_PASS_DEF_FINDTASKLOOPS
#include "lib/Transforms/Programs/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;

namespace {
struct FindTaskLoops
    : public tilewright::impl::FindTaskLoopsBase<FindTaskLoops> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    for (auto function : getOperation().getOps<func::FuncOp>())
      function.walk([&](scf::ForOp loop) {
        if (TaskLoop(loop, symbols).findObstacle().empty())
          loop->setAttr(tile::decisions::kIndependent,
                        UnitAttr::get(&getContext()));
      });
  }
};
} // namespace

//===- FindHostWork.cpp - launches that the host could do -----------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDecisions.h"
#include "lib/Conversion/TileToHost/HostNumbers.h"
#include "lib/Conversion/TileToHost/Passes.h"

#include "mlir/IR/SymbolTable.h"

namespace tilewright {
#define GEN_PASS_DEF_FINDHOSTWORK
#include "lib/Conversion/TileToHost/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;

namespace {

struct FindHostWork : public tilewright::impl::FindHostWorkBase<FindHostWork> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    for (auto function : getOperation().getOps<func::FuncOp>())
      function.walk([&](tile::LaunchOp launch) {
        if (auto kernel = symbols.lookup<tile::KernelOp>(launch.getKernel()))
          look(launch, kernel);
      });
  }

private:
  /// Makes the operations to count them, in a block of their own.
  static void look(tile::LaunchOp launch, tile::KernelOp kernel) {
    Block block;
    OpBuilder b(launch.getContext());
    b.setInsertionPointToStart(&block);
    HostNumbers numbers(b, launch, kernel);
    bool isKnown = succeeded(numbers.make());
    block.dropAllReferences();
    block.clear();
    if (isKnown)
      launch->setAttr(tile::decisions::kHostOperations,
                      b.getI64IntegerAttr(numbers.operations()));
  }
};

} // namespace

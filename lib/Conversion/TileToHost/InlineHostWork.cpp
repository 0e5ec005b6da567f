//===- InlineHostWork.cpp - launches as work of the host ------------------===//
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
#define GEN_PASS_DEF_INLINEHOSTWORK
#include "lib/Conversion/TileToHost/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;

namespace {

bool isOfHost(tile::LaunchOp launch) {
  auto level = tile::decisions::kLevel.get(launch);
  return level && level.getValue() == "host";
}

struct InlineHostWork
    : public tilewright::impl::InlineHostWorkBase<InlineHostWork> {
  void runOnOperation() override {
    SmallVector<tile::LaunchOp> launches;
    for (auto function : getOperation().getOps<func::FuncOp>())
      function.walk([&](tile::LaunchOp launch) {
        if (isOfHost(launch))
          launches.push_back(launch);
      });
    SymbolTable symbols(getOperation());
    SetVector<Operation *> kernels;
    for (tile::LaunchOp launch : launches) {
      Operation *kernel = replace(launch, symbols);
      if (!kernel)
        return signalPassFailure();
      kernels.insert(kernel);
    }
    for (Operation *kernel : kernels)
      if (SymbolTable::symbolKnownUseEmpty(kernel, getOperation()))
        symbols.erase(kernel);
  }

private:
  /// The kernel that it was a launch of; null where that is an error.
  static Operation *replace(tile::LaunchOp launch, SymbolTable &symbols) {
    auto kernel = symbols.lookup<tile::KernelOp>(launch.getKernel());
    if (!kernel) {
      launch.emitOpError("with `tile.level = \"host\"` is of a program, which "
                         "no host runs number by number: take it off");
      return nullptr;
    }
    OpBuilder b(launch);
    HostNumbers numbers(b, launch, kernel);
    if (failed(numbers.make())) {
      launch.emitOpError("with `tile.level = \"host\"` has no form in single "
                         "numbers: ")
          << numbers.obstacle() << "; take the attribute off";
      return nullptr;
    }
    launch.erase();
    return kernel;
  }
};

} // namespace

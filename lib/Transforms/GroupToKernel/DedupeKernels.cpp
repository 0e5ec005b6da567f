//===- DedupeKernels.cpp - tile-dedupe-kernels ----------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/Tile.h"
#include "lib/Transforms/GroupToKernel/Passes.h"

#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_DEDUPEKERNELS
#include "lib/Transforms/GroupToKernel/Passes.h.inc"

namespace {

struct DedupeKernels : public impl::DedupeKernelsBase<DedupeKernels> {
  void runOnOperation() override {
    // Printed without its name, a kernel is its own content key.
    llvm::StringMap<StringAttr> byText;
    llvm::DenseMap<StringAttr, StringAttr> replacement;
    SmallVector<tile::KernelOp> duplicates;
    for (auto kernel : getOperation().getOps<tile::KernelOp>()) {
      StringAttr name = kernel.getSymNameAttr();
      kernel.setSymName("kernel");
      std::string text;
      llvm::raw_string_ostream stream(text);
      kernel->print(stream, OpPrintingFlags().useLocalScope());
      kernel.setSymName(name);
      auto [entry, isNew] = byText.try_emplace(text, name);
      if (isNew)
        continue;
      replacement[name] = entry->second;
      duplicates.push_back(kernel);
    }
    if (duplicates.empty())
      return markAllAnalysesPreserved();
    getOperation().walk([&](tile::LaunchOp launch) {
      auto it = replacement.find(launch.getKernelAttr().getAttr());
      if (it != replacement.end())
        launch.setKernelAttr(FlatSymbolRefAttr::get(it->second));
    });
    for (tile::KernelOp kernel : duplicates)
      kernel.erase();
  }
};

} // namespace
} // namespace tilewright

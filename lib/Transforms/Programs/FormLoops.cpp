//===- FormLoops.cpp - loops of launches as one kernel --------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDecisions.h"
#include "lib/Transforms/Programs/Passes.h"
#include "lib/Transforms/Programs/StretchOutline.h"

namespace tilewright {
#define GEN_PASS_DEF_FORMLOOPS
#include "lib/Transforms/Programs/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;

namespace {

/// Threads of a block where a kernel does not say, and of one without tiles.
constexpr int64_t kUsual = 128;

/// Makes a kernel of a stretch that launches what the host did.
class LoopOutline : StretchOutline {
public:
  using StretchOutline::StretchOutline;

  LogicalResult run() {
    if (failed(stretch.findArguments()) || failed(findKernels()))
      return failure();
    makeKernel("loop_" + first, /*gridRank=*/0);
    kernel->setAttr(tile::decisions::kBlocks,
                    b.getI64IntegerAttr(stretch.blocks));
    kernel->setAttr(tile::decisions::kThreads, b.getI64IntegerAttr(threads));
    fill();
    for (tile::LaunchOp launch : launchesIn(kernel))
      launch.setKernel(called.lookup(launch.getKernel()).getSymName());
    launchKernel({});
    return leave();
  }

private:
  static int64_t threadsOf(tile::KernelOp kernel) {
    if (auto threads = tile::decisions::kThreads.get(kernel))
      return threads.getInt();
    auto warps = tile::decisions::kWarps.get(kernel);
    return warps ? 32 * warps.getInt() : kUsual;
  }

  /// A block has the threads of the kernel with the most of them; of those with
  /// warps that only load, where there are any: a product of a warpgroup is
  /// none of two, what others do any threads can share.
  void addThreads(tile::KernelOp called) {
    bool specialized = called->hasAttr(tile::decisions::kSpecialized);
    if (specialized == loads)
      threads = std::max(threads, threadsOf(called));
    else if (specialized)
      threads = threadsOf(called);
    loads |= specialized;
  }

  /// The kernels become others, for the blocks of this one.
  LogicalResult findKernels() {
    SmallVector<StringRef> names;
    for (Operation *op : stretch.ops)
      for (tile::LaunchOp launch : launchesIn(op)) {
        tile::KernelOp found = lookUp(launch.getKernel());
        if (!found || found.getCluster() ||
            found->hasAttr(tile::decisions::kRounded))
          return launch.emitOpError(
              "with `tile.blocks`, or in a loop or branch with it, is of a "
              "program or of a kernel with clusters; blocks that share its "
              "tasks are none");
        addThreads(found);
        if (!llvm::is_contained(names, found.getSymName()))
          names.push_back(found.getSymName());
      }
    if (names.empty())
      return stretch.ops.front()->emitOpError(
          "has `tile.blocks`, and launches nothing");
    for (StringRef name : names) {
      tile::KernelOp copy = lookUp(name).clone();
      copy->setAttr(tile::decisions::kThreads, b.getI64IntegerAttr(threads));
      if (copy->hasAttr(tile::decisions::kSpecialized))
        copy->setAttr(tile::decisions::kWarps,
                      b.getI64IntegerAttr(threads / 32));
      copy->removeAttr(tile::decisions::kPersistent);
      copy->removeAttr(
          tile::decisions::kStaged); // no TMA: who calls has no maps
      symbols.insert(copy, Block::iterator(lookUp(name)));
      called.try_emplace(name, copy);
    }
    first = nameOf();
    return success();
  }

  /// The name of what the first loop or branch launches first.
  std::string nameOf() {
    auto *found = llvm::find_if(stretch.ops, [](Operation *op) {
      return op->getNumRegions() > 0 && !launchesIn(op).empty();
    });
    if (found == stretch.ops.end())
      found = llvm::find_if(
          stretch.ops, [](Operation *op) { return !launchesIn(op).empty(); });
    return launchesIn(*found).front().getKernel().str();
  }

  std::string first;
  llvm::StringMap<tile::KernelOp> called;
  int64_t threads = 32;
  /// Whether kernels have warps that only load.
  bool loads = false;
};

struct FormLoops : public tilewright::impl::FormLoopsBase<FormLoops> {
  void runOnOperation() override {
    auto main = getOperation().lookupSymbol<func::FuncOp>("main");
    if (!main)
      return; // kernels alone
    SmallVector<Stretch, 1> stretches;
    for (Block &block : main.getBody())
      Stretch::findAll(block, stretches);
    if (stretches.empty())
      return;
    SymbolTable symbols(getOperation());
    for (Stretch &stretch : stretches)
      if (failed(LoopOutline(stretch, symbols).run()))
        return signalPassFailure();
    eraseUnused(symbols);
  }

private:
  /// Kernels that only their copies are launched of.
  void eraseUnused(SymbolTable &symbols) {
    for (auto kernel :
         llvm::make_early_inc_range(getOperation().getOps<tile::KernelOp>()))
      if (SymbolTable::symbolKnownUseEmpty(kernel, getOperation()))
        symbols.erase(kernel);
  }
};

} // namespace

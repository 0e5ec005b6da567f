//===- MarkMulticasts.cpp - copies that are the same in all of a cluster --===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDecisions.h"
#include "lib/Analysis/Device.h"
#include "lib/Conversion/AsyncToGPU/Passes.h"
#include "lib/Conversion/AsyncToGPU/Rings.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_MARKMULTICASTS
#include "lib/Conversion/AsyncToGPU/Passes.h.inc"

namespace {

/// The values of a kernel that may differ between the tasks of a cluster.
class Differences {
public:
  explicit Differences(tile::KernelOp kernel) {
    for (auto [id, size] :
         llvm::zip_equal(kernel.getGridIds(), *kernel.getCluster()))
      if (size > 1)
        values.insert(id);
    // Loops carry values backwards.
    size_t before;
    do {
      before = values.size();
      kernel.getBody().walk([&](Operation *op) { propagate(op); });
    } while (values.size() != before);
  }

  bool contains(Value value) const { return values.contains(value); }
  bool containsAny(ValueRange list) const {
    return llvm::any_of(list, [&](Value value) { return contains(value); });
  }

  /// Whether the tasks reach `op` equally often: bounds and conditions around
  /// it, up to the kernel, are the same in all of them.
  bool isReachedAlike(Operation *op) const {
    for (Operation *around = op->getParentOp(); !isa<tile::KernelOp>(around);
         around = around->getParentOp()) {
      if (auto loop = dyn_cast<scf::ForOp>(around)) {
        if (containsAny(
                {loop.getLowerBound(), loop.getUpperBound(), loop.getStep()}))
          return false;
      } else if (auto branch = dyn_cast<scf::IfOp>(around)) {
        if (contains(branch.getCondition()))
          return false;
      } else if (!isa<tile::AsyncOp>(around)) {
        return false;
      }
    }
    return true;
  }

private:
  void add(ValueRange list) { values.insert(list.begin(), list.end()); }

  /// What follows from a difference differs, and so may what memory holds.
  void propagate(Operation *op) {
    bool reads = op->getNumRegions() == 0 && !isMemoryEffectFree(op) &&
                 !isa<tile::AllocOp>(op);
    if (!reads && !containsAny(op->getOperands()))
      return;
    add(op->getResults());
    if (auto loop = dyn_cast<scf::ForOp>(op))
      return propagateLoop(loop);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        add(block.getArguments());
    if (op->hasTrait<OpTrait::IsTerminator>())
      propagateYield(op);
  }

  /// Bounds make all differ; what is carried, only where it goes.
  void propagateLoop(scf::ForOp loop) {
    if (containsAny(
            {loop.getLowerBound(), loop.getUpperBound(), loop.getStep()}))
      return add(loop.getBody()->getArguments());
    for (auto [init, argument] :
         llvm::zip_equal(loop.getInitArgs(), loop.getRegionIterArgs()))
      if (contains(init))
        values.insert(argument);
  }

  void propagateYield(Operation *yield) {
    Operation *parent = yield->getParentOp();
    if (!isa<scf::ForOp, scf::IfOp>(parent)) {
      add(parent->getResults());
      for (Region &region : parent->getRegions())
        add(region.front().getArguments());
      return;
    }
    for (auto [number, value] : llvm::enumerate(yield->getOperands())) {
      if (!contains(value))
        continue;
      if (number < parent->getNumResults())
        values.insert(parent->getResult(number));
      if (auto loop = dyn_cast<scf::ForOp>(parent))
        values.insert(loop.getRegionIterArg(number));
    }
  }

  llvm::SmallDenseSet<Value> values;
};

/// Whether a loop that loads ahead of time stands around a copy.
bool isOfLoop(tile::CopyOp copy) {
  for (auto loop = copy->getParentOfType<scf::ForOp>(); loop;
       loop = loop->getParentOfType<scf::ForOp>())
    if (carriesTokens(loop))
      return true;
  return false;
}

struct MarkMulticasts
    : public tilewright::impl::MarkMulticastsBase<MarkMulticasts> {
  void runOnOperation() override {
    if (Device(getOperation()).lacksHopper())
      return;
    for (auto kernel : getOperation().getOps<tile::KernelOp>())
      if (isClustered(kernel))
        mark(kernel);
  }

private:
  static bool isClustered(tile::KernelOp kernel) {
    std::optional<ArrayRef<int64_t>> cluster = kernel.getCluster();
    return cluster &&
           llvm::any_of(*cluster, [](int64_t size) { return size > 1; });
  }

  static void mark(tile::KernelOp kernel) {
    Differences differences(kernel);
    bool loads = false, found = false;
    kernel.walk([&](tile::CopyOp copy) {
      if (!copy->getParentOfType<tile::AsyncOp>() || !isOfLoop(copy))
        return;
      loads = true;
      if (differences.contains(copy.getSrc()) ||
          !differences.isReachedAlike(copy))
        return;
      found = true;
      copy->setAttr(tile::decisions::kMulticast,
                    UnitAttr::get(copy.getContext()));
    });
    if (loads && !found)
      kernel.emitRemark("has clusters whose tasks load nothing in common: each "
                        "loads all that it needs");
  }
};

} // namespace
} // namespace tilewright

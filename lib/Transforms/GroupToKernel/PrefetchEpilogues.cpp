//===- PrefetchEpilogues.cpp - operands of what follows a product ---------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/Tile.h"
#include "lib/Analysis/Device.h"
#include "lib/Transforms/GroupToKernel/Lines.h"
#include "lib/Transforms/GroupToKernel/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_PREFETCHEPILOGUES
#include "lib/Transforms/GroupToKernel/Passes.h.inc"

namespace {

/// What a core does in how many cycles.
struct Core {
  explicit Core(const Device &device)
      : perLine(device.getLimit("prefetch_cycles", 16)),
        multiplies(device.getLimit("fma_per_cycle", 32)),
        latency(device.getLimit("fma_latency", 4)) {}

  /// Cycles of a product's loop per line: fewer hide no wait.
  int64_t perLine;
  /// Multiply-adds of f32 that start per cycle.
  int64_t multiplies;
  /// Cycles from the start of a multiply-add to the next one of the same sum.
  int64_t latency;
};

/// Whether a loop's body multiplies tiles.
bool isProduct(scf::ForOp loop) {
  return !loop.getBody()->getOps<tile::MmaOp>().empty();
}

/// Cycles that a round of a product's loop takes: those of its multiply-adds,
/// and at least the ones that a chain of them waits for.
int64_t cyclesOf(scf::ForOp loop, const Core &core) {
  int64_t cycles = 0;
  for (auto mma : loop.getBody()->getOps<tile::MmaOp>()) {
    int64_t sums = mma.getResult().getType().getNumElements();
    cycles += std::max(sums / core.multiplies, core.latency);
  }
  return cycles;
}

/// Makes a value known before `loop`, which stands in the same block as what
/// computes it: moves index arithmetic there.
bool hoist(Value value, scf::ForOp loop) {
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != loop->getBlock() || op->isBeforeInBlock(loop))
    return true;
  if (op == loop || !isPure(op) || op->getNumRegions())
    return false;
  for (Value operand : op->getOperands())
    if (!hoist(operand, loop))
      return false;
  op->moveBefore(loop);
  return true;
}

/// What follows the loop of a product.
class Epilogue {
public:
  Epilogue(scf::ForOp loop, const Core &core) : loop(loop), core(core) {}

  /// Fetches what follows the loop, up to the next product, as far as the
  /// loop's rounds hide it.
  void run() {
    std::optional<APInt> trips = loop.getStaticTripCount();
    if (!trips)
      return;
    left = trips->getSExtValue() * cyclesOf(loop, core) / core.perLine;
    for (Operation *op = loop->getNextNode(), *next; op; op = next) {
      next = op->getNextNode();
      if (auto other = dyn_cast<scf::ForOp>(op); other && isProduct(other))
        return;
      if (auto load = dyn_cast<tile::LoadOp>(op))
        fetch(load);
    }
  }

private:
  /// Buffers of the task are near, and one row is what hardware would fetch.
  static bool isWorthIt(tile::LoadOp load) {
    return isa<BlockArgument>(load.getMemref()) && load.getValid().empty() &&
           !load.getIndices() && load.getTileType().getRank() > 1 &&
           load.getTileType().getShape().front() > 1 &&
           load.getMemRefType().areTrailingDimsContiguous(1);
  }

  void fetch(tile::LoadOp load) {
    if (!isWorthIt(load))
      return;
    SmallVector<SmallVector<int64_t>> lines =
        linesOf(load.getMemRefType(), load.getTileType().getShape(),
                load.getTileDims(), load.getTileSteps(), Device(load));
    if (static_cast<int64_t>(lines.size()) > left)
      return;
    for (Value offset : load.getOffsets())
      if (!hoist(offset, loop))
        return;
    left -= lines.size();
    OpBuilder b(loop);
    prefetchLines(b, load.getLoc(), load.getMemref(), load.getOffsets(), lines,
                  /*isWrite=*/false, Cache::L1);
  }

  scf::ForOp loop;
  const Core &core;
  /// Lines that the loop's rounds hide.
  int64_t left = 0;
};

struct PrefetchEpilogues
    : public impl::PrefetchEpiloguesBase<PrefetchEpilogues> {
  void runOnOperation() override {
    SmallVector<scf::ForOp> products;
    for (auto kernel : getOperation().getOps<tile::KernelOp>())
      kernel.walk([&](scf::ForOp loop) {
        if (isProduct(loop))
          products.push_back(loop);
      });
    Core core{Device(getOperation())};
    for (scf::ForOp loop : products) // what is around them moves
      Epilogue(loop, core).run();
  }
};

} // namespace
} // namespace tilewright

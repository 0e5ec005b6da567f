//===- PrefetchRows.cpp - rows that the hardware does not see coming ------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/Tile.h"
#include "dialects/Tile/TileDecisions.h"
#include "lib/Analysis/Device.h"
#include "lib/Transforms/GroupToKernel/Lines.h"
#include "lib/Transforms/GroupToKernel/Passes.h"
#include "lib/Transforms/GroupToKernel/TaskNests.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_PREFETCHROWS
#include "lib/Transforms/GroupToKernel/Passes.h.inc"

namespace {

/// Computes `value`, known inside of a nest, elsewhere: loop variables and the
/// number of the task as `map` has them.
Value rebuild(OpBuilder &b, Value value, IRMapping &map, Operation *nest) {
  if (Value known = map.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  if (!op)
    return isa<scf::ForOp>(value.getParentBlock()->getParentOp()) &&
                   nest->isAncestor(value.getParentBlock()->getParentOp())
               ? Value()
               : value;
  if (!isPure(op) || op->getNumRegions())
    return nest->isAncestor(op) ? Value() : value;
  SmallVector<Value> operands;
  for (Value operand : op->getOperands()) {
    operands.push_back(rebuild(b, operand, map, nest));
    if (!operands.back())
      return Value();
  }
  if (!nest->isAncestor(op) && llvm::equal(operands, op->getOperands()))
    return value;
  Operation *made = b.clone(*op, map);
  made->setOperands(operands);
  return made->getResult(cast<OpResult>(value).getResultNumber());
}

/// Rows of a kernel's buffers, brought by one nest of loops on behalf of
/// another that walks alike.
class Fetch {
public:
  Fetch(Nest user, Nest host, Value task, int64_t nearBytes, int64_t innerBytes)
      : user(user), host(host), task(task), nearBytes(nearBytes),
        innerBytes(innerBytes) {}

  /// Whether a buffer comes from outside, by whole lines, and is too large to
  /// lie in the inner caches still.
  bool isFar(Value memref) const {
    auto type = cast<MemRefType>(memref.getType());
    return isa<BlockArgument>(memref) && type.hasStaticShape() &&
           type.getElementType().isIntOrFloat() &&
           type.getNumElements() * type.getElementTypeBitWidth() / 8 >=
               nearBytes &&
           type.areTrailingDimsContiguous(1);
  }

  /// Fetches what `access` (a load or a store in the user's innermost body)
  /// touches: `ahead` tasks later, to be written or read.
  template <typename AccessOp>
  void run(AccessOp access, tile::TileType tile, int64_t ahead, bool isWrite) {
    auto type = cast<MemRefType>(access.getMemref().getType());
    SmallVector<int64_t> dims = access.getTileDims();
    SmallVector<int64_t> steps = access.getTileSteps();
    int64_t last = type.getRank() - 1;
    auto along = llvm::find(dims, last);
    if (along == dims.end() || steps[along - dims.begin()] != 1 ||
        tile.getShape()[along - dims.begin()] !=
            getConstantIntValue(user.back().getStep()))
      return;
    OpBuilder b = OpBuilder::atBlockBegin(host.back().getBody());
    Location loc = access.getLoc();
    IRMapping map;
    for (auto [from, to] : llvm::zip_equal(user, host))
      map.map(from.getInductionVar(), to.getInductionVar());
    if (ahead)
      map.map(task, affine::makeComposedAffineApply(
                        b, loc, b.getAffineDimExpr(0) + ahead,
                        ArrayRef<OpFoldResult>{task}));
    SmallVector<Value> offsets;
    for (Value offset : access.getOffsets()) {
      offsets.push_back(rebuild(b, offset, map, user.front()));
      if (!offsets.back())
        return;
    }
    SmallVector<int64_t> shape(tile.getShape());
    shape[along - dims.begin()] = *getConstantIntValue(host.back().getStep());
    prefetchLines(b, loc, access.getMemref(), offsets,
                  linesOf(type, shape, dims, steps, Device(access)), isWrite,
                  nearest());
  }

private:
  /// The cache that has room for what a task reads.
  Cache nearest() {
    int64_t elements = 1;
    for (scf::ForOp loop : user)
      elements *= loop.getStaticTripCount()->getSExtValue() *
                  *getConstantIntValue(loop.getStep());
    return elements * 4 <= innerBytes ? Cache::L1 : Cache::L2;
  }

  Nest user, host;
  Value task;
  int64_t nearBytes, innerBytes;
};

/// The nests of a task, which run one after the other.
class Task {
public:
  Task(tile::KernelOp kernel, int64_t nearBytes)
      : kernel(kernel), device(kernel), nearBytes(nearBytes),
        innerBytes(device.getLimit("prefetch_l1_bytes", 16 * 1024)) {}

  void run() {
    if (kernel.getGridIds().empty() || !collect() || nests.size() < 2)
      return;
    fetchInputs();
    fetchOutputs();
  }

private:
  bool collect() {
    for (scf::ForOp loop : kernel.getBody().front().getOps<scf::ForOp>()) {
      std::optional<Nest> nest = nestOf(loop);
      if (!nest || multiplies(*nest))
        return false;
      for (scf::ForOp inner : *nest)
        if (!inner.getStaticTripCount())
          return false;
      nests.push_back(std::move(*nest));
    }
    return kernel.getBody().front().getOps<scf::IfOp>().empty();
  }

  /// The nest that computes most fetches what the next task reads first: lines
  /// come while it computes. The last one, where none computes much more.
  void fetchInputs() {
    Nest host = nests.back();
    for (Nest nest : ArrayRef(nests).drop_back())
      if (walkAlike(nest, nests.back()) && computesMuchMore(nest, host, device))
        host = nest;
    bool isLast = host.front() == nests.back().front();
    DenseSet<Value> seen = touched(nests.back());
    for (Nest user : ArrayRef(nests).drop_back()) {
      Fetch fetch(user, host, kernel.getGridIds().back(), nearBytes,
                  isLast ? innerBytes : innerBytes / 2);
      for (auto load : user.back().getBody()->getOps<tile::LoadOp>())
        if (load.getValid().empty() && !load.getIndices() &&
            fetch.isFar(load.getMemref()) &&
            seen.insert(load.getMemref()).second && walkAlike(user, host))
          fetch.run(load, load.getTileType(), /*ahead=*/1, /*isWrite=*/false);
    }
  }

  /// The nest before the last one fetches the lines that the last one writes.
  void fetchOutputs() {
    Nest user = nests.back(), host = nests[nests.size() - 2];
    if (!walkAlike(user, host))
      return;
    Fetch fetch(user, host, Value(), nearBytes, innerBytes);
    for (auto store : user.back().getBody()->getOps<tile::StoreOp>())
      if (store.getValid().empty() &&
          !store->hasAttr(tile::decisions::kStreamed) &&
          fetch.isFar(store.getMemref()))
        fetch.run(store, cast<tile::TileType>(store.getTile().getType()),
                  /*ahead=*/0, /*isWrite=*/true);
  }

  static DenseSet<Value> touched(Nest nest) {
    DenseSet<Value> found;
    nest.front().walk(
        [&](tile::LoadOp load) { found.insert(load.getMemref()); });
    return found;
  }

  tile::KernelOp kernel;
  Device device;
  int64_t nearBytes;
  /// What a task may fetch into the L1 cache; more goes to the L2 cache.
  int64_t innerBytes;
  SmallVector<Nest> nests;
};

struct PrefetchRows : public impl::PrefetchRowsBase<PrefetchRows> {
  using PrefetchRowsBase::PrefetchRowsBase;
  void runOnOperation() override {
    getOperation().walk(
        [&](tile::KernelOp kernel) { Task(kernel, nearBytes).run(); });
  }
};

} // namespace
} // namespace tilewright

//===- StageStores.cpp - which stores TMA does -===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDecisions.h"
#include "lib/Analysis/Device.h"
#include "lib/Analysis/SharedArguments.h"
#include "lib/Conversion/AsyncToGPU/Passes.h"
#include "lib/Conversion/AsyncToGPU/StagedBox.h"
#include "lib/Conversion/AsyncToGPU/TensorCopies.h"
#include "lib/Conversion/AsyncToGPU/WarpRoles.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_STAGESTORES
#include "lib/Conversion/AsyncToGPU/Passes.h.inc"

namespace {

/// The tile before a change of layout, which a staged store does itself.
Value withoutRelayout(Value tile) {
  auto convert = tile.getDefiningOp<tile::ConvertOp>();
  if (!convert || getElementTypeOrSelf(convert.getSource().getType()) !=
                      getElementTypeOrSelf(tile.getType()))
    return tile;
  return convert.getSource();
}

/// One store of a kernel, as TMA would do it.
class StagedStore {
public:
  StagedStore(tile::StoreOp op, int64_t threads)
      : op(op), threads(threads), source(withoutRelayout(op.getTile())),
        type(cast<tile::TileType>(source.getType())) {}

  /// Why it cannot; empty where it can.
  std::string check() {
    if (op.getReduce() || op.getIndices())
      return "adds to what is there, or goes to places of a list";
    unsigned bits = type.getElementType().isIntOrFloat()
                        ? type.getElementTypeBitWidth()
                        : 0;
    if (bits < 8 || bits > 32)
      return "has elements that do not take 8 to 32 bits";
    if (std::string reason = checkOthers(); !reason.empty())
      return reason;
    if (StringRef reason = checkTensor(op.getMemref(), bits / 8);
        !reason.empty())
      return reason.str();
    if (std::string reason = checkShape(); !reason.empty())
      return reason;
    return findBox(bits / 8);
  }

  LogicalResult apply(gpu::GPUFuncOp kernel, int64_t slots) {
    SmallVector<int64_t> sizes(op.getMemRefType().getRank(), 1);
    for (auto [dim, size] : llvm::zip_equal(op.getTileDims(), box->getSizes()))
      sizes[dim] = size;
    FailureOr<unsigned> map =
        tensorMapOf(kernel, op.getMemref(), sizes, box->getSwizzle());
    if (failed(map))
      return failure();
    Builder b(op.getContext());
    op->setAttr(tile::decisions::kBox,
                b.getDictionaryAttr(
                    {b.getNamedAttr("map", b.getI64IntegerAttr(*map)),
                     b.getNamedAttr("slots", b.getI64IntegerAttr(slots))}));
    Operation *relayout = op.getTile().getDefiningOp();
    op.getTileMutable().assign(source);
    if (relayout && relayout->use_empty())
      relayout->erase();
    return success();
  }

private:
  /// What is stored in the background could be read, or written, too early.
  std::string checkOthers() {
    auto kernel = op->getParentOfType<gpu::GPUFuncOp>();
    SharedArguments arguments(kernel);
    Value root = getRoot(op.getMemref());
    bool reads = false, meets = false;
    kernel.walk([&](Operation *other) {
      if (other == op || isMemoryEffectFree(other))
        return;
      for (Value operand : other->getOperands()) {
        if (!isa<MemRefType>(operand.getType()))
          continue;
        Value touched = getRoot(operand);
        if (touched == root)
          reads |= !isa<tile::StoreOp>(other);
        else if (arguments.mayMeet(root, touched))
          meets |= !isSurelyBefore(other);
      }
    });
    if (reads)
      return "goes to memory that the kernel reads, too";
    return meets ? "may go to memory that the kernel touches later, through "
                   "another argument"
                 : "";
  }

  /// Whether an op of the task runs before the store, and never after it.
  bool isSurelyBefore(Operation *other) {
    Operation *at = op, *found;
    while (!(found = at->getBlock()->findAncestorOpInBlock(*other)))
      at = at->getParentOp();
    auto loop = at->getParentOfType<LoopLikeOpInterface>();
    bool runsAgain = loop && loop != tasksAround(op);
    return !runsAgain && found != at && found->isBeforeInBlock(at);
  }

  /// Rows of the tile are rows of memory, and its bounds those of the argument.
  std::string checkShape() {
    SmallVector<int64_t> dims(op.getTileDims());
    if (dims.empty() || dims.back() + 1 != op.getMemRefType().getRank() ||
        !llvm::is_sorted(dims) ||
        llvm::any_of(op.getTileSteps(), [](int64_t s) { return s != 1; }))
      return "has rows that are none of memory";
    for (auto [index, bound] : llvm::enumerate(op.getValid()))
      if (!endsWithTensor(op.getMemref(), dims[index],
                          op.getOffsets()[dims[index]], bound,
                          type.getShape()[index]))
        return "has bounds that are not known to be the end of its memory";
    return "";
  }

  std::string findBox(int64_t bytes) {
    std::optional<LinearLayout> layout = LinearLayout::of(type);
    if (!layout || layout->getNumThreads() != threads ||
        !llvm::equal(layout->getSizes(), type.getShape()))
      return "has no tile whose elements all threads hold, each once";
    box = StagedBox::of(*layout, bytes);
    return box ? "" : "has no tile of which warps hold boxes";
  }

  tile::StoreOp op;
  int64_t threads;
  Value source;
  tile::TileType type;
  std::optional<StagedBox> box;
};

struct StageStores : public tilewright::impl::StageStoresBase<StageStores> {
  void runOnOperation() override {
    if (Device(getOperation()).lacksHopper())
      return;
    WalkResult result = getOperation()->walk([&](gpu::GPUFuncOp kernel) {
      return failed(stage(kernel)) ? WalkResult::interrupt()
                                   : WalkResult::skip();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }

private:
  static LogicalResult stage(gpu::GPUFuncOp kernel) {
    Attribute given = kernel->getAttr(tile::decisions::kStaged);
    if (!given)
      return success();
    auto slots = dyn_cast<IntegerAttr>(given);
    auto threads = tile::decisions::kThreads.get(kernel);
    if (!slots || slots.getInt() < 1 || !llvm::isPowerOf2_64(slots.getInt()))
      return kernel.emitError("has tile.staged = ")
             << given
             << ": it counts the boxes of a warp that wait for TMA in "
                "shared memory, a power of two";
    SmallVector<tile::StoreOp> stores;
    kernel.walk([&](tile::StoreOp op) {
      if (!isShared(op.getMemref().getType()) &&
          !op->hasAttr(tile::decisions::kPartial))
        stores.push_back(op);
    });
    for (tile::StoreOp op : stores) {
      StagedStore store(op, threads ? threads.getInt() : 0);
      std::string reason = store.check();
      if (!reason.empty())
        op.emitRemark("is done by each thread, not by TMA, since it ")
            << reason;
      else if (failed(store.apply(kernel, slots.getInt())))
        return failure();
    }
    return success();
  }
};

} // namespace
} // namespace tilewright

//===- PlaceBarriers.cpp - threads wait where memory orders them ----------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDecisions.h"
#include "dialects/Tile/TileTasks.h"
#include "lib/Analysis/BufferBytes.h"
#include "lib/Conversion/AsyncToGPU/SharedPlaces.h"
#include "lib/Conversion/TileToGPU/Exchange.h"
#include "lib/Conversion/TileToGPU/Passes.h"
#include "lib/Conversion/TileToGPU/TouchedElements.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/ADT/TypeSwitch.h"

namespace tilewright {
#define GEN_PASS_DEF_PLACEBARRIERS
#include "lib/Conversion/TileToGPU/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;

namespace {

/// The end of all scratch.
constexpr int64_t kAll = std::numeric_limits<int64_t>::max();

/// One op's access to one buffer, or to bytes of scratch (no buffer).
struct Access {
  Operation *op;
  Value memref;
  bool writes = false;
  int64_t begin = 0, end = 0;
  /// The outermost loop that has gone on to another iteration since.
  Operation *crossed = nullptr;

  /// Of scratch.
  bool overlaps(const Access &other) const {
    return !memref && begin < other.end && other.begin < end;
  }
  Value getBuffer() const { return getRoot(memref); }
  bool operator==(const Access &other) const {
    return op == other.op && memref == other.memref && writes == other.writes &&
           begin == other.begin && crossed == other.crossed;
  }
};

/// Where global memory may be: behind views of bytes, and as loops hand it on.
/// What is in shared memory was placed apart.
void addBytes(Value memref, llvm::SmallPtrSetImpl<Value> &seen,
              SmallVectorImpl<BufferBytes> &found) {
  Value root = getRoot(memref);
  if (!seen.insert(root).second)
    return;
  auto view = root.getDefiningOp<memref::ViewOp>();
  auto handed = getHandedOn(root);
  if (isShared(root.getType()) || (!view && !handed)) {
    found.push_back({root});
  } else if (handed) {
    addBytes(handed->first, seen, found);
    addBytes(handed->second, seen, found);
  } else {
    found.push_back(getBytes(view));
  }
}

SmallVector<Access> getAccesses(Operation *op) {
  SmallVector<Access> result;
  auto add = [&](Value memref, bool writes) {
    result.push_back({op, memref, writes});
  };
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](tile::LoadOp load) { add(load.getMemref(), false); })
      .Case([&](tile::StoreOp store) { add(store.getMemref(), true); })
      .Case([&](tile::CopyOp copy) {
        add(copy.getSrc(), false);
        add(copy.getDst(), true);
      })
      .Case([&](memref::LoadOp load) { add(load.getMemref(), false); })
      .Case([&](memref::StoreOp store) { add(store.getMemref(), true); })
      .Case([&](memref::AtomicRMWOp update) { add(update.getMemref(), true); });
  // A tile that stays in shared memory is read where it is used.
  for (Value operand : op->getOperands())
    if (auto type = dyn_cast<tile::TileType>(operand.getType()))
      if (type.isInShared())
        if (auto load = operand.getDefiningOp<tile::LoadOp>())
          add(load.getMemref(), false);
  return result;
}

/// The bytes of scratch that an op has for itself.
std::optional<Access> getScratchAccess(Operation *op) {
  auto offset = tile::decisions::kScratch.get(op);
  int64_t bytes = offset ? getScratchNeed(op).bytes : 0;
  if (bytes == 0)
    return std::nullopt;
  return Access{op, Value(), false, offset.getInt(), offset.getInt() + bytes};
}

/// Whether an op leaves its tile in scratch, for others to read.
bool leavesTile(Operation *op) {
  auto convert = dyn_cast<tile::ConvertOp>(op);
  return convert &&
         cast<tile::TileType>(convert.getResult().getType()).isInShared();
}

/// The scratch of other ops that an op reads.
SmallVector<Access> getScratchReads(Operation *op) {
  SmallVector<Access> reads;
  for (Value operand : op->getOperands())
    if (Operation *made = operand.getDefiningOp(); made && leavesTile(made))
      if (std::optional<Access> scratch = getScratchAccess(made))
        reads.push_back({op, Value(), false, scratch->begin, scratch->end});
  return reads;
}

bool isOnStack(Value root) {
  return root.getDefiningOp<memref::AllocaOp>() != nullptr;
}

bool isAtomic(Operation *op) {
  auto store = dyn_cast<tile::StoreOp>(op);
  return isa<memref::AtomicRMWOp>(op) || (store && store.getAtomic());
}

/// What has been touched since all threads last met.
class Barriers {
public:
  explicit Barriers(gpu::GPUFuncOp function) : arguments(function) {}

  void run(Block &block) {
    for (Operation &op : block)
      visit(&op);
  }
  ArrayRef<Operation *> getPlaces() const { return places.getArrayRef(); }
  /// Ops whose scratch nobody uses when they begin.
  SmallVector<Operation *> getFreeScratch() const {
    return llvm::filter_to_vector(
        exchanges, [&](Operation *op) { return !busy.contains(op); });
  }

private:
  void visit(Operation *op) {
    if (isa<gpu::BarrierOp, tile::AwaitOp, tile::SemaphorePostOp,
            tile::SemaphoreTakeOp>(op)) { // all threads meet there
      pending.clear();
      return;
    }
    // A store puts boxes there for TMA: each warp has its own.
    std::optional<Access> scratch = getScratchAccess(op);
    if (scratch && !isa<tile::StoreOp>(op)) {
      exchange(*scratch);
      return;
    }
    SmallVector<Access> accesses = getAccesses(op), reads = getScratchReads(op);
    Operation *async = op->getParentOfType<tile::AsyncOp>();
    Operation *place = async ? async : op;
    if (mustWait(accesses, reads) || (scratch && isInUse(*scratch)))
      places.insert(place);
    if (places.contains(place))
      llvm::erase_if(pending, [&](const Access &before) {
        return !place->isAncestor(before.op) || before.crossed;
      });
    // Products in the background read until they are waited for.
    if (isa<tile::MmaWaitOp>(op))
      reads.push_back({op, Value(), false, 0, kAll});
    append(pending, accesses);
    append(pending, reads);
    visitRegions(op);
  }

  /// Whether an op must wait before it touches buffers and the tiles that
  /// others left in scratch.
  bool mustWait(ArrayRef<Access> accesses, ArrayRef<Access> reads) const {
    return llvm::any_of(pending, [&](const Access &before) {
      return llvm::any_of(accesses,
                          [&](const Access &access) {
                            return mustMeet(before, access);
                          }) ||
             llvm::any_of(reads, [&](const Access &read) {
               return before.writes && before.overlaps(read);
             });
    });
  }

  /// All threads write scratch, and meet before they read it: those that use
  /// these bytes must be done. Where a tile is left there, readers meet.
  void exchange(Access scratch) {
    exchanges.insert(scratch.op);
    // Rings and scratch may lie in the same place. A scan uses its scratch
    // again and again.
    bool inUse =
        isInUse(scratch) || isa<tile::ScanOp>(scratch.op) ||
        llvm::any_of(pending, [](const Access &before) {
          return (before.memref && isShared(before.memref.getType())) ||
                 before.end == kAll;
        });
    if (inUse)
      busy.insert(scratch.op);
    scratch.writes = leavesTile(scratch.op);
    if (!scratch.writes || busy.contains(scratch.op))
      pending.clear();
    append(pending, scratch);
  }

  /// Whether another op's exchange, or a tile that it left, lies in these
  /// bytes.
  bool isInUse(const Access &scratch) const {
    return llvm::any_of(pending, [&](const Access &before) {
      return before.end != kAll && before.overlaps(scratch);
    });
  }

  /// Whether another thread may touch in `before` what one touches in `access`,
  /// and one of them writes.
  bool mustMeet(const Access &before, const Access &access) const {
    if (!before.memref || !(before.writes || access.writes))
      return false;
    Value buffer = access.getBuffer();
    if (!mayMeet(before.getBuffer(), buffer) || isOnStack(buffer) ||
        (isAtomic(before.op) && isAtomic(access.op)))
      return false;
    // Tasks run in any order, in other blocks too: what is no task's own they
    // do not hand on.
    if (before.crossed && before.crossed->hasAttr(tile::decisions::kTasks) &&
        !isShared(buffer.getType()))
      return false;
    auto first = TouchedElements::of(before.op, before.memref),
         second = TouchedElements::of(access.op, access.memref);
    return !first || !second ||
           !first->areApart(*second, before.crossed, arguments);
  }

  bool mayMeet(Value one, Value other) const {
    llvm::SmallPtrSet<Value, 4> seen, also;
    SmallVector<BufferBytes> some, others;
    addBytes(one, seen, some);
    addBytes(other, also, others);
    return llvm::any_of(some, [&](const BufferBytes &a) {
      return llvm::any_of(others, [&](const BufferBytes &b) {
        return a.buffer == b.buffer ? a.overlaps(b)
                                    : arguments.mayMeet(a.buffer, b.buffer);
      });
    });
  }

  static void append(SmallVectorImpl<Access> &list, ArrayRef<Access> added) {
    for (const Access &access : added)
      if (!llvm::is_contained(list, access))
        list.push_back(access);
  }

  void visitRegions(Operation *op) {
    if (op->getNumRegions() == 0)
      return;
    if (isa<LoopLikeOpInterface>(op))
      visitLoop(op);
    else
      visitBranches(op);
  }

  void visitBranches(Operation *op) {
    SmallVector<Access> before = pending, after;
    for (Region &region : op->getRegions()) {
      pending = before;
      for (Block &block : region)
        run(block);
      append(after, pending);
    }
    if (isa<scf::IfOp>(op) && op->getRegion(1).empty())
      append(after, before);
    pending = after;
  }

  /// What the end of an iteration leaves meets the next one's start; a loop may
  /// end behind each of its regions (`scf.while`), or not begin.
  void visitLoop(Operation *loop) {
    SmallVector<Access> after = pending;
    for (bool isLast : {false, true}) {
      for (Region &region : loop->getRegions()) {
        for (Block &block : region)
          run(block);
        if (isLast) // all barriers of the body are known by then
          append(after, pending);
      }
      for (Access &access : pending)
        if (loop->isProperAncestor(access.op) &&
            (!access.crossed || loop->isProperAncestor(access.crossed)))
          access.crossed = loop;
    }
    pending = after;
  }

  SharedArguments arguments;
  SmallVector<Access> pending;
  llvm::SetVector<Operation *> places, exchanges;
  llvm::SmallPtrSet<Operation *, 8> busy;
};

struct PlaceBarriers
    : public tilewright::impl::PlaceBarriersBase<PlaceBarriers> {
  using PlaceBarriersBase::PlaceBarriersBase;

  void runOnOperation() override {
    getOperation()->walk([&](gpu::GPUFuncOp function) { place(function); });
  }

private:
  static void place(gpu::GPUFuncOp function) {
    if (!function->hasAttr(tile::decisions::kThreads) ||
        function->hasAttr(tile::decisions::kOneThread))
      return;
    Barriers barriers(function);
    for (Block &block : function.getBody())
      barriers.run(block);
    for (Operation *op : barriers.getPlaces()) {
      OpBuilder b(op);
      gpu::BarrierOp::create(b, op->getLoc());
    }
    for (Operation *op : barriers.getFreeScratch())
      op->setAttr(tile::decisions::kScratchFree,
                  UnitAttr::get(op->getContext()));
  }
};

} // namespace

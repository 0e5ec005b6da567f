//===- KeepStates.cpp - states of loops in registers ----------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDecisions.h"
#include "lib/Analysis/BufferBytes.h"
#include "lib/Analysis/SharedArguments.h"
#include "lib/Transforms/Programs/Passes.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/LoopInvariantCodeMotionUtils.h"

namespace tilewright {
#define GEN_PASS_DEF_KEEPSTATES
#include "lib/Transforms/Programs/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;

namespace {

/// A tile that each iteration reads from one buffer and writes to another one,
/// which the next iteration reads.
struct State {
  unsigned number;
  tile::LoadOp load;
  tile::StoreOp store;
};

/// Makes tiles that a loop hands on through buffers values that it carries.
class StateKeeper {
public:
  explicit StateKeeper(scf::ForOp loop) : loop(loop) {}

  /// Whether there were any.
  bool run() {
    if (!loop->use_empty())
      return false;
    moveLoopInvariantCode(loop);
    for (unsigned number : llvm::seq(loop.getNumRegionIterArgs()))
      if (std::optional<State> state = find(number))
        states.push_back(*state);
    if (!states.empty())
      carry();
    return !states.empty();
  }

private:
  /// Users of a buffer beside the loop's end.
  static SmallVector<Operation *> usersOf(Value buffer) {
    return llvm::to_vector(
        llvm::make_filter_range(buffer.getUsers(), [](Operation *user) {
          return !isa<scf::YieldOp>(user);
        }));
  }

  std::optional<State> find(unsigned number) {
    Value read = loop.getRegionIterArg(number);
    auto wrote = dyn_cast<BlockArgument>(loop.getYieldedValues()[number]);
    if (!isa<MemRefType>(read.getType()) || !wrote || wrote == read ||
        wrote.getOwner() != loop.getBody() || wrote == loop.getInductionVar())
      return std::nullopt;
    SmallVector<Operation *> readers = usersOf(read), writers = usersOf(wrote);
    if (readers.size() != 1 || writers.size() != 1)
      return std::nullopt;
    auto load = dyn_cast<tile::LoadOp>(readers.front());
    auto store = dyn_cast<tile::StoreOp>(writers.front());
    if (!load || !store || load->getBlock() != loop.getBody() ||
        store->getBlock() != loop.getBody() || !areOnePlace(load, store))
      return std::nullopt;
    unsigned other = wrote.getArgNumber() - loop.getNumInductionVars();
    if (isTouched(loop.getInitArgs()[number], load, store) ||
        isTouched(loop.getInitArgs()[other], load, store))
      return std::nullopt;
    return State{number, load, store};
  }

  /// Whether a load and a store are of the same elements in any iteration.
  bool areOnePlace(tile::LoadOp load, tile::StoreOp store) {
    auto isFixed = [&](Value value) {
      return loop.isDefinedOutsideOfLoop(value);
    };
    return load.getOffsets() == store.getOffsets() &&
           load.getType() == store.getTile().getType() &&
           load.getDimsAttr() == store.getDimsAttr() &&
           load.getStepsAttr() == store.getStepsAttr() && !load.getIndices() &&
           !load.getBoundedAttr() && isPlain(store) &&
           llvm::all_of(load.getOffsets(), isFixed) &&
           llvm::all_of(load.getValid(), isFixed) &&
           load.getValid() == store.getValid() &&
           (load.getValid().empty() || isElementwise(load));
  }

  /// Whether a store has nothing but what a load may have, too.
  static bool isPlain(tile::StoreOp store) {
    return !store.getReduceAttr() && !store.getAtomic() &&
           store->getNumOperands() ==
               2 + store.getOffsets().size() + store.getValid().size();
  }

  /// Whether elements outside of bounds, which would be a load's padding, reach
  /// no others: all that is computed is elementwise, and stored within bounds.
  bool isElementwise(tile::LoadOp load) {
    return llvm::all_of(
        loop.getBody()->without_terminator(), [&](Operation &op) {
          if (auto store = dyn_cast<tile::StoreOp>(op))
            return store.getValid() == load.getValid();
          bool hasTile = llvm::any_of(op.getOperandTypes(), [](Type type) {
            return isa<tile::TileType>(type);
          });
          return !hasTile || op.hasTrait<OpTrait::Elementwise>();
        });
  }

  /// Whether something else in the loop touches a buffer's bytes.
  bool isTouched(Value buffer, tile::LoadOp load, tile::StoreOp store) {
    BufferBytes bytes = bytesOf(buffer);
    if (!isArgument(bytes.buffer))
      return true;
    return loop
        ->walk([&](Operation *op) {
          if (op == load || op == store || isMemoryEffectFree(op) ||
              op->getNumRegions() > 0)
            return WalkResult::advance();
          Value memref =
              isa<tile::LoadOp>(op)    ? cast<tile::LoadOp>(op).getMemref()
              : isa<tile::StoreOp>(op) ? cast<tile::StoreOp>(op).getMemref()
                                       : Value();
          return !memref || meets(bytes, memref) ? WalkResult::interrupt()
                                                 : WalkResult::advance();
        })
        .wasInterrupted();
  }

  bool meets(const BufferBytes &bytes, Value memref) {
    Value root = getRoot(memref);
    if (auto argument = dyn_cast<BlockArgument>(root);
        argument && argument.getOwner() == loop.getBody()) {
      // As the others, handed round among buffers that this loop began with.
      return llvm::any_of(loop.getInitArgs(), [&](Value init) {
        BufferBytes other = bytesOf(init);
        return isa<MemRefType>(init.getType()) && reaches(argument, init) &&
               other.buffer == bytes.buffer && other.overlaps(bytes);
      });
    }
    BufferBytes other = bytesOf(root);
    if (!isArgument(other.buffer))
      return true;
    return other.buffer == bytes.buffer && other.overlaps(bytes);
  }

  /// Whether a carried buffer may be one that the loop began with.
  bool reaches(BlockArgument argument, Value init) {
    llvm::SmallPtrSet<Value, 4> seen;
    Value value = argument;
    while (auto carried = dyn_cast<BlockArgument>(value)) {
      if (!seen.insert(value).second || carried.getOwner() != loop.getBody())
        return false;
      unsigned number = carried.getArgNumber() - loop.getNumInductionVars();
      if (loop.getInitArgs()[number] == init)
        return true;
      value = loop.getYieldedValues()[number];
    }
    return true;
  }

  static BufferBytes bytesOf(Value memref) {
    memref = getRoot(memref);
    if (auto view = memref.getDefiningOp<memref::ViewOp>())
      return getBytes(view);
    return {memref};
  }

  static bool isArgument(Value value) {
    auto argument = dyn_cast<BlockArgument>(value);
    return argument && isa<tile::KernelOp>(argument.getOwner()->getParentOp());
  }

  /// Loads before the loop, stores behind it, and carries tiles.
  void carry() {
    IRRewriter b(loop.getContext());
    b.setInsertionPoint(loop);
    SmallVector<Value> first, next;
    for (State &state : states) {
      IRMapping mapping;
      mapping.map(loop.getRegionIterArg(state.number),
                  loop.getInitArgs()[state.number]);
      first.push_back(b.clone(*state.load, mapping)->getResult(0));
      next.push_back(state.store.getTile());
    }
    unsigned carried = loop.getNumRegionIterArgs();
    auto made = cast<scf::ForOp>(*loop.replaceWithAdditionalYields(
        b, first, /*replaceInitOperandUsesInLoop=*/false,
        [&](OpBuilder &, Location, ArrayRef<BlockArgument>) { return next; }));
    b.setInsertionPointAfter(made);
    for (auto [place, state] : llvm::enumerate(states)) {
      b.replaceAllUsesWith(state.load.getResult(),
                           made.getRegionIterArg(carried + place));
      IRMapping mapping;
      mapping.map(state.store.getMemref(), made.getResult(state.number));
      mapping.map(state.store.getTile(), made.getResult(carried + place));
      b.clone(*state.store, mapping);
      b.eraseOp(state.load);
      b.eraseOp(state.store);
    }
  }

  scf::ForOp loop;
  SmallVector<State> states;
};

struct KeepStates : public tilewright::impl::KeepStatesBase<KeepStates> {
  void runOnOperation() override {
    llvm::DenseSet<StringAttr> shared = findShared();
    for (auto kernel : getOperation().getOps<tile::KernelOp>()) {
      auto level = tile::decisions::kLevel.get(kernel);
      if (!level || level.getValue() != "thread")
        continue;
      bool kept = false;
      if (!shared.contains(kernel.getSymNameAttr()))
        for (auto loop : llvm::make_early_inc_range(
                 kernel.getEntryBlock().getOps<scf::ForOp>()))
          kept |= StateKeeper(loop).run();
      if (!kept)
        kernel->setAttr(tile::decisions::kLevel,
                        StringAttr::get(&getContext(), "task"));
    }
  }

private:
  /// Kernels that a launch gives one buffer twice.
  llvm::DenseSet<StringAttr> findShared() {
    llvm::DenseSet<StringAttr> found;
    getOperation().walk([&](tile::LaunchOp launch) {
      llvm::SmallPtrSet<Value, 8> roots;
      for (Value operand : launch.getKernelOperands()) {
        if (!isa<MemRefType>(operand.getType()))
          continue;
        Value root = getRoot(operand);
        while (auto view = root.getDefiningOp<memref::ViewOp>())
          root = getRoot(view.getSource());
        if (!roots.insert(root).second)
          found.insert(launch.getKernelAttr().getAttr());
      }
    });
    return found;
  }
};

} // namespace

//===- KeepStates.cpp - states of loops in registers ----------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDecisions.h"
#include "lib/Analysis/BufferBytes.h"
#include "lib/Analysis/Device.h"
#include "lib/Analysis/SharedArguments.h"
#include "lib/Transforms/Programs/Passes.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/LoopInvariantCodeMotionUtils.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/FormatVariadic.h"

#include <set>
#include <vector>

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

/// How many bytes of registers tiles have that a loop carries, and may have.
struct Registers {
  /// Of the threads of a task together; what they compute needs as much again.
  int64_t room;
  int64_t threads;
  int64_t taken = 0;

  int64_t bytesOf(tile::TileType type) const {
    Type element = type.getElementType();
    int64_t bits =
        element.isIntOrFloat() ? element.getIntOrFloatBitWidth() : 64;
    int64_t rest = 1;
    for (int64_t size : type.getShape())
      rest *= size;
    // Each element of a thread has a register of 32 bits, or two of them.
    if (threads > 1)
      return llvm::divideCeil(rest, threads) * threads *
             llvm::divideCeil(bits, 32) * 4;
    return llvm::divideCeil(rest * bits, 8);
  }
};

/// Makes tiles that a loop hands on through buffers values that it carries.
class StateKeeper {
public:
  StateKeeper(scf::ForOp loop, Registers &registers)
      : loop(loop), registers(registers) {}

  /// Whether there were any.
  bool run() {
    if (!loop->use_empty()) {
      reasons.insert("the kernel uses buffers that the loop ends with");
      return false;
    }
    moveLoopInvariantCode(loop);
    bool any = false;
    for (unsigned number : llvm::seq(loop.getNumRegionIterArgs())) {
      if (!isHandedOn(number))
        continue;
      any = true;
      std::string reason = find(number);
      if (!reason.empty())
        reasons.insert(std::move(reason));
    }
    if (!any && updatesInPlace())
      reasons.insert("a buffer is read and written in place");
    if (!states.empty())
      carry();
    return !states.empty();
  }

  /// Why what iterations hand on goes through memory.
  ArrayRef<std::string> getReasons() const { return reasons.getArrayRef(); }

private:
  /// Users of a buffer beside the loop's end.
  static SmallVector<Operation *> usersOf(Value buffer) {
    return llvm::to_vector(
        llvm::make_filter_range(buffer.getUsers(), [](Operation *user) {
          return !isa<scf::YieldOp>(user);
        }));
  }

  /// Whether an iteration reads a buffer that the one before gave it.
  bool isHandedOn(unsigned number) {
    BlockArgument read = loop.getRegionIterArg(number);
    return isa<MemRefType>(read.getType()) &&
           loop.getYieldedValues()[number] != read &&
           llvm::any_of(usersOf(read), llvm::IsaPred<tile::LoadOp>);
  }

  bool updatesInPlace() {
    llvm::SmallPtrSet<Value, 4> read, written;
    loop->walk([&](Operation *op) {
      if (auto load = dyn_cast<tile::LoadOp>(op))
        read.insert(getRoot(load.getMemref()));
      if (auto store = dyn_cast<tile::StoreOp>(op))
        written.insert(getRoot(store.getMemref()));
    });
    return llvm::any_of(read,
                        [&](Value buffer) { return written.contains(buffer); });
  }

  /// Finds the state that is read from a carried buffer; why it is none.
  std::string find(unsigned number) {
    Value read = loop.getRegionIterArg(number);
    auto wrote = dyn_cast<BlockArgument>(loop.getYieldedValues()[number]);
    if (!wrote || wrote.getOwner() != loop.getBody() ||
        wrote == loop.getInductionVar())
      return "the next iteration reads a buffer that the loop does not carry";
    SmallVector<Operation *> readers = usersOf(read), writers = usersOf(wrote);
    if (readers.size() != 1 || writers.size() != 1)
      return llvm::formatv("an iteration accesses what it reads {0} times, and "
                           "what the next one reads {1} times: a value is of "
                           "one load and one store",
                           readers.size(), writers.size());
    auto load = dyn_cast<tile::LoadOp>(readers.front());
    auto store = dyn_cast<tile::StoreOp>(writers.front());
    if (!load || !store)
      return "an iteration does not write what the next one reads";
    if (load->getBlock() != loop.getBody() ||
        store->getBlock() != loop.getBody())
      return "each iteration has a loop or a branch around its tiles: a task "
             "has more of them than one";
    std::string reason = findDifference(load, store);
    if (!reason.empty())
      return reason;
    unsigned other = wrote.getArgNumber() - loop.getNumInductionVars();
    if (isTouched(loop.getInitArgs()[number], load, store) ||
        isTouched(loop.getInitArgs()[other], load, store))
      return "the loop or what is behind it may read or write the same bytes "
             "elsewhere";
    return take({number, load, store});
  }

  /// Carries a state if registers have room for it.
  std::string take(State state) {
    int64_t bytes = registers.bytesOf(state.load.getType());
    if (registers.room >= 0 && registers.taken + bytes > registers.room)
      return llvm::formatv(
          "{0} bytes of it beside {1} that are kept are more than {2}, half of "
          "the registers of a task",
          bytes, registers.taken, registers.room);
    registers.taken += bytes;
    states.push_back(state);
    return "";
  }

  /// Why a load and a store may not be of the same elements in any iteration.
  std::string findDifference(tile::LoadOp load, tile::StoreOp store) {
    auto isFixed = [&](Value value) {
      return loop.isDefinedOutsideOfLoop(value);
    };
    if (load.getIndices() || load.getBoundedAttr() || !isPlain(store))
      return "it is gathered, scattered, or added to what is there";
    if (load.getOffsets() != store.getOffsets() ||
        load.getType() != store.getTile().getType() ||
        load.getDimsAttr() != store.getDimsAttr() ||
        load.getStepsAttr() != store.getStepsAttr())
      return "threads read what others wrote: the places differ";
    if (!llvm::all_of(load.getOffsets(), isFixed))
      return "each iteration reads another place";
    if (!llvm::all_of(load.getValid(), isFixed) ||
        load.getValid() != store.getValid())
      return "bounds of ragged tiles differ, or are others in each iteration";
    if (!load.getValid().empty() && !isElementwise(load))
      return "tiles are ragged, and padding would reach other elements: not "
             "all that is computed is elementwise";
    return "";
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

  /// Whether something else in the loop touches a buffer's bytes, or something
  /// behind it, where one of the two does not hold what it would.
  bool isTouched(Value buffer, tile::LoadOp load, tile::StoreOp store) {
    BufferBytes bytes = bytesOf(buffer);
    if (!isArgument(bytes.buffer))
      return true;
    auto isOther = [&](Operation *op) {
      if (op == load || op == store || isMemoryEffectFree(op) ||
          op->getNumRegions() > 0)
        return WalkResult::advance();
      Value memref = isa<tile::LoadOp>(op) ? cast<tile::LoadOp>(op).getMemref()
                     : isa<tile::StoreOp>(op)
                         ? cast<tile::StoreOp>(op).getMemref()
                         : Value();
      return !memref || meets(bytes, memref) ? WalkResult::interrupt()
                                             : WalkResult::advance();
    };
    for (Operation *op = loop; !op->hasTrait<OpTrait::IsTerminator>();
         op = op->getNextNode())
      if (op->walk(isOther).wasInterrupted())
        return true;
    return false;
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
  Registers &registers;
  SmallVector<State> states;
  llvm::SetVector<std::string, std::vector<std::string>, std::set<std::string>>
      reasons;
};

struct KeepStates : public tilewright::impl::KeepStatesBase<KeepStates> {
  using KeepStatesBase::KeepStatesBase;

  void runOnOperation() override {
    llvm::DenseSet<StringAttr> shared = findShared();
    Device device(getOperation());
    for (auto kernel : getOperation().getOps<tile::KernelOp>()) {
      auto level = tile::decisions::kLevel.get(kernel);
      if (!level || level.getValue() != "thread")
        continue;
      bool kept = false;
      if (shared.contains(kernel.getSymNameAttr()))
        tell(kernel, "a launch gives the kernel one buffer twice");
      else
        kept = keepIn(kernel, registersOf(kernel, device));
      if (!kept)
        kernel->setAttr(tile::decisions::kLevel,
                        StringAttr::get(&getContext(), "task"));
    }
  }

private:
  static void tell(tile::KernelOp kernel, StringRef reason) {
    kernel.emitRemark("what an iteration of a loop of tasks hands on goes "
                      "through memory, not registers: ")
        << reason;
  }

  static bool keepIn(tile::KernelOp kernel, Registers registers) {
    bool kept = false;
    for (auto loop : llvm::make_early_inc_range(
             kernel.getEntryBlock().getOps<scf::ForOp>())) {
      StateKeeper keeper(loop, registers);
      kept |= keeper.run();
      for (const std::string &reason : keeper.getReasons())
        tell(kernel, reason);
    }
    return kept;
  }

  /// Half of what the threads of a task have.
  Registers registersOf(tile::KernelOp kernel, const Device &device) const {
    int64_t threads = device.isGPU() ? 128 : 1;
    if (auto warps = tile::decisions::kWarps.get(kernel))
      threads = 32 * warps.getInt();
    if (auto said = tile::decisions::kThreads.get(kernel))
      threads = said.getInt();
    int64_t bytes = registerBytes;
    if (bytes < 0)
      bytes = device.getRegisterBytes().value_or(-1);
    return {bytes < 0 ? -1 : bytes * threads / 2, threads};
  }

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

//===- SinkLoops.cpp - loops that each task runs by itself ----------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDecisions.h"
#include "lib/Transforms/Programs/Passes.h"
#include "lib/Transforms/Programs/StretchOutline.h"
#include "lib/Transforms/Programs/TaskLoop.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

namespace tilewright {
#define GEN_PASS_DEF_SINKLOOPS
#include "lib/Transforms/Programs/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;

namespace {

/// Makes one kernel of a loop and of the kernels that it launches.
class TaskOutline : StretchOutline {
public:
  TaskOutline(Stretch &stretch, SymbolTable &symbols, tile::KernelOp first)
      : StretchOutline(stretch, symbols), first(first) {}

  LogicalResult run() {
    SmallVector<Value> grid = makeGrid();
    if (failed(stretch.findArguments()))
      return failure();
    makeKernel(("loop_" + first.getSymName()).str(), grid.size());
    describe();
    fill();
    for (tile::LaunchOp launch : launchesIn(kernel))
      inlineOne(launch);
    // The blocks that ran the loop run its tasks.
    Attribute team = stretch.ops.front()->getAttr(tile::decisions::kTeam);
    tile::LaunchOp made = launchKernel(grid);
    if (team)
      made->setAttr(tile::decisions::kTeam, team);
    return leave();
  }

private:
  /// The bounds, in front of the loop.
  SmallVector<Value> makeGrid() {
    Operation *loop = stretch.ops.front();
    b.setInsertionPoint(loop);
    tile::LaunchOp launch = launchesIn(loop).front();
    return llvm::map_to_vector(launch.getGrid(), [&](Value bound) -> Value {
      if (auto number = getConstantIntValue(bound))
        return arith::ConstantIndexOp::create(b, loc, *number);
      return bound;
    });
  }

  /// Blocks are those of the kernels; the time is that of all iterations.
  void describe() {
    Operation *loop = stretch.ops.front();
    kernel->setAttr(tile::decisions::kLevel,
                    loop->getAttr(tile::decisions::kLevel));
    for (StringRef name : {StringRef(tile::decisions::kThreads),
                           StringRef(tile::decisions::kWarps)})
      if (Attribute said = first->getAttr(name))
        kernel->setAttr(name, said);
    std::optional<APInt> trips =
        cast<scf::ForOp>(stretch.ops.front()).getStaticTripCount();
    if (!trips)
      return;
    int64_t ns = 0;
    for (tile::LaunchOp launch : launchesIn(stretch.ops.front()))
      ns += predicted(lookUp(launch.getKernel()), "ns");
    if (ns == 0)
      return; // nobody has predicted it
    NamedAttribute parts[] = {
        b.getNamedAttr("ns", b.getI64IntegerAttr(ns * trips->getSExtValue())),
        b.getNamedAttr("occupancy",
                       b.getI64IntegerAttr(predicted(first, "occupancy")))};
    kernel->setAttr(tile::decisions::kPrediction, b.getDictionaryAttr(parts));
  }

  static int64_t predicted(tile::KernelOp kernel, StringRef name) {
    auto said = tile::decisions::kPrediction.get(kernel);
    auto number = said ? said.getAs<IntegerAttr>(name) : IntegerAttr();
    return number ? number.getInt() : 0;
  }

  /// The task of the same coordinates, in the place of a launch.
  void inlineOne(tile::LaunchOp launch) {
    tile::KernelOp called = lookUp(launch.getKernel());
    b.setInsertionPoint(launch);
    IRMapping values;
    for (auto [argument, operand] :
         llvm::zip_equal(called.getInputs(), launch.getKernelOperands())) {
      Value given = operand;
      if (given.getType() != argument.getType())
        given = memref::CastOp::create(b, loc, argument.getType(), given);
      values.map(argument, given);
    }
    values.map(called.getGridIds(), kernel.getGridIds());
    for (Operation &op : called.getEntryBlock().without_terminator())
      b.clone(op, values);
    launch.erase();
  }

  tile::KernelOp first;
};

struct SinkLoops : public tilewright::impl::SinkLoopsBase<SinkLoops> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    SmallVector<scf::ForOp> loops;
    for (auto function : getOperation().getOps<func::FuncOp>())
      function.walk([&](scf::ForOp loop) {
        if (loop->hasAttr(tile::decisions::kLevel))
          loops.push_back(loop);
      });
    // Inner loops come first: an outer one launches what they became.
    for (scf::ForOp loop : loops)
      if (failed(sink(loop, symbols)))
        return signalPassFailure();
    for (auto kernel :
         llvm::make_early_inc_range(getOperation().getOps<tile::KernelOp>()))
      if (!loops.empty() &&
          SymbolTable::symbolKnownUseEmpty(kernel, getOperation()))
        symbols.erase(kernel);
  }

private:
  /// Whether the host uses a buffer that iterations only write: what it holds
  /// in the end is the state before the last one.
  static bool givesOldStates(scf::ForOp loop) {
    return llvm::any_of(loop.getResults(), [&](OpResult result) {
      Value carried = loop.getRegionIterArg(result.getResultNumber());
      bool isRead = llvm::any_of(carried.getUses(), [](OpOperand &use) {
        auto launch = dyn_cast<tile::LaunchOp>(use.getOwner());
        return !isa<scf::YieldOp>(use.getOwner()) &&
               (!launch || !llvm::is_contained(launch.getOutputs(), use.get()));
      });
      return isa<MemRefType>(carried.getType()) && !result.use_empty() &&
             !isRead;
    });
  }

  static LogicalResult sink(scf::ForOp loop, SymbolTable &symbols) {
    auto level = tile::decisions::kLevel.get(loop);
    if (level.getValue() != "task" && level.getValue() != "thread")
      return loop.emitOpError("has `tile.level = ")
             << level
             << "`: known are \"task\" and \"thread\", and none for the host";
    TaskLoop tasks(loop, symbols);
    std::string reason = tasks.findObstacle();
    if (!reason.empty())
      return loop.emitOpError("has `tile.level = \"task\"`, but its tasks "
                              "cannot run it by themselves: ")
             << reason;
    tile::LaunchOp launch = tasks.getLaunches().front();
    if (launch->hasAttr(tile::decisions::kTeam))
      loop.emitRemark("its launches have no teams of blocks any more: each "
                      "task runs all iterations, launch by launch");
    Stretch stretch;
    stretch.ops.push_back(loop);
    if (level.getValue() == "thread" && givesOldStates(loop)) {
      loop.emitRemark("what an iteration hands on goes through memory, not "
                      "registers: the state before the last one is used");
      loop->setAttr(tile::decisions::kLevel,
                    StringAttr::get(loop.getContext(), "task"));
    }
    return TaskOutline(stretch, symbols, tasks.getKernel(launch)).run();
  }
};

} // namespace

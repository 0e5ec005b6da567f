//===- FormPrograms.cpp - loops of launches as programs -------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDecisions.h"
#include "lib/Transforms/Programs/Passes.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"

namespace tilewright {
#define GEN_PASS_DEF_FORMPROGRAMS
#include "lib/Transforms/Programs/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;

namespace {

/// A launch in a loop: its grid, and the units that have tasks of it.
struct Stage {
  tile::LaunchOp launch;
  SmallVector<int64_t> grid;
  int64_t tasks = 1;
  int64_t units = 1;
};

/// Makes a program of some iterations of a loop, which then starts it.
class LoopOutline {
public:
  LoopOutline(scf::ForOp loop, int64_t units, int64_t steps)
      : loop(loop), units(units), steps(steps), b(loop), loc(loop.getLoc()) {}

  LogicalResult run(SymbolTable &symbols) {
    if (failed(readStages()) || failed(checkCarried()))
      return failure();
    collectArguments();
    tile::ProgramOp program = makeProgram();
    symbols.insert(program,
                   loop->getParentOfType<func::FuncOp>()->getIterator());
    Value stride = arith::MulIOp::create(
        b, loc, loop.getStep(), arith::ConstantIndexOp::create(b, loc, steps));
    Value end = makeEnd(stride);
    auto outer = scf::ForOp::create(b, loc, loop.getLowerBound(), end, stride);
    b.setInsertionPointToStart(outer.getBody());
    tile::LaunchOp::create(b, loc, program.getSymName(), ValueRange(),
                           outer.getInductionVar(), arguments);
    if (end == loop.getUpperBound()) {
      loop->replaceAllUsesWith(loop.getInitArgs());
      loop.erase();
      return success();
    }
    loop.setLowerBound(end);
    loop->removeAttr(tile::decisions::kUnits);
    loop->removeAttr(tile::decisions::kSteps);
    return success();
  }

private:
  LogicalResult readStages() {
    for (Operation &op : loop.getBody()->without_terminator()) {
      auto launch = dyn_cast<tile::LaunchOp>(op);
      if (!launch && isMemoryEffectFree(&op) && op.getNumRegions() == 0)
        continue;
      if (!launch)
        return op.emitOpError("stands in a loop with `tile.units`, which holds "
                              "launches only");
      Stage stage{launch, {}};
      for (Value bound : launch.getGrid()) {
        std::optional<int64_t> size = getConstantIntValue(bound);
        if (!size)
          return launch.emitOpError("in a loop with `tile.units` needs a grid "
                                    "of constants");
        stage.grid.push_back(*size);
        stage.tasks *= *size;
      }
      stage.units = std::clamp<int64_t>(stage.tasks, 1, units);
      stages.push_back(stage);
    }
    if (stages.empty() || !getConstantIntValue(loop.getStep()))
      return loop.emitOpError(
          "with `tile.units` needs launches, and a constant step");
    return success();
  }

  /// Where the iterations that are whole programs end.
  Value makeEnd(Value stride) {
    std::optional<APInt> trips = loop.getStaticTripCount();
    if (trips && trips->getSExtValue() % steps == 0)
      return loop.getUpperBound();
    Value length = arith::SubIOp::create(b, loc, loop.getUpperBound(),
                                         loop.getLowerBound());
    if (int64_t step = *getConstantIntValue(loop.getStep()); step != 1)
      length = arith::MulIOp::create(
          b, loc, arith::CeilDivSIOp::create(b, loc, length, loop.getStep()),
          loop.getStep());
    Value whole = arith::MulIOp::create(
        b, loc, arith::DivSIOp::create(b, loc, length, stride), stride);
    return arith::AddIOp::create(b, loc, loop.getLowerBound(), whole);
  }

  /// The buffers that the loop hands round are back in their places after the
  /// steps of one program.
  LogicalResult checkCarried() {
    auto values = llvm::to_vector_of<Value>(loop.getRegionIterArgs());
    for (int64_t step = 0; step < steps; ++step) {
      IRMapping mapping;
      mapping.map(loop.getRegionIterArgs(), values);
      values = llvm::map_to_vector(loop.getYieldedValues(), [&](Value value) {
        return mapping.lookupOrNull(value);
      });
    }
    if (llvm::equal(values, loop.getRegionIterArgs()))
      return success();
    return loop.emitOpError("with `tile.units` carries something else than "
                            "buffers that change places, and are back after "
                            "`tile.steps` iterations");
  }

  static bool isConstant(Value value) {
    Operation *op = value.getDefiningOp();
    return op && op->hasTrait<OpTrait::ConstantLike>();
  }

  void collectArguments() {
    llvm::SetVector<Value> used;
    getUsedValuesDefinedAbove(loop.getRegion(), used);
    used.insert(loop.getInitArgs().begin(), loop.getInitArgs().end());
    for (Value value : used)
      (isConstant(value) ? constants : arguments).push_back(value);
  }

  tile::ProgramOp makeProgram() {
    SmallVector<Type> types = {b.getIndexType()};
    for (Value value : arguments)
      types.push_back(value.getType());
    OpBuilder::InsertionGuard guard(b);
    b.clearInsertionPoint();
    auto program = tile::ProgramOp::create(
        b, loc, "program_" + stages.front().launch.getKernel().str(),
        b.getFunctionType(types, {}), units);
    Block &body = program.getBody().front();
    b.setInsertionPointToStart(&body);
    mapping.map(arguments, body.getArguments().drop_front());
    for (Value value : constants)
      b.clone(*value.getDefiningOp(), mapping);
    int64_t stride = *getConstantIntValue(loop.getStep());
    SmallVector<Value> carried = lookUp(loop.getInitArgs());
    for (int64_t step = 0; step < steps; ++step) {
      Value offset = arith::ConstantIndexOp::create(b, loc, step * stride);
      mapping.map(loop.getInductionVar(),
                  arith::AddIOp::create(b, loc, body.getArgument(0), offset)
                      .getResult());
      mapping.map(loop.getRegionIterArgs(), carried);
      addStep();
      carried = lookUp(loop.getYieldedValues());
    }
    tile::ReturnOp::create(b, loc);
    return program;
  }

  SmallVector<Value> lookUp(ValueRange values) {
    return llvm::map_to_vector(
        values, [&](Value value) { return mapping.lookup(value); });
  }

  /// One iteration.
  void addStep() {
    const Stage *stage = stages.begin();
    for (Operation &op : loop.getBody()->without_terminator()) {
      if (isa<tile::LaunchOp>(op))
        place(*stage++);
      else
        b.clone(op, mapping);
    }
  }

  /// A launch reads what the one before it makes: units that have a part of it
  /// wait for all that had a part of the other. An event counts for one launch.
  void place(const Stage &stage) {
    await(stage.units);
    tile::LaunchOp launch = stage.launch;
    auto kernel = SymbolTable::lookupNearestSymbolFrom<tile::KernelOp>(
        launch, launch.getKernelAttr());
    SmallVector<Value> operands;
    for (Value value : launch.getKernelOperands()) {
      Value operand = mapping.lookup(value);
      Type wanted = kernel.getArgumentTypes()[operands.size()];
      if (operand.getType() != wanted)
        operand = memref::CastOp::create(b, loc, wanted, operand);
      operands.push_back(operand);
    }
    for (int64_t unit = 0; unit < stage.units; ++unit) {
      SmallVector<int64_t> tasks = {stage.tasks * unit / stage.units,
                                    stage.tasks * (unit + 1) / stage.units};
      tile::PlaceOp::create(
          b, loc, launch.getKernelAttr().getLeafReference().getValue(), tasks,
          stage.grid, unit, operands);
    }
    for (int64_t unit = 0; unit < stage.units; ++unit)
      tile::SignalOp::create(b, loc, event, unit);
    signalled = stage.units;
    ++event;
  }

  /// Units [0, waiting) wait until all parts of the last launch are done. The
  /// only unit of one has done it itself.
  void await(int64_t waiting) {
    for (int64_t unit = signalled == 1 ? 1 : 0; signalled && unit < waiting;
         ++unit)
      tile::WaitOp::create(b, loc, event - 1, signalled, unit);
  }

  scf::ForOp loop;
  int64_t units, steps;
  OpBuilder b;
  Location loc;
  SmallVector<Stage> stages;
  SmallVector<Value> arguments, constants;
  IRMapping mapping;
  int64_t event = 0, signalled = 0;
};

struct FormPrograms : public tilewright::impl::FormProgramsBase<FormPrograms> {
  void runOnOperation() override {
    auto main = getOperation().lookupSymbol<func::FuncOp>("main");
    if (!main)
      return; // kernels alone
    SmallVector<scf::ForOp> loops;
    main.walk([&](scf::ForOp loop) {
      if (loop->hasAttr(tile::decisions::kUnits))
        loops.push_back(loop);
    });
    SymbolTable symbols(getOperation());
    for (scf::ForOp loop : loops) {
      auto units = tile::decisions::kUnits.get(loop);
      auto steps = tile::decisions::kSteps.get(loop);
      if (!units || !steps || units.getInt() < 1 || steps.getInt() < 1) {
        loop.emitOpError(
            "needs positive numbers `tile.units` and `tile.steps`");
        return signalPassFailure();
      }
      LoopOutline outline(loop, units.getInt(), steps.getInt());
      if (failed(outline.run(symbols)))
        return signalPassFailure();
    }
  }
};

} // namespace

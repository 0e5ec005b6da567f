//===- ProgramLowering.cpp - programs as functions ------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToRuntime/ProgramLowering.h"
#include "dialects/Tile/TileDecisions.h"

using namespace mlir;
using namespace tilewright;

namespace {

/// One thread may run several units, in the order of the text: each wait must
/// find its signals before it.
LogicalResult checkOrder(tile::ProgramOp program) {
  DenseMap<uint64_t, uint64_t> counts;
  for (Operation &op : program.getBody().front()) {
    if (auto signal = dyn_cast<tile::SignalOp>(op))
      ++counts[signal.getEvent()];
    auto wait = dyn_cast<tile::WaitOp>(op);
    if (wait && counts[wait.getEvent()] < wait.getCount())
      return wait.emitOpError("stands before signals that it waits for; a CPU "
                              "may run several units on one thread, in the "
                              "order of the text");
  }
  return success();
}

class ProgramLowering {
public:
  ProgramLowering(tile::ProgramOp program, const LLVMTypeConverter &converter)
      : program(program), module(program->getParentOfType<ModuleOp>()),
        b(program), loc(program.getLoc()), memory(b, loc, converter) {}

  LogicalResult run() {
    if (failed(checkOrder(program)))
      return failure();
    SmallVector<Operation *> steps;
    program.walk([&](Operation *op) {
      if (isa<tile::PlaceOp, tile::SignalOp, tile::WaitOp>(op))
        steps.push_back(op);
    });
    makeFunction();
    makeStack(steps);
    takeBody();
    for (Operation *step : steps)
      if (failed(lower(step)))
        return failure();
    function->setAttr(tile::decisions::kScratchBytes,
                      b.getI64IntegerAttr(scratchBytes));
    function->setAttr(tile::decisions::kProgramEvents,
                      b.getI64IntegerAttr(events));
    program.erase();
    return success();
  }

private:
  void makeFunction() {
    pointer = LLVM::LLVMPointerType::get(b.getContext());
    auto type = b.getFunctionType(
        {pointer, b.getI64Type(), b.getI64Type(), pointer}, {});
    function = func::FuncOp::create(b, loc, program.getSymName(), type);
    function->setAttr(tile::decisions::kCode, b.getUnitAttr());
    function->setAttr(tile::decisions::kProgramUnits,
                      b.getI64IntegerAttr(program.getUnits()));
    b.setInsertionPointToStart(function.addEntryBlock());
  }

  /// One area for all places: a place returns when its tasks are done.
  void makeStack(ArrayRef<Operation *> steps) {
    int64_t words = 1, arguments = 1;
    for (Operation *step : steps) {
      auto place = dyn_cast<tile::PlaceOp>(step);
      if (!place)
        continue;
      auto rank = static_cast<int64_t>(place.getGrid().size());
      int64_t needed = rank;
      for (Type type : place.getOperandTypes())
        needed += RawMemory::argumentWords(type);
      words = std::max(words, needed);
      arguments = std::max(arguments, int64_t(place.getNumOperands()) + rank);
    }
    descriptors = allocate(words);
    argv = allocate(arguments);
  }

  Value allocate(int64_t words) {
    return LLVM::AllocaOp::create(b, loc, pointer, b.getI64Type(),
                                  memory.constantI64(words), /*alignment=*/16);
  }

  /// The program's operations become the function's, its arguments are read.
  void takeBody() {
    Block &body = program.getBody().front();
    Value given = function.getArgument(0);
    for (auto [number, argument] : llvm::enumerate(body.getArguments())) {
      Value descriptor = memory.loadPointer(given, number);
      Type type = argument.getType();
      auto memref = dyn_cast<MemRefType>(type);
      argument.replaceAllUsesWith(
          memref ? memory.readDescriptor(memref, descriptor)
          : type.isIndex()
              ? memory.loadIndex(descriptor, 0)
              : LLVM::LoadOp::create(b, loc, type, descriptor).getResult());
    }
    counters = memory.loadPointer(given, body.getNumArguments());
    body.getTerminator()->erase();
    Block &entry = function.getBody().front();
    entry.getOperations().splice(entry.end(), body.getOperations());
    b.setInsertionPointToEnd(&entry);
    func::ReturnOp::create(b, loc);
  }

  LogicalResult lower(Operation *step) {
    b.setInsertionPoint(step);
    if (auto signal = dyn_cast<tile::SignalOp>(step)) {
      onUnit(signal.getUnit(), [&] { count(signal); });
    } else if (auto wait = dyn_cast<tile::WaitOp>(step)) {
      onUnit(wait.getUnit(), [&] { await(wait); });
    } else {
      auto place = cast<tile::PlaceOp>(step);
      auto kernel = module.lookupSymbol<func::FuncOp>(place.getKernelAttr());
      if (!kernel || !kernel->hasAttr(tile::decisions::kScratchBytes))
        return place.emitOpError("names a kernel that is no function");
      int64_t bytes = tile::decisions::kScratchBytes.get(kernel).getInt();
      scratchBytes = std::max(scratchBytes, bytes);
      onUnit(place.getUnit(), [&] { call(place, kernel); });
    }
    step->erase();
    return success();
  }

  /// if begin <= unit < end
  template <typename Build> void onUnit(int64_t unit, Build build) {
    Value number = memory.constantI64(unit);
    auto compare = [&](arith::CmpIPredicate predicate, unsigned argument) {
      return arith::CmpIOp::create(b, loc, predicate, number,
                                   function.getArgument(argument))
          .getResult();
    };
    Value mine =
        arith::AndIOp::create(b, loc, compare(arith::CmpIPredicate::sge, 1),
                              compare(arith::CmpIPredicate::slt, 2));
    auto branch = scf::IfOp::create(b, loc, mine, /*withElse=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    build();
  }

  void call(tile::PlaceOp place, func::FuncOp kernel) {
    SmallVector<Value> grid;
    for (int64_t bound : place.getGrid())
      grid.push_back(memory.constantI64(bound));
    memory.writeArguments(place.getOperands(), grid, descriptors, argv);
    ArrayRef<int64_t> tasks = place.getTasks();
    func::CallOp::create(b, loc, kernel,
                         ValueRange{argv, memory.constantI64(tasks[0]),
                                    memory.constantI64(tasks[1]),
                                    function.getArgument(3)});
  }

  void count(tile::SignalOp signal) {
    Value event = useEvent(signal.getEvent());
    callRuntime("twrt_signal", {counters, event});
  }

  void await(tile::WaitOp wait) {
    Value event = useEvent(wait.getEvent());
    callRuntime("twrt_wait",
                {counters, event, memory.constantI64(wait.getCount())});
  }

  Value useEvent(int64_t event) {
    events = std::max(events, event + 1);
    return memory.constantI64(event);
  }

  void callRuntime(StringRef name, ValueRange operands) {
    auto callee = module.lookupSymbol<func::FuncOp>(name);
    if (!callee) {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPoint(function);
      callee = func::FuncOp::create(b, loc, name,
                                    b.getFunctionType(operands.getTypes(), {}));
      callee.setPrivate();
    }
    func::CallOp::create(b, loc, callee, operands);
  }

  tile::ProgramOp program;
  ModuleOp module;
  OpBuilder b;
  Location loc;
  RawMemory memory;
  func::FuncOp function;
  Type pointer;
  Value descriptors, argv, counters;
  int64_t scratchBytes = 0, events = 1;
};

} // namespace

LogicalResult tilewright::lowerPrograms(ModuleOp module,
                                        const LLVMTypeConverter &converter) {
  for (auto program :
       llvm::make_early_inc_range(module.getOps<tile::ProgramOp>()))
    if (failed(ProgramLowering(program, converter).run()))
      return failure();
  return success();
}

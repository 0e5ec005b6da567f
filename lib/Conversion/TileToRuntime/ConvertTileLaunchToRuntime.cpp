//===- ConvertTileLaunchToRuntime.cpp - the host function as tw_main ------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDecisions.h"
#include "lib/Conversion/TileToRuntime/HostCalls.h"

#include "mlir/IR/SymbolTable.h"

namespace tilewright {
#define GEN_PASS_DEF_CONVERTTILELAUNCHTORUNTIME
#include "lib/Conversion/TileToRuntime/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;

namespace {

constexpr StringLiteral kEntry = "tw_main", kLaunch = "twrt_launch",
                        kProgram = "twrt_program";

/// Words of 8 bytes of an event's counter: a cache line.
constexpr int64_t kCounterWords = 8;

/// Words of 8 bytes that the descriptors of a launch take.
int64_t descriptorWords(tile::LaunchOp launch) {
  int64_t words = static_cast<int64_t>(launch.getGrid().size());
  for (Type type : launch.getKernelOperands().getTypes())
    words += RawMemory::argumentWords(type);
  return words;
}

/// The order of raw pointers: inputs, outputs, weights, arena. An output is an
/// argument, or a result where its sizes are known at run time only.
struct HostArguments {
  explicit HostArguments(func::FuncOp main) {
    for (BlockArgument argument : main.getArguments()) {
      unsigned index = argument.getArgNumber();
      if (main.getArgAttr(index, tile::decisions::kArena))
        arena.push_back(argument);
      else if (main.getArgAttr(index, tile::decisions::kGlobal))
        globals.push_back(argument);
      else if (auto number = main.getArgAttrOfType<IntegerAttr>(
                   index, tile::decisions::kSizesOf))
        sizes.push_back({argument, number.getInt()});
      else if (auto number = main.getArgAttrOfType<IntegerAttr>(
                   index, tile::decisions::kResult))
        outputs.push_back(
            {number.getInt(), argument, /*position=*/0,
             main.getArgAttrOfType<StringAttr>(index, tile::decisions::kName)});
      else
        inputs.push_back(argument);
    }
    Operation *end = main.getBody().front().getTerminator();
    for (unsigned index = 0; index < end->getNumOperands(); ++index) {
      auto number = main.getResultAttrOfType<IntegerAttr>(
          index, tile::decisions::kResult);
      outputs.push_back(
          {number ? number.getInt() : int64_t(index), BlockArgument(), index,
           main.getResultAttrOfType<StringAttr>(index,
                                                tile::decisions::kName)});
    }
    llvm::sort(outputs, [](const Output &left, const Output &right) {
      return left.number < right.number;
    });
  }
  struct Output {
    int64_t number;
    BlockArgument argument; // null for a result
    unsigned position;      // of a result
    StringAttr name;
  };
  SmallVector<BlockArgument> inputs, globals, arena;
  SmallVector<Output> outputs;
  /// Where sizes of outputs go, with the output's number.
  SmallVector<std::pair<BlockArgument, int64_t>> sizes;
};

/// Rewrites @main.
class HostLowering {
public:
  HostLowering(ModuleOp module, func::FuncOp main)
      : module(module), main(main), b(main), converter(main.getContext()),
        calls(module, converter) {}

  LogicalResult run() {
    if (failed(check()))
      return failure();
    HostArguments arguments(main);
    pointer = LLVM::LLVMPointerType::get(b.getContext());
    declareLaunch();
    entry = func::FuncOp::create(b, main.getLoc(), kEntry,
                                 b.getFunctionType({pointer}, {}));
    Block *block = entry.addEntryBlock();
    b.setInsertionPointToStart(block);
    makeStack();
    readBuffers(arguments);
    Block &body = main.getBody().front();
    block->getOperations().splice(block->end(), body.getOperations());
    giveResults(arguments, block->getTerminator());
    calls.lower(entry);
    SmallVector<tile::LaunchOp> launches;
    entry.walk([&](tile::LaunchOp launch) { launches.push_back(launch); });
    for (tile::LaunchOp launch : launches)
      if (failed(lowerLaunch(launch)))
        return failure();
    describe(arguments);
    main.erase();
    return success();
  }

private:
  /// The run-time passes contiguous buffers, and copies them.
  LogicalResult check() {
    auto isPlain = [](Type type) {
      auto memref = dyn_cast<MemRefType>(type);
      return memref && memref.getLayout().isIdentity();
    };
    for (Type type : llvm::concat<const Type>(main.getArgumentTypes(),
                                              main.getResultTypes()))
      if (!isPlain(type))
        return main.emitOpError("has an argument or result of type ")
               << type << ", but the run-time passes contiguous buffers";
    WalkResult result = main.walk([&](Operation *op) {
      auto copy = dyn_cast<memref::CopyOp>(op);
      if (isa<memref::AllocaOp>(op) ||
          (copy && !(isPlain(copy.getSource().getType()) &&
                     isPlain(copy.getTarget().getType())))) {
        op->emitOpError("is left in @main, where only launches and loops move "
                        "data; run tile-copies-to-kernels first");
        return WalkResult::interrupt();
      }
      return WalkResult::advance();
    });
    return failure(result.wasInterrupted());
  }

  void declareLaunch() {
    SmallVector<Type> types = {pointer, pointer, b.getI64Type(),
                               b.getI64Type()};
    func::FuncOp::create(b, main.getLoc(), kLaunch,
                         b.getFunctionType(types, {}))
        .setPrivate();
    main.walk([&](tile::LaunchOp launch) {
      events = std::max(events, eventsOf(launch));
    });
    if (events == 0)
      return;
    types.append({pointer, b.getI64Type()});
    func::FuncOp::create(b, main.getLoc(), kProgram,
                         b.getFunctionType(types, {}))
        .setPrivate();
  }

  /// Events of the program that is launched; 0 for a kernel.
  int64_t eventsOf(tile::LaunchOp launch) {
    auto callee = module.lookupSymbol<func::FuncOp>(launch.getKernelAttr());
    auto count =
        callee ? tile::decisions::kProgramEvents.get(callee) : IntegerAttr();
    return count ? count.getInt() : 0;
  }

  /// One area for all launches: a launch returns when its tasks are done.
  void makeStack() {
    int64_t words = 1, arguments = 1;
    main.walk([&](tile::LaunchOp launch) {
      words = std::max(words, descriptorWords(launch));
      arguments = std::max<int64_t>(arguments, launch->getNumOperands());
    });
    descriptors = allocate(words);
    argv = allocate(arguments + 1); // a program gets its counters, too
    if (events)
      counters = allocate(events * kCounterWords, /*alignment=*/64);
  }

  Value allocate(int64_t words, unsigned alignment = 16) {
    Value count =
        arith::ConstantOp::create(b, main.getLoc(), b.getI64IntegerAttr(words));
    return LLVM::AllocaOp::create(b, main.getLoc(), pointer, b.getI64Type(),
                                  count, alignment);
  }

  void readBuffers(HostArguments &arguments) {
    int64_t index = 0;
    for (BlockArgument input : arguments.inputs)
      readBuffer(input, index++);
    for (HostArguments::Output &output : arguments.outputs) {
      if (output.argument)
        readBuffer(output.argument, index);
      ++index;
    }
    for (auto *group : {&arguments.globals, &arguments.arena})
      for (BlockArgument argument : *group)
        readBuffer(argument, index++);
    for (auto [argument, number] : arguments.sizes) {
      RawMemory memory(b, main.getLoc(), converter);
      auto output = static_cast<int64_t>(arguments.inputs.size()) + number;
      Value words = memory.loadPointer(entry.getArgument(0), output);
      argument.replaceAllUsesWith(
          memory.makeStatic(cast<MemRefType>(argument.getType()),
                            memory.word(words, HostCalls::kSizes)));
    }
  }

  void readBuffer(BlockArgument argument, int64_t index) {
    Location loc = main.getLoc();
    RawMemory memory(b, loc, converter);
    Value raw = memory.loadPointer(entry.getArgument(0), index);
    auto type = cast<MemRefType>(argument.getType());
    argument.replaceAllUsesWith(type.hasStaticShape()
                                    ? memory.makeStatic(type, raw)
                                    : calls.readInput(b, loc, type, raw));
  }

  /// What @main returns is handed over.
  void giveResults(HostArguments &arguments, Operation *end) {
    Location loc = main.getLoc();
    b.setInsertionPoint(end);
    RawMemory memory(b, loc, converter);
    for (auto [number, output] : llvm::enumerate(arguments.outputs)) {
      if (output.argument)
        continue;
      auto index = static_cast<int64_t>(arguments.inputs.size() + number);
      Value words = memory.loadPointer(entry.getArgument(0), index);
      calls.giveResult(b, loc, end->getOperand(output.position), words);
    }
    end->setOperands({});
  }

  LogicalResult lowerLaunch(tile::LaunchOp launch) {
    Location loc = launch.getLoc();
    auto kernel = module.lookupSymbol<func::FuncOp>(launch.getKernelAttr());
    if (!kernel || !kernel->hasAttr(tile::decisions::kCode))
      return launch.emitOpError("names @")
             << launch.getKernelAttr().getLeafReference().getValue()
             << ", which convert-tile-kernel-to-func has not made a function";
    b.setInsertionPoint(launch);
    RawMemory memory(b, loc, converter);
    Value tasks = memory.constantI64(1);
    SmallVector<Value> grid;
    for (Value bound : launch.getGrid()) {
      grid.push_back(memory.toI64(bound));
      tasks = arith::MulIOp::create(b, loc, tasks, grid.back());
    }
    int64_t count = memory.writeArguments(launch.getKernelOperands(), grid,
                                          descriptors, argv);
    if (eventsOf(launch))
      memory.storeWord(counters, argv, count);
    call(launch, kernel, tasks);
    return success();
  }

  void call(tile::LaunchOp launch, func::FuncOp kernel, Value tasks) {
    Location loc = launch.getLoc();
    Value function = func::ConstantOp::create(b, loc, kernel.getFunctionType(),
                                              kernel.getSymName());
    Value address =
        UnrealizedConversionCastOp::create(b, loc, pointer, function)
            .getResult(0);
    Value scratch = arith::ConstantOp::create(
        b, loc, tile::decisions::kScratchBytes.get(kernel));
    if (auto units = tile::decisions::kProgramUnits.get(kernel)) {
      Value number = arith::ConstantOp::create(b, loc, units);
      Value count = arith::ConstantOp::create(
          b, loc, b.getI64IntegerAttr(eventsOf(launch)));
      func::CallOp::create(
          b, loc, kProgram, TypeRange(),
          ValueRange{address, argv, number, scratch, counters, count});
    } else {
      func::CallOp::create(b, loc, kLaunch, TypeRange(),
                           ValueRange{address, argv, tasks, scratch});
    }
    launch.erase();
  }

  /// What the manifest needs to know.
  void describe(const HostArguments &arguments) {
    auto names = [&](ArrayRef<BlockArgument> group, StringRef attribute) {
      return llvm::map_to_vector(group, [&](BlockArgument argument) {
        return main.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                 attribute);
      });
    };
    auto array = [&](ArrayRef<StringAttr> group) {
      SmallVector<Attribute> result;
      for (StringAttr name : group)
        result.push_back(name ? name : b.getStringAttr(""));
      return b.getArrayAttr(result);
    };
    SmallVector<StringAttr> outputs;
    for (const HostArguments::Output &output : arguments.outputs)
      outputs.push_back(output.name);
    entry->setAttr(tile::decisions::kInputs,
                   array(names(arguments.inputs, tile::decisions::kName)));
    entry->setAttr(tile::decisions::kOutputs, array(outputs));
    entry->setAttr(tile::decisions::kGlobals,
                   array(names(arguments.globals, tile::decisions::kGlobal)));
    SmallVector<int64_t> appends;
    for (const HostArguments::Output &output : arguments.outputs)
      if (output.argument)
        if (auto found = main.getArgAttrOfType<DenseI64ArrayAttr>(
                output.argument.getArgNumber(), tile::decisions::kAppends))
          llvm::append_range(appends, found.asArrayRef());
    if (!appends.empty())
      entry->setAttr(tile::decisions::kAppends,
                     b.getDenseI64ArrayAttr(appends));
    auto bytes = tile::decisions::kArenaBytes.get(module);
    entry->setAttr(tile::decisions::kArenaBytes,
                   bytes ? bytes : b.getI64IntegerAttr(0));
  }

  ModuleOp module;
  func::FuncOp main, entry;
  OpBuilder b;
  LLVMTypeConverter converter;
  HostCalls calls;
  Type pointer;
  Value descriptors, argv, counters;
  int64_t events = 0; // of the program with the most
};

struct ConvertTileLaunchToRuntime
    : public tilewright::impl::ConvertTileLaunchToRuntimeBase<
          ConvertTileLaunchToRuntime> {
  void runOnOperation() override {
    auto main = getOperation().lookupSymbol<func::FuncOp>("main");
    // A module of kernels alone is compiled too.
    if (main && failed(HostLowering(getOperation(), main).run()))
      signalPassFailure();
  }
};

} // namespace

//===- ConvertTileLaunchToRuntime.cpp - the host function as tw_main ------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToRuntime/RawMemory.h"

#include "mlir/IR/SymbolTable.h"

namespace tilewright {
#define GEN_PASS_DEF_CONVERTTILELAUNCHTORUNTIME
#include "lib/Conversion/TileToRuntime/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;

namespace {

constexpr StringLiteral kEntry = "tw_main", kLaunch = "twrt_launch";

/// Operands of a launch as kernel arguments: inputs, then outputs.
SmallVector<Value> getArguments(tile::LaunchOp launch) {
  SmallVector<Value> arguments(launch.getInputs());
  llvm::append_range(arguments, launch.getOutputs());
  return arguments;
}

/// Words of 8 bytes that the descriptors of a launch take.
int64_t descriptorWords(tile::LaunchOp launch) {
  int64_t words = static_cast<int64_t>(launch.getGrid().size());
  for (Value argument : getArguments(launch)) {
    auto type = dyn_cast<MemRefType>(argument.getType());
    words += type ? RawMemory::descriptorWords(type) : 1;
  }
  return words;
}

int64_t argumentWords(tile::LaunchOp launch) {
  return static_cast<int64_t>(getArguments(launch).size() +
                              launch.getGrid().size());
}

/// The order of raw pointers: inputs, outputs, weights, arena.
struct HostArguments {
  explicit HostArguments(func::FuncOp main) {
    for (BlockArgument argument : main.getArguments()) {
      unsigned index = argument.getArgNumber();
      if (main.getArgAttr(index, "tile.arena"))
        arena.push_back(argument);
      else if (main.getArgAttr(index, "tile.global"))
        globals.push_back(argument);
      else if (main.getArgAttr(index, "tile.result"))
        outputs.push_back(argument);
      else
        inputs.push_back(argument);
    }
  }
  SmallVector<BlockArgument> inputs, outputs, globals, arena;
};

/// Rewrites @main.
class HostLowering {
public:
  HostLowering(ModuleOp module, func::FuncOp main)
      : module(module), main(main), b(main), converter(main.getContext()) {}

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
  /// What is left in @main must be launches and their bookkeeping.
  LogicalResult check() {
    for (Type type : main.getArgumentTypes()) {
      auto memref = dyn_cast<MemRefType>(type);
      if (!memref || !memref.hasStaticShape() ||
          !memref.getLayout().isIdentity())
        return main.emitOpError("has an argument of type ")
               << type
               << ", but the run-time passes contiguous buffers of "
                  "static shape";
    }
    WalkResult result = main.walk([&](Operation *op) {
      if (!isa<memref::CopyOp, memref::AllocOp, memref::AllocaOp>(op))
        return WalkResult::advance();
      op->emitOpError("is left in @main, where only launches move data; run "
                      "tile-copies-to-kernels and tile-plan-arena first");
      return WalkResult::interrupt();
    });
    return failure(result.wasInterrupted());
  }

  void declareLaunch() {
    auto type = b.getFunctionType(
        {pointer, pointer, b.getI64Type(), b.getI64Type()}, {});
    auto function = func::FuncOp::create(b, main.getLoc(), kLaunch, type);
    function.setPrivate();
  }

  /// One area for all launches: a launch returns when its tasks are done.
  void makeStack() {
    int64_t words = 1, arguments = 1;
    main.walk([&](tile::LaunchOp launch) {
      words = std::max(words, descriptorWords(launch));
      arguments = std::max(arguments, argumentWords(launch));
    });
    descriptors = allocate(words);
    argv = allocate(arguments);
  }

  Value allocate(int64_t words) {
    Value count =
        arith::ConstantOp::create(b, main.getLoc(), b.getI64IntegerAttr(words));
    return LLVM::AllocaOp::create(b, main.getLoc(), pointer, b.getI64Type(),
                                  count, /*alignment=*/16);
  }

  void readBuffers(HostArguments &arguments) {
    RawMemory memory(b, main.getLoc(), converter);
    int64_t index = 0;
    for (auto *group : {&arguments.inputs, &arguments.outputs,
                        &arguments.globals, &arguments.arena})
      for (BlockArgument argument : *group) {
        Value raw = memory.loadPointer(entry.getArgument(0), index++);
        auto type = cast<MemRefType>(argument.getType());
        argument.replaceAllUsesWith(memory.makeStatic(type, raw));
      }
  }

  LogicalResult lowerLaunch(tile::LaunchOp launch) {
    Location loc = launch.getLoc();
    auto kernel = module.lookupSymbol<func::FuncOp>(launch.getKernelAttr());
    if (!kernel || !kernel->hasAttr("tile.kernel"))
      return launch.emitOpError("names @")
             << launch.getKernelAttr().getLeafReference().getValue()
             << ", which convert-tile-kernel-to-func has not made a function";
    b.setInsertionPoint(launch);
    RawMemory memory(b, loc, converter);
    int64_t word = 0, position = 0;
    auto next = [&](int64_t words) {
      Value slot = memory.word(descriptors, word);
      memory.storeWord(slot, argv, position++);
      word += words;
      return slot;
    };
    for (Value argument : getArguments(launch)) {
      if (auto type = dyn_cast<MemRefType>(argument.getType())) {
        memory.writeDescriptor(argument,
                               next(RawMemory::descriptorWords(type)));
        continue;
      }
      if (argument.getType().isIndex())
        argument = memory.toI64(argument);
      LLVM::StoreOp::create(b, loc, argument, next(1));
    }
    Value tasks = memory.constantI64(1);
    for (Value bound : launch.getGrid()) {
      Value number = memory.toI64(bound);
      LLVM::StoreOp::create(b, loc, number, next(1));
      tasks = arith::MulIOp::create(b, loc, tasks, number);
    }
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
        b, loc, kernel->getAttrOfType<IntegerAttr>("tile.scratch_bytes"));
    func::CallOp::create(b, loc, kLaunch, TypeRange(),
                         ValueRange{address, argv, tasks, scratch});
    launch.erase();
  }

  /// What the manifest needs to know.
  void describe(const HostArguments &arguments) {
    auto names = [&](ArrayRef<BlockArgument> group, StringRef attribute) {
      SmallVector<Attribute> result;
      for (BlockArgument argument : group) {
        auto name = main.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                      attribute);
        result.push_back(name ? name : b.getStringAttr(""));
      }
      return b.getArrayAttr(result);
    };
    entry->setAttr("tile.inputs", names(arguments.inputs, "tile.name"));
    entry->setAttr("tile.outputs", names(arguments.outputs, "tile.name"));
    entry->setAttr("tile.globals", names(arguments.globals, "tile.global"));
    auto bytes = module->getAttrOfType<IntegerAttr>("tile.arena_bytes");
    entry->setAttr("tile.arena_bytes", bytes ? bytes : b.getI64IntegerAttr(0));
  }

  ModuleOp module;
  func::FuncOp main, entry;
  OpBuilder b;
  LLVMTypeConverter converter;
  Type pointer;
  Value descriptors, argv;
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

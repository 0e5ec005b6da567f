//===- FormLoops.cpp - loops of launches as one kernel --------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDecisions.h"
#include "lib/Analysis/UsedValues.h"
#include "lib/Transforms/Programs/Passes.h"
#include "lib/Transforms/Programs/Stretch.h"

#include "mlir/IR/IRMapping.h"

namespace tilewright {
#define GEN_PASS_DEF_FORMLOOPS
#include "lib/Transforms/Programs/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;

namespace {

/// Threads of a block where a kernel does not say, and of one without tiles.
constexpr int64_t kUsual = 128;

/// Makes a kernel of a stretch of the host function, and launches it.
class StretchOutline {
public:
  StretchOutline(Stretch &stretch, SymbolTable &symbols)
      : stretch(stretch), symbols(symbols), loc(stretch.ops.front()->getLoc()),
        b(stretch.ops.front()->getContext()) {}

  LogicalResult run() {
    if (failed(stretch.findArguments()) || failed(findKernels()))
      return failure();
    makeKernel();
    for (Operation *op : stretch.ops)
      fill(op);
    tile::ReturnOp::create(b, loc);
    for (tile::LaunchOp launch : launchesIn(kernel))
      launch.setKernel(called.lookup(launch.getKernel()).getSymName());
    launchKernel();
    return leave();
  }

private:
  static SmallVector<tile::LaunchOp> launchesIn(Operation *op) {
    SmallVector<tile::LaunchOp> found;
    op->walk([&](tile::LaunchOp launch) { found.push_back(launch); });
    return found;
  }

  tile::KernelOp lookUp(StringRef name) {
    return symbols.lookup<tile::KernelOp>(name);
  }

  static int64_t threadsOf(tile::KernelOp kernel) {
    if (auto threads = tile::decisions::kThreads.get(kernel))
      return threads.getInt();
    auto warps = tile::decisions::kWarps.get(kernel);
    return warps ? 32 * warps.getInt() : kUsual;
  }

  /// The kernels become others, for the blocks of this one.
  LogicalResult findKernels() {
    SmallVector<StringRef> names;
    for (Operation *op : stretch.ops)
      for (tile::LaunchOp launch : launchesIn(op)) {
        tile::KernelOp found = lookUp(launch.getKernel());
        if (!found || found.getCluster() ||
            found->hasAttr(tile::decisions::kRounded))
          return launch.emitOpError(
              "with `tile.blocks`, or in a loop or branch with it, is of a "
              "program or of a kernel with clusters; blocks that share its "
              "tasks are none");
        threads = std::max(threads, threadsOf(found));
        if (!llvm::is_contained(names, found.getSymName()))
          names.push_back(found.getSymName());
      }
    if (names.empty())
      return stretch.ops.front()->emitOpError(
          "has `tile.blocks`, and launches nothing");
    for (StringRef name : names) {
      tile::KernelOp copy = lookUp(name).clone();
      copy->setAttr(tile::decisions::kThreads, b.getI64IntegerAttr(threads));
      copy->removeAttr(tile::decisions::kPersistent);
      copy->removeAttr(
          tile::decisions::kStaged); // no TMA: who calls has no maps
      symbols.insert(copy, Block::iterator(lookUp(name)));
      called.try_emplace(name, copy);
    }
    first = nameOf();
    return success();
  }

  /// The name of what the first loop or branch launches first.
  std::string nameOf() {
    auto *found = llvm::find_if(stretch.ops, [](Operation *op) {
      return op->getNumRegions() > 0 && !launchesIn(op).empty();
    });
    if (found == stretch.ops.end())
      found = llvm::find_if(
          stretch.ops, [](Operation *op) { return !launchesIn(op).empty(); });
    return launchesIn(*found).front().getKernel().str();
  }

  void makeKernel() {
    SmallVector<Type> inputs(
        ValueRange(stretch.arguments.getArrayRef()).getTypes());
    b.setInsertionPoint(stretch.ops.front()->getParentOfType<func::FuncOp>());
    kernel = tile::KernelOp::create(b, loc, "loop_" + first,
                                    b.getFunctionType(inputs, {}),
                                    /*gridRank=*/0);
    kernel->setAttr(tile::decisions::kBlocks,
                    b.getI64IntegerAttr(stretch.blocks));
    kernel->setAttr(tile::decisions::kThreads, b.getI64IntegerAttr(threads));
    Block::iterator place = std::next(Block::iterator(kernel));
    kernel->remove();
    symbols.insert(kernel, place);
    Block &body = kernel.getEntryBlock();
    mapping.map(stretch.arguments.getArrayRef(), body.getArguments());
    b.setInsertionPointToStart(&body);
  }

  /// Copies a marked operation, and before it what it needs.
  void fill(Operation *op) {
    for (Value value : getUsedValues(op))
      make(value);
    b.clone(*op, mapping)->removeAttr(tile::decisions::kBlocks);
  }

  void make(Value value) {
    if (mapping.contains(value))
      return;
    Operation *op = value.getDefiningOp();
    for (Value operand : op->getOperands())
      make(operand);
    b.clone(*op, mapping);
  }

  void launchKernel() {
    SmallVector<Value> inputs, outputs;
    for (auto [value, argument] : llvm::zip_equal(
             stretch.arguments, kernel.getEntryBlock().getArguments()))
      (isOnlyRead(argument) ? inputs : outputs).push_back(value);
    reorder(inputs, outputs);
    b.setInsertionPointAfter(stretch.ops.back());
    tile::LaunchOp::create(b, loc, kernel.getSymName(), ValueRange(), inputs,
                           outputs);
  }

  /// Arguments in the order of the launch: what is read alone comes first.
  void reorder(ArrayRef<Value> inputs, ArrayRef<Value> outputs) {
    Block &body = kernel.getEntryBlock();
    SmallVector<Type> types;
    unsigned count = body.getNumArguments();
    for (Value value : llvm::concat<const Value>(inputs, outputs)) {
      auto old = cast<BlockArgument>(mapping.lookup(value));
      types.push_back(old.getType());
      old.replaceAllUsesWith(body.addArgument(old.getType(), loc));
    }
    body.eraseArguments(0, count);
    kernel.setFunctionType(b.getFunctionType(types, {}));
  }

  static bool isOnlyRead(Value value) {
    if (!isa<MemRefType>(value.getType()))
      return true;
    return llvm::all_of(value.getUses(), [](OpOperand &use) {
      Operation *user = use.getOwner();
      if (auto launch = dyn_cast<tile::LaunchOp>(user))
        return !llvm::is_contained(launch.getOutputs(), use.get());
      if (auto copy = dyn_cast<memref::CopyOp>(user))
        return copy.getTarget() != use.get();
      if (isa<memref::LoadOp, memref::DimOp>(user))
        return true;
      return Stretch::isView(user) && isOnlyRead(user->getResult(0));
    });
  }

  /// What the kernel does leaves the host function; of a loop whose buffers are
  /// used behind it, what tells which they are stays.
  LogicalResult leave() {
    for (Operation *op : llvm::reverse(stretch.ops)) {
      stretch.eraseUnused();
      if (!op->use_empty()) {
        for (tile::LaunchOp launch : launchesIn(op))
          launch.erase();
        op->removeAttr(tile::decisions::kBlocks);
        if (!isMemoryEffectFree(op))
          return op->emitOpError(
              "runs on the device (`tile.blocks`), where it reads what tells "
              "which buffers or numbers it gives; but the host uses these");
        continue;
      }
      op->erase();
    }
    return success();
  }

  Stretch &stretch;
  SymbolTable &symbols;
  Location loc;
  OpBuilder b;
  IRMapping mapping;
  tile::KernelOp kernel;
  std::string first;
  llvm::StringMap<tile::KernelOp> called;
  int64_t threads = 32;
};

struct FormLoops : public tilewright::impl::FormLoopsBase<FormLoops> {
  void runOnOperation() override {
    auto main = getOperation().lookupSymbol<func::FuncOp>("main");
    if (!main)
      return; // kernels alone
    SmallVector<Stretch, 1> stretches;
    for (Block &block : main.getBody())
      Stretch::findAll(block, stretches);
    if (stretches.empty())
      return;
    SymbolTable symbols(getOperation());
    for (Stretch &stretch : stretches)
      if (failed(StretchOutline(stretch, symbols).run()))
        return signalPassFailure();
    eraseUnused(symbols);
  }

private:
  /// Kernels that only their copies are launched of.
  void eraseUnused(SymbolTable &symbols) {
    for (auto kernel :
         llvm::make_early_inc_range(getOperation().getOps<tile::KernelOp>()))
      if (SymbolTable::symbolKnownUseEmpty(kernel, getOperation()))
        symbols.erase(kernel);
  }
};

} // namespace

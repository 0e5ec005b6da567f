//===- StretchOutline.cpp - a kernel of a stretch -------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Programs/StretchOutline.h"
#include "dialects/Tile/TileDecisions.h"
#include "lib/Analysis/UsedValues.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace tilewright;

SmallVector<tile::LaunchOp> StretchOutline::launchesIn(Operation *op) {
  SmallVector<tile::LaunchOp> found;
  op->walk([&](tile::LaunchOp launch) { found.push_back(launch); });
  return found;
}

void StretchOutline::makeKernel(StringRef name, int64_t gridRank) {
  SmallVector<Type> inputs(
      ValueRange(stretch.arguments.getArrayRef()).getTypes());
  b.setInsertionPoint(stretch.ops.front()->getParentOfType<func::FuncOp>());
  kernel = tile::KernelOp::create(b, loc, name, b.getFunctionType(inputs, {}),
                                  gridRank);
  Block::iterator place = std::next(Block::iterator(kernel));
  kernel->remove();
  symbols.insert(kernel, place);
  mapping.map(stretch.arguments.getArrayRef(), kernel.getInputs());
  b.setInsertionPointToStart(&kernel.getEntryBlock());
}

void StretchOutline::fill() {
  for (Operation *op : stretch.ops) {
    for (Value value : getUsedValues(op))
      make(value);
    Operation *copy = b.clone(*op, mapping);
    for (StringRef decided : {StringRef(tile::decisions::kBlocks),
                              StringRef(tile::decisions::kLevel),
                              StringRef(tile::decisions::kIndependent)})
      copy->removeAttr(decided);
  }
  tile::ReturnOp::create(b, loc);
}

void StretchOutline::make(Value value) {
  if (mapping.contains(value))
    return;
  Operation *op = value.getDefiningOp();
  for (Value operand : op->getOperands())
    make(operand);
  b.clone(*op, mapping);
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
    if (isa<memref::LoadOp, memref::DimOp, tile::LoadOp>(user))
      return true;
    return Stretch::isView(user) && isOnlyRead(user->getResult(0));
  });
}

tile::LaunchOp StretchOutline::launchKernel(ValueRange grid) {
  SmallVector<Value> inputs, outputs;
  for (auto [value, argument] :
       llvm::zip_equal(stretch.arguments, kernel.getInputs()))
    (isOnlyRead(argument) ? inputs : outputs).push_back(value);
  reorder(inputs, outputs);
  b.setInsertionPointAfter(stretch.ops.back());
  return tile::LaunchOp::create(b, loc, kernel.getSymName(), grid, inputs,
                                outputs);
}

/// Arguments in the order of the launch: what is read alone comes first.
void StretchOutline::reorder(ArrayRef<Value> inputs, ArrayRef<Value> outputs) {
  Block &body = kernel.getEntryBlock();
  SmallVector<Type> types;
  unsigned count = kernel.getInputs().size();
  for (Value value : llvm::concat<const Value>(inputs, outputs)) {
    auto old = cast<BlockArgument>(mapping.lookup(value));
    unsigned place = count + types.size();
    types.push_back(old.getType());
    old.replaceAllUsesWith(body.insertArgument(place, old.getType(), loc));
  }
  body.eraseArguments(0, count);
  kernel.setFunctionType(b.getFunctionType(types, {}));
}

LogicalResult StretchOutline::leave() {
  for (Operation *op : llvm::reverse(stretch.ops)) {
    stretch.eraseUnused();
    if (!op->use_empty()) {
      for (tile::LaunchOp launch : launchesIn(op))
        launch.erase();
      op->removeAttr(tile::decisions::kBlocks);
      op->removeAttr(tile::decisions::kLevel);
      if (!isMemoryEffectFree(op))
        return op->emitOpError(
            "becomes a kernel (`tile.blocks`, `tile.level`), where it reads "
            "what tells which buffers or numbers it gives; but the host uses "
            "these");
      continue;
    }
    op->erase();
  }
  return success();
}

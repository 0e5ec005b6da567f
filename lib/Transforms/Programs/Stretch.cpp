//===- Stretch.cpp - what of the host function becomes a kernel -----------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Programs/Stretch.h"
#include "dialects/Tile/TileDecisions.h"
#include "lib/Analysis/UsedValues.h"
#include "lib/Transforms/Programs/Passes.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace tilewright;

/// Whether it may stand beside a kernel of what is around it.
static bool isHarmless(Operation &op) {
  return isa<memref::AllocOp>(op) ||
         (isMemoryEffectFree(&op) && op.getNumRegions() == 0 &&
          !op.hasTrait<OpTrait::IsTerminator>());
}

void Stretch::findAll(Block &block, SmallVectorImpl<Stretch> &found) {
  Stretch current;
  SmallVector<Operation *> pending;
  auto close = [&] {
    if (!current.ops.empty())
      found.push_back(std::move(current));
    current = Stretch();
    pending.clear();
  };
  for (Operation &op : block) {
    if (auto blocks = tile::decisions::kBlocks.get(&op)) {
      current.ops.push_back(&op);
      current.blocks = std::max(current.blocks, blocks.getInt());
      llvm::append_range(current.between, pending);
      pending.clear();
    } else if (!current.ops.empty() && isHarmless(op)) {
      pending.push_back(&op);
    } else {
      close();
      for (Region &region : op.getRegions())
        for (Block &inner : region)
          findAll(inner, found);
    }
  }
  close();
}

void Stretch::eraseUnused() {
  for (Operation *&op : llvm::reverse(between))
    if (op && isOpTriviallyDead(op)) {
      op->erase();
      op = nullptr;
    }
}

bool Stretch::isView(Operation *op) {
  return isa<memref::ViewOp, memref::SubViewOp, memref::CastOp,
             memref::ReinterpretCastOp, memref::ExpandShapeOp,
             memref::CollapseShapeOp>(op);
}

bool Stretch::isCopied(Operation *op) const {
  if (isa<memref::AllocOp, memref::GetGlobalOp>(op))
    return false;
  return op->hasTrait<OpTrait::ConstantLike>() || isView(op) ||
         llvm::is_contained(between, op);
}

LogicalResult Stretch::need(Value value) {
  if (!seen.insert(value).second)
    return success();
  Operation *op = value.getDefiningOp();
  if (op && llvm::is_contained(ops, op))
    return success();
  if (op && isCopied(op)) {
    for (Value operand : op->getOperands())
      if (failed(need(operand)))
        return failure();
    return success();
  }
  bool isBuffer = op ? isa<memref::AllocOp, memref::GetGlobalOp>(op)
                     : isa<func::FuncOp>(value.getParentBlock()->getParentOp());
  if (isa<MemRefType>(value.getType()) && !isBuffer)
    return ops.front()->emitOpError(
        "becomes a kernel (`tile.blocks`, `tile.level`) of a buffer that is "
        "one of several, by what the host decides");
  arguments.insert(value);
  return success();
}

/// One buffer serves all iterations: it is made before the kernel.
static void hoistBuffers(Operation *op) {
  SmallVector<memref::AllocOp> buffers;
  op->walk([&](memref::AllocOp buffer) { buffers.push_back(buffer); });
  for (memref::AllocOp buffer : buffers)
    if (areValuesDefinedAbove(buffer->getOperands(), op->getRegion(0)))
      buffer->moveBefore(op);
}

LogicalResult Stretch::findArguments() {
  llvm::for_each(ops, hoistBuffers);
  for (Operation *op : ops)
    for (Value value : getUsedValues(op))
      if (failed(need(value)))
        return failure();
  return success();
}

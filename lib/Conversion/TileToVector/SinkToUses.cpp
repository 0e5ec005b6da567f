//===- SinkToUses.cpp - epilogues vector by vector ------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/Tile.h"
#include "lib/Conversion/TileToVector/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMTypes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

namespace tilewright {
#define GEN_PASS_DEF_SINKTOUSES
#include "lib/Conversion/TileToVector/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;

namespace {

/// The buffer of the task that an access reads or writes; none for others.
Value taskBuffer(Value memref) {
  while (auto view = memref.getDefiningOp<ViewLikeOpInterface>())
    memref = view.getViewSource();
  return memref.getDefiningOp<tile::AllocOp>() ? memref : Value();
}

Value loadedFrom(Operation *op) {
  if (auto load = dyn_cast<vector::LoadOp>(op))
    return load.getBase();
  if (auto load = dyn_cast<vector::MaskedLoadOp>(op))
    return load.getBase();
  return {};
}

Value storedTo(Operation *op) {
  if (auto store = dyn_cast<vector::StoreOp>(op))
    return store.getBase();
  if (auto store = dyn_cast<vector::MaskedStoreOp>(op))
    return store.getBase();
  return {};
}

/// The first operation of the block that uses a result, or holds what does.
Operation *firstUser(Operation *op) {
  Operation *first = nullptr;
  for (Operation *user : op->getUsers()) {
    Operation *here = op->getBlock()->findAncestorOpInBlock(*user);
    if (here && (!first || here->isBeforeInBlock(first)))
      first = here;
  }
  return first;
}

/// Whether nothing between a load and an operation behind it writes what it
/// reads.
bool staysSame(Operation *load, Operation *behind) {
  Value buffer = taskBuffer(loadedFrom(load));
  if (!buffer)
    return false;
  for (Operation *op = load->getNextNode(); op != behind;
       op = op->getNextNode()) {
    if (isMemoryEffectFree(op) || loadedFrom(op))
      continue;
    Value target = storedTo(op);
    if (!target || taskBuffer(target) == buffer)
      return false;
  }
  return true;
}

void sink(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block))) {
    bool pure = op.getNumRegions() == 0 && isPure(&op) &&
                !op.hasTrait<OpTrait::ConstantLike>();
    if (op.getNumResults() == 0 || !(pure || loadedFrom(&op)))
      continue;
    Operation *user = firstUser(&op);
    if (!user || user == op.getNextNode())
      continue;
    if (pure || staysSame(&op, user))
      op.moveBefore(user);
  }
}

/// Zeros that sums begin with stand where those begin. They come from constants
/// outside of all loops, and would hold registers of the unit through these;
/// LLVM then fails for want of registers, it does not spill them.
void sinkZeros(tile::KernelOp kernel) {
  SmallVector<LLVM::CallIntrinsicOp> zeros;
  kernel.walk([&](LLVM::CallIntrinsicOp call) {
    if (call.getIntrin() == "llvm.x86.tilezero.internal" && !call->use_empty())
      zeros.push_back(call);
  });
  for (LLVM::CallIntrinsicOp zero : zeros) {
    for (OpOperand &use : llvm::make_early_inc_range(zero->getUses())) {
      Operation *user = use.getOwner();
      if (user->getBlock() == zero->getBlock())
        continue;
      OpBuilder b(user);
      use.set(b.clone(*zero.getOperation())->getResult(0));
    }
    if (zero->use_empty())
      zero.erase();
  }
}

bool usesMatrixUnit(tile::KernelOp kernel) {
  return kernel
      .walk([](Operation *op) {
        return llvm::any_of(op->getResultTypes(),
                            llvm::IsaPred<LLVM::LLVMX86AMXType>)
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

struct SinkToUses : public tilewright::impl::SinkToUsesBase<SinkToUses> {
  void runOnOperation() override {
    if (!usesMatrixUnit(getOperation()))
      return markAllAnalysesPreserved();
    sinkZeros(getOperation());
    getOperation()->walk([](Block *block) { sink(*block); });
  }
};

} // namespace

//===- OnceCopies.cpp - copies that are started once ----------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/AsyncToGPU/WarpRoles.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;

namespace tilewright {

int64_t bytesOf(ArrayRef<TensorCopy> copies) {
  int64_t bytes = 0;
  for (const TensorCopy &copy : copies)
    bytes += copy.getBytes();
  return bytes;
}

int64_t RoleRing::getBytes() const { return bytesOf(copies); }

int64_t RoleLoad::getBytes() const { return bytesOf(copies); }

std::optional<std::vector<TensorCopy>> findTensorCopies(tile::AsyncOp async,
                                                        std::string &reason) {
  std::vector<TensorCopy> copies;
  for (auto copy : async.getBody().getOps<tile::CopyOp>()) {
    OpBuilder before(copy);
    auto found = analyzeTensorCopy(before, copy, reason);
    if (!found) {
      reason = "has a copy that " + reason;
      return std::nullopt;
    }
    copies.push_back(*found);
  }
  return copies;
}

Value RoleLoad::emptyBarrier(OpBuilder &b, Location loc) const {
  return offsetPointer(b, loc, barrier, 8);
}

bool anyRepeats(ArrayRef<RoleLoad> loads) {
  return llvm::any_of(loads,
                      [](const RoleLoad &load) { return load.repeats(); });
}

namespace {

/// The last load of a task that reads what comes in each task; null, with the
/// reason, where something else does, or not in each task.
tile::LoadOp lastRead(const RoleLoad &load, Operation *task,
                      std::string &reason) {
  llvm::SmallDenseSet<Value> bases;
  for (const TensorCopy &copy : load.copies)
    bases.insert(copy.target.base);
  tile::LoadOp last;
  task->walk([&](tile::LoadOp read) {
    OpBuilder b(read);
    std::optional<SharedPlace> place = findSharedPlace(b, read.getMemref());
    if (!place || !bases.contains(place->base))
      return;
    if (read->getParentOp() != task || read.getType().isInShared())
      reason = "starts copies in each task that a part of it, or a matrix "
               "unit, reads";
    last = read;
  });
  if (!last)
    reason = "starts copies in each task that nothing reads";
  return reason.empty() ? last : tile::LoadOp();
}

} // namespace

std::optional<RoleLoad> matchLoad(tile::AsyncOp async, std::string &reason) {
  RoleLoad load{async, {}, {}, {}, {}};
  for (Operation *user : async->getUsers()) {
    auto await = dyn_cast<tile::AwaitOp>(user);
    if (!await || await.getTokens().size() != 1) {
      reason = "starts copies outside of loops that it waits for together with "
               "others";
      return std::nullopt;
    }
    load.awaits.push_back(await);
  }
  // What is done again: a block's next task, or another launch.
  Operation *task = tasksAround(async);
  if (!task && isLaunched(async))
    task = async->getParentOfType<gpu::GPUFuncOp>();
  Operation *parent = async->getParentOp();
  while (isa<scf::IfOp>(parent))
    parent = parent->getParentOp();
  if (task ? async->getParentOp() != task : !isa<FunctionOpInterface>(parent)) {
    reason = "starts copies again and again that go through no ring";
    return std::nullopt;
  }
  auto copies = findTensorCopies(async, reason);
  if (!copies)
    return std::nullopt;
  load.copies = *copies;
  if (task && !(load.last = lastRead(load, task, reason)))
    return std::nullopt;
  return load;
}

void rewriteLoad(const RoleLoad &load, Value parity, Value thread) {
  for (tile::AwaitOp await : load.awaits) {
    OpBuilder b(await);
    Location loc = await.getLoc();
    waitBarrier(b, loc, load.barrier,
                load.repeats() ? parity : makeI32(b, loc, 0));
    await->erase();
  }
  tile::AsyncOp(load.async)->erase();
  if (!load.repeats())
    return;
  // One thread of each warp tells that all of it have read.
  tile::LoadOp last = load.last;
  OpBuilder b(last->getContext());
  b.setInsertionPointAfter(last);
  Location loc = last.getLoc();
  NVVM::SyncWarpOp::create(b, loc, makeI32(b, loc, -1));
  Value lane = arith::AndIOp::create(b, loc, thread, makeI32(b, loc, 31));
  Value speaks = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, lane,
                                       makeI32(b, loc, 0));
  auto branch = scf::IfOp::create(b, loc, speaks, /*withElseRegion=*/false);
  b.setInsertionPointToStart(branch.thenBlock());
  NVVM::MBarrierArriveOp::create(b, loc, Type(), load.emptyBarrier(b, loc),
                                 Value(), NVVM::MemScopeKind::CTA);
}

} // namespace tilewright

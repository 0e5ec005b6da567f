//===- LaunchMeetings.cpp - behind which launches blocks meet -------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToGPU/LaunchMeetings.h"
#include "dialects/Tile/TileDecisions.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace tilewright;

LaunchMeetings::LaunchMeetings(gpu::GPUFuncOp function) : shared(function) {
  visit(function.getBody().front());
}

/// What is in a region, and what reads numbers, finds all launches done.
void LaunchMeetings::visit(Block &block) {
  SmallVector<Operation *> pending;
  auto meet = [&] {
    if (!pending.empty())
      last.insert(pending.back());
    pending.clear();
  };
  for (Operation &op : block) {
    if (isa<tile::LaunchOp, memref::CopyOp>(op)) {
      if (llvm::any_of(pending, [&](Operation *o) { return needs(&op, o); }))
        meet();
      beside[&op] = pending;
      pending.push_back(&op);
      continue;
    }
    bool isEnd = op.hasTrait<OpTrait::IsTerminator>() &&
                 !isa<gpu::ReturnOp>(op) &&
                 !op.getParentOp()->hasAttr(tile::decisions::kRoles);
    if (isEnd || op.getNumRegions() > 0 ||
        (!isa<gpu::ReturnOp>(op) && !isMemoryEffectFree(&op)))
      meet();
    for (Region &region : op.getRegions())
      for (Block &inner : region)
        visit(inner);
  }
}

static bool isNumber(Value value) {
  return value.getType().isIntOrIndexOrFloat();
}

/// What an operation writes, and all that it touches. Through a pointer, a
/// launch may write what it is given to read.
static std::pair<SmallVector<Value>, SmallVector<Value>>
accessesOf(Operation *op) {
  if (auto launch = dyn_cast<tile::LaunchOp>(op)) {
    SmallVector<Value> wrote = llvm::to_vector(launch.getOutputs());
    for (Value input : launch.getInputs())
      if (!isNumber(input) && !isa<BaseMemRefType>(input.getType()))
        wrote.push_back(input);
    return {wrote, llvm::to_vector(llvm::make_filter_range(
                       launch.getKernelOperands(),
                       [](Value value) { return !isNumber(value); }))};
  }
  auto copy = cast<memref::CopyOp>(op);
  return {{copy.getTarget()}, {copy.getSource(), copy.getTarget()}};
}

bool LaunchMeetings::needs(Operation *op, Operation *before) const {
  auto meetAny = [&](ArrayRef<Value> some, ArrayRef<Value> others) {
    return llvm::any_of(some, [&](Value one) {
      return llvm::any_of(others,
                          [&](Value other) { return mayMeet(one, other); });
    });
  };
  auto [wrote, touched] = accessesOf(before);
  auto [writes, touches] = accessesOf(op);
  return meetAny(wrote, touches) || meetAny(touched, writes);
}

bool LaunchMeetings::mayMeet(Value one, Value other) const {
  one = getRoot(one);
  other = getRoot(other);
  auto argument = dyn_cast<BlockArgument>(one),
       second = dyn_cast<BlockArgument>(other);
  if (argument && second && argument != second &&
      argument.getOwner() == second.getOwner())
    if (auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp()))
      if (areApart(loop))
        return false;
  return mayMeet(bytesOf(one), bytesOf(other));
}

bool LaunchMeetings::mayMeet(ArrayRef<BufferBytes> some,
                             ArrayRef<BufferBytes> others) const {
  return llvm::any_of(some, [&](const BufferBytes &one) {
    return llvm::any_of(others, [&](const BufferBytes &other) {
      if (one.buffer == other.buffer)
        return one.overlaps(other);
      // Of what is no argument of the kernel nothing is known.
      return !isParameter(one.buffer) || !isParameter(other.buffer) ||
             shared.mayMeet(one.buffer, other.buffer);
    });
  });
}

/// Whether buffers that a loop hands round differ at any time: they do at
/// first, and the next iteration has the same ones, in any order.
bool LaunchMeetings::areApart(scf::ForOp loop) const {
  llvm::SmallPtrSet<Value, 8> yielded;
  for (Value value : loop.getYieldedValues())
    if (!isNumber(value) &&
        (!llvm::is_contained(loop.getRegionIterArgs(), value) ||
         !yielded.insert(value).second))
      return false;
  SmallVector<Value> inits = llvm::to_vector(llvm::make_filter_range(
      loop.getInitArgs(), [](Value value) { return !isNumber(value); }));
  for (size_t first : llvm::seq(inits.size()))
    for (Value second : ArrayRef(inits).drop_front(first + 1))
      if (mayMeet(inits[first], second))
        return false;
  return true;
}

SmallVector<BufferBytes> LaunchMeetings::bytesOf(Value memref) const {
  llvm::SmallPtrSet<Value, 8> seen;
  SmallVector<BufferBytes> found;
  addBytes(memref, seen, found);
  return found;
}

void LaunchMeetings::addBytes(Value memref, llvm::SmallPtrSetImpl<Value> &seen,
                              SmallVectorImpl<BufferBytes> &found) const {
  Value root = getRoot(memref);
  if (!seen.insert(root).second)
    return;
  // A buffer that a loop hands on: as it came, or as an iteration leaves it.
  if (auto handed = getHandedOn(root)) {
    addBytes(handed->first, seen, found);
    addBytes(handed->second, seen, found);
    return;
  }
  auto view = root.getDefiningOp<memref::ViewOp>();
  if (!view) {
    found.push_back({root});
    return;
  }
  BufferBytes bytes = getBytes(view);
  if (!isParameter(bytes.buffer))
    bytes = {bytes.buffer};
  found.push_back(bytes);
}

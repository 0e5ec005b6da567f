//===- LaunchAliasing.cpp - which kernel arguments may overlap ------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToRuntime/LaunchAliasing.h"

#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;
using namespace tilewright;

LaunchAliasing::LaunchAliasing(ModuleOp module) {
  module.walk([&](Operation *op) {
    if (auto launch = dyn_cast<tile::LaunchOp>(op)) {
      launches[launch.getKernelAttr().getLeafReference()].push_back(
          SmallVector<Value>(launch.getKernelOperands()));
    } else if (auto place = dyn_cast<tile::PlaceOp>(op)) {
      launches[place.getKernelAttr().getAttr()].push_back(
          SmallVector<Value>(place.getOperands()));
    }
  });
  for (auto program : module.getOps<tile::ProgramOp>())
    if (auto found = launches.find(program.getSymNameAttr());
        found != launches.end() && found->second.size() == 1)
      programs[program.getSymNameAttr()] = found->second.front();
}

using ProgramOperands = LaunchAliasing::ProgramOperands;

/// What a value is a view of, at the start of its chain of views. A place in
/// the arena is an own buffer: places of buffers that one launch uses do not
/// overlap.
static Value getBase(Value value, const ProgramOperands &programs) {
  while (auto view = value.getDefiningOp<ViewLikeOpInterface>()) {
    if (isa<memref::ViewOp>(view))
      return value;
    value = view.getViewSource();
  }
  auto argument = dyn_cast<BlockArgument>(value);
  auto program =
      argument ? dyn_cast<tile::ProgramOp>(argument.getOwner()->getParentOp())
               : tile::ProgramOp();
  auto found =
      program ? programs.find(program.getSymNameAttr()) : programs.end();
  return found == programs.end()
             ? value
             : getBase(found->second[argument.getArgNumber()], programs);
}

/// Numbers of the buffers that a loop hands round among themselves, `number`
/// included: each iteration yields a permutation of them. Empty if it does not.
static SmallVector<unsigned> getCycle(scf::ForOp loop, unsigned number) {
  SmallVector<unsigned> cycle;
  unsigned at = number;
  do {
    cycle.push_back(at);
    auto next = dyn_cast<BlockArgument>(loop.getYieldedValues()[at]);
    if (!next || next.getOwner() != loop.getBody() ||
        next == loop.getInductionVar() ||
        cycle.size() > loop.getNumRegionIterArgs())
      return {};
    at = next.getArgNumber() - 1;
  } while (at != number);
  return cycle;
}

/// The buffers that a base may be; none where that is not known.
static SmallVector<Value> getBuffers(Value base,
                                     const ProgramOperands &programs) {
  auto argument = dyn_cast<BlockArgument>(base);
  if (!argument)
    return base.getDefiningOp<memref::AllocOp>() ||
                   base.getDefiningOp<memref::ViewOp>()
               ? SmallVector<Value>{base}
               : SmallVector<Value>{};
  Operation *parent = argument.getOwner()->getParentOp();
  if (isa<func::FuncOp>(parent))
    return {base};
  auto loop = dyn_cast<scf::ForOp>(parent);
  if (!loop)
    return {};
  SmallVector<Value> buffers;
  for (unsigned number : getCycle(loop, argument.getArgNumber() - 1)) {
    SmallVector<Value> init =
        getBuffers(getBase(loop.getInitArgs()[number], programs), programs);
    if (init.size() != 1 || llvm::is_contained(buffers, init[0]))
      return {};
    buffers.push_back(init[0]);
  }
  return buffers;
}

/// Whether two operands of a launch may overlap.
static bool mayOverlap(Value left, Value right,
                       const ProgramOperands &programs) {
  left = getBase(left, programs);
  right = getBase(right, programs);
  SmallVector<Value> first = getBuffers(left, programs),
                     second = getBuffers(right, programs);
  if (left == right || first.empty() || second.empty())
    return true;
  // At any time, the arguments of one cycle are different buffers.
  bool sameCycle = isa<BlockArgument>(left) && isa<BlockArgument>(right) &&
                   left.getParentBlock() == right.getParentBlock() &&
                   llvm::all_of(first, [&](Value buffer) {
                     return llvm::is_contained(second, buffer);
                   });
  return !sameCycle && llvm::any_of(first, [&](Value buffer) {
    return llvm::is_contained(second, buffer);
  });
}

/// Clears the flag of each operand that may overlap another one.
static void findOverlaps(ArrayRef<Value> operands,
                         const ProgramOperands &programs,
                         SmallVectorImpl<bool> &free) {
  for (size_t i = 0; i < operands.size(); ++i)
    for (size_t j = 0; j < operands.size(); ++j)
      if (i != j && isa<MemRefType>(operands[i].getType()) &&
          isa<MemRefType>(operands[j].getType()) &&
          mayOverlap(operands[i], operands[j], programs))
        free[i] = false;
}

SmallVector<int64_t>
LaunchAliasing::getDistinctArguments(tile::KernelOp kernel) const {
  auto found = launches.find(kernel.getSymNameAttr());
  if (found == launches.end())
    return {};
  ArrayRef<Type> types = kernel.getFunctionType().getInputs();
  SmallVector<bool> free = llvm::map_to_vector(
      types, [](Type type) { return isa<MemRefType>(type); });
  for (ArrayRef<Value> operands : found->second)
    findOverlaps(operands, programs, free);
  SmallVector<int64_t> result;
  for (auto [index, isFree] : llvm::enumerate(free))
    if (isFree)
      result.push_back(static_cast<int64_t>(index));
  return result;
}

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
  module.walk([&](tile::LaunchOp launch) {
    launches[launch.getKernelAttr().getLeafReference()].push_back(launch);
  });
}

/// The buffer that a value is a view of; null where that is not known (a loop's
/// argument may be any buffer). A place in the arena is an own buffer: places
/// of buffers that one launch uses do not overlap.
static Value getRoot(Value value) {
  while (auto view = value.getDefiningOp<ViewLikeOpInterface>()) {
    if (isa<memref::ViewOp>(view))
      return value;
    value = view.getViewSource();
  }
  if (auto argument = dyn_cast<BlockArgument>(value))
    return isa<func::FuncOp>(argument.getOwner()->getParentOp()) ? value
                                                                 : Value();
  return value.getDefiningOp<memref::AllocOp>() ? value : Value();
}

/// Clears the flag of each operand that may overlap another one.
static void findOverlaps(tile::LaunchOp launch, SmallVectorImpl<bool> &free) {
  SmallVector<Value> operands(launch.getInputs());
  llvm::append_range(operands, launch.getOutputs());
  for (size_t i = 0; i < operands.size(); ++i) {
    Value root = getRoot(operands[i]);
    for (size_t j = 0; j < operands.size(); ++j) {
      if (i == j || !isa<MemRefType>(operands[j].getType()))
        continue;
      Value other = getRoot(operands[j]);
      if (!root || !other || root == other)
        free[i] = false;
    }
  }
}

SmallVector<int64_t>
LaunchAliasing::getDistinctArguments(tile::KernelOp kernel) const {
  auto found = launches.find(kernel.getSymNameAttr());
  if (found == launches.end())
    return {};
  ArrayRef<Type> types = kernel.getFunctionType().getInputs();
  SmallVector<bool> free = llvm::map_to_vector(
      types, [](Type type) { return isa<MemRefType>(type); });
  for (tile::LaunchOp launch : found->second)
    findOverlaps(launch, free);
  SmallVector<int64_t> result;
  for (auto [index, isFree] : llvm::enumerate(free))
    if (isFree)
      result.push_back(static_cast<int64_t>(index));
  return result;
}

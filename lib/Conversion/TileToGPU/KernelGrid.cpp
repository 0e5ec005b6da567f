//===- KernelGrid.cpp - which task a block is -----------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToGPU/KernelGrid.h"
#include "dialects/Tile/TileDecisions.h"
#include "lib/Analysis/TaskNumbers.h"
#include "lib/Conversion/TileToGPU/DistributedTiles.h"

#include "mlir/IR/Matchers.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tilewright;

KernelGrid::KernelGrid(tile::KernelOp kernel, bool called)
    : kernel(kernel), called(called),
      bounds(kernel.getGridRank(), ShapedType::kDynamic) {
  if (auto known = tile::decisions::kGrid.get(kernel))
    bounds = llvm::to_vector(known.asArrayRef());
  else
    readLaunches();
}

/// A bound is known where all launches say the same constant.
void KernelGrid::readLaunches() {
  bool isFirst = true;
  kernel->getParentOp()->walk([&](tile::LaunchOp launch) {
    if (launch.getKernel() != kernel.getSymName())
      return;
    for (auto [bound, value] : llvm::zip_equal(bounds, launch.getGrid())) {
      APInt constant;
      int64_t number = matchPattern(value, m_ConstantInt(&constant))
                           ? constant.getSExtValue()
                           : ShapedType::kDynamic;
      if (isFirst)
        bound = number;
      else if (bound != number)
        bound = ShapedType::kDynamic;
    }
    isFirst = false;
  });
}

SmallVector<int64_t> KernelGrid::getOpenBounds() const {
  SmallVector<int64_t> open;
  for (auto [dim, bound] : llvm::enumerate(bounds))
    if ((dim > 0 || needsAllBounds()) && ShapedType::isDynamic(bound))
      open.push_back(static_cast<int64_t>(dim));
  return open;
}

bool KernelGrid::isPersistent() const {
  return kernel->hasAttr(tile::decisions::kPersistent) && !called &&
         !bounds.empty();
}

int64_t KernelGrid::getMultiple(int64_t dim) const {
  auto rounded = tile::decisions::kRounded.get(kernel);
  bool isGiven = rounded && dim < rounded.size(); // verify() tells who is wrong
  return isGiven ? std::max<int64_t>(rounded[dim], 1) : 1;
}

SmallVector<Value> KernelGrid::getSizes(OpBuilder &b,
                                        ArrayRef<BlockArgument> open) {
  TaskNumbers n(b, kernel.getLoc());
  SmallVector<Value> sizes(bounds.size());
  for (auto [dim, bound] : llvm::enumerate(bounds)) {
    int64_t multiple = getMultiple(static_cast<int64_t>(dim));
    if (!ShapedType::isDynamic(bound)) {
      sizes[dim] =
          n.constant(llvm::divideCeilSigned(bound, multiple) * multiple);
    } else if (dim > 0 || needsAllBounds()) {
      sizes[dim] = open.front();
      open = open.drop_front();
      if (multiple == 1)
        continue;
      Value whole = n.div(n.add(sizes[dim], n.constant(multiple - 1)),
                          n.constant(multiple));
      sizes[dim] = n.mul(whole, n.constant(multiple));
    }
  }
  return sizes;
}

scf::ForOp KernelGrid::makeTasks(OpBuilder &b, ArrayRef<BlockArgument> open) {
  Location loc = kernel.getLoc();
  TaskNumbers n(b, loc);
  Value all = n.constant(1);
  for (Value size : getSizes(b, open))
    all = n.mul(all, size);
  Value first = gpu::BlockIdOp::create(b, loc, gpu::Dimension::x);
  Value blocks = gpu::GridDimOp::create(b, loc, gpu::Dimension::x);
  auto tasks = scf::ForOp::create(b, loc, first, n.toIndex(all), blocks);
  tasks->setAttr(tile::decisions::kTasks, b.getUnitAttr());
  return tasks;
}

LogicalResult KernelGrid::verify() {
  auto rounded = tile::decisions::kRounded.get(kernel);
  if (rounded && (rounded.size() != static_cast<int64_t>(bounds.size()) ||
                  llvm::any_of(rounded.asArrayRef(),
                               [](int64_t size) { return size < 1; })))
    return kernel.emitOpError("has tile.rounded = ")
           << rounded << ": it needs a positive number for each of the "
           << bounds.size() << " coordinates of its grid";
  std::optional<ArrayRef<int64_t>> cluster = kernel.getCluster();
  if (!cluster)
    return success();
  // Of one coordinate the launch counts whole clusters.
  bool mayBeOpen = bounds.size() == 1 && !isPersistent();
  for (auto [dim, size] : llvm::enumerate(*cluster)) {
    if (size == 1 || getMultiple(static_cast<int64_t>(dim)) % size == 0)
      continue;
    if (ShapedType::isDynamic(bounds[dim]) ? !mayBeOpen
                                           : bounds[dim] % size != 0)
      return kernel.emitOpError("has clusters of ")
             << size << " tasks along coordinate " << dim
             << ", whose bound must be known and a multiple of that, or be "
                "rounded up to one (tile.rounded)";
  }
  return success();
}

/// What is left of a task's number, and of the sizes of the grid, for the
/// coordinates of its cluster; the task's own coordinates in the cluster go to
/// `members` (null where the cluster has one task along a coordinate). Tasks of
/// a cluster have numbers that follow each other, the last coordinate fastest.
static Value takeMembers(TaskNumbers &n, ArrayRef<int64_t> cluster, Value task,
                         MutableArrayRef<Value> sizes,
                         MutableArrayRef<Value> members) {
  for (size_t dim = cluster.size(); dim-- > 0;) {
    if (cluster[dim] == 1)
      continue;
    Value width = n.constant(cluster[dim]);
    members[dim] = n.rem(task, width);
    task = n.div(task, width);
    if (sizes[dim])
      sizes[dim] = n.div(sizes[dim], width);
  }
  return task;
}

LogicalResult KernelGrid::append(OpBuilder &b, Value taskNumber,
                                 ArrayRef<BlockArgument> open,
                                 SmallVectorImpl<Value> &values) {
  auto rank = static_cast<int64_t>(bounds.size());
  if (rank == 0)
    return success();
  if (failed(verify()))
    return failure();
  Location loc = kernel.getLoc();
  TaskNumbers n(b, loc);
  SmallVector<Value> sizes = getSizes(b, open);
  if (!taskNumber)
    taskNumber = gpu::BlockIdOp::create(b, loc, gpu::Dimension::x);
  Value task = n.fromIndex(taskNumber);
  SmallVector<Value> coordinates(rank), members(rank);
  auto raster = tile::decisions::kRaster.get(kernel);
  bool inBands = raster && rank >= 2;
  if (inBands && !sizes[rank - 2]) {
    Value all = n.fromIndex(gpu::GridDimOp::create(b, loc, gpu::Dimension::x));
    sizes[rank - 2] = n.div(all, sizes[rank - 1]);
  }
  SmallVector<int64_t> cluster(rank, 1);
  if (std::optional<ArrayRef<int64_t>> given = kernel.getCluster())
    cluster = llvm::to_vector(*given);
  task = takeMembers(n, cluster, task, sizes, members);
  int64_t height =
      inBands ? std::max<int64_t>(raster.getInt() / cluster[rank - 2], 1) : 0;
  takeCoordinates(n, task, height, sizes, coordinates);
  for (auto [coordinate, member, size] :
       llvm::zip_equal(coordinates, members, cluster)) {
    if (member)
      coordinate = n.add(n.mul(coordinate, n.constant(size)), member);
    values.push_back(n.toIndex(coordinate));
  }
  return success();
}

//===- TileTaskOps.cpp - tasks of a grid that wait ------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileTasks.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

using namespace mlir;
using namespace tilewright::tile;

#define GET_OP_CLASSES
#include "dialects/Tile/TileTaskOps.cpp.inc"

/// Whether an op stands in a kernel, or in the function that one became.
static LogicalResult verifyInKernel(Operation *op) {
  if (op->getParentOfType<KernelOp>() || op->getParentOfType<gpu::GPUFuncOp>())
    return success();
  return op->emitOpError("stands outside of a tile.kernel");
}

LogicalResult SemaphoresOp::verify() {
  // semaphores_c1
  if (!isa<KernelOp>((*this)->getParentOp()))
    return emitOpError("stands outside of a tile.kernel, or in a loop or "
                       "branch of one: all tasks share the same counts");
  return success();
}

// semaphore_post_c1
LogicalResult SemaphorePostOp::verify() { return verifyInKernel(*this); }

LogicalResult SemaphoreTakeOp::verify() {
  // semaphore_take_c2
  if (static_cast<int64_t>(getCount()) < 1)
    return emitOpError("has count ")
           << static_cast<int64_t>(getCount()) << ", which must be positive";
  // semaphore_take_c1
  return verifyInKernel(*this);
}

bool tilewright::tile::hasWaits(Operation *kernel) {
  return kernel->walk([](SemaphoreTakeOp) { return WalkResult::interrupt(); })
      .wasInterrupted();
}

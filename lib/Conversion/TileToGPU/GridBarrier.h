//===- GridBarrier.h - where all blocks of a grid meet ----------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CONVERSION_TILETOGPU_GRIDBARRIER_H
#define TILEWRIGHT_CONVERSION_TILETOGPU_GRIDBARRIER_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace tilewright {

/// The barrier of all blocks of a kernel. What a thread did before it is seen
/// by all threads behind it.
class GridBarrier {
public:
  /// Makes its counter, memory of the module, and at the start of the function
  /// what is the same for all meetings. `tile.waits` tells the host that all
  /// blocks must run at the same time.
  explicit GridBarrier(mlir::gpu::GPUFuncOp function);

  /// The running block's number, and how many there are; of type index.
  mlir::Value getBlock() const { return block; }
  mlir::Value getBlocks() const { return blocks; }
  /// All blocks meet. One thread of the first block does something before,
  /// which all see behind. `areCounted`: other warps attend, which come to as
  /// many barriers of the block: none of two in a row is folded.
  void meet(mlir::OpBuilder &b, mlir::Location loc,
            llvm::function_ref<void(mlir::OpBuilder &)> first,
            bool areCounted) const;
  /// Warps beside those that tell the other blocks wait until these have come:
  /// what they did before is told, and what the others did is seen.
  static void attend(mlir::OpBuilder &b, mlir::Location loc);

private:
  mlir::Value block, blocks, counter, arrival;
};

} // namespace tilewright

#endif // TILEWRIGHT_CONVERSION_TILETOGPU_GRIDBARRIER_H

//===- GridBarrier.h - where blocks of a grid meet --------------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CONVERSION_TILETOGPU_GRIDBARRIER_H
#define TILEWRIGHT_CONVERSION_TILETOGPU_GRIDBARRIER_H

#include "lib/Conversion/TileToGPU/BlockTeams.h"

namespace tilewright {

/// The barriers of all blocks of a kernel, and of its teams. What a thread did
/// before one is seen by all threads behind it.
class GridBarrier {
public:
  /// Makes a counter of each, memory of the module, and at the start of the
  /// function what is the same for all meetings. `tile.waits` tells the host
  /// that all blocks must run at the same time.
  GridBarrier(mlir::gpu::GPUFuncOp function, const BlockTeams &teams);

  /// The blocks of a team meet, or all. One thread of the first block does
  /// something before, which all see behind. `areCounted`: other warps attend,
  /// which come to as many barriers of the block: none of two in a row is
  /// folded.
  void meet(mlir::OpBuilder &b, mlir::Location loc, Team team,
            llvm::function_ref<void(mlir::OpBuilder &)> first,
            bool areCounted) const;
  /// Warps beside those that tell the other blocks wait until these have come:
  /// what they did before is told, and what the others did is seen.
  void attend(mlir::OpBuilder &b, mlir::Location loc, Team team) const;

private:
  struct Counter {
    mlir::Value address, arrival;
  };
  const BlockTeams &teams;
  llvm::DenseMap<mlir::Attribute, Counter> counters;
};

} // namespace tilewright

#endif // TILEWRIGHT_CONVERSION_TILETOGPU_GRIDBARRIER_H

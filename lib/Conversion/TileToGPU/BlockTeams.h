//===- BlockTeams.h - blocks of a grid that meet by themselves --*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CONVERSION_TILETOGPU_BLOCKTEAMS_H
#define TILEWRIGHT_CONVERSION_TILETOGPU_BLOCKTEAMS_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "llvm/ADT/MapVector.h"

namespace tilewright {

/// The team that runs an operation, by `tile.team` on it or on what is around
/// it: the first block and the number of blocks. Null: all blocks do.
using Team = mlir::DenseI64ArrayAttr;
Team teamOf(mlir::Operation *op);

/// Where a number is read or written that blocks share; null for others, and
/// for what is a thread's own.
mlir::Value getSharedNumber(mlir::Operation *op);

/// Blocks that share work and meet: all of a grid, or a team.
struct BlockGroup {
  /// Whether the running block is one of them; null for all of a grid.
  mlir::Value isIn;
  /// The running block's number among them, and how many there are; index.
  mlir::Value block, blocks;
};

/// The teams of a kernel that launches others. A grid of fewer blocks than all
/// teams have together has none: all of its blocks do what each team would.
class BlockTeams {
public:
  /// Values are made at the start of the function. Teams that are none are
  /// errors of the operations that have them.
  explicit BlockTeams(mlir::gpu::GPUFuncOp function);

  bool areWrong() const { return wrong; }
  bool any() const { return groups.size() > 1; }
  const BlockGroup &of(Team team) const { return groups.find(team)->second; }
  /// All groups of blocks, that of the whole grid first.
  const llvm::MapVector<mlir::Attribute, BlockGroup> &all() const {
    return groups;
  }

private:
  void find(mlir::gpu::GPUFuncOp function);
  void check(mlir::Operation *op, Team team, int64_t most);

  llvm::MapVector<mlir::Attribute, BlockGroup> groups;
  bool wrong = false;
};

} // namespace tilewright

#endif // TILEWRIGHT_CONVERSION_TILETOGPU_BLOCKTEAMS_H

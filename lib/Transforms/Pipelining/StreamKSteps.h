//===- StreamKSteps.h - which steps of a grid a block computes --*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TRANSFORMS_PIPELINING_STREAMKSTEPS_H
#define TILEWRIGHT_TRANSFORMS_PIPELINING_STREAMKSTEPS_H

#include "lib/Analysis/TaskNumbers.h"

namespace tilewright {

/// Stream-K with whole waves (Osama et al., PPoPP 2023, section 5.3): blocks
/// compute whole tiles for all waves but the last full one and what is left;
/// the steps of these tiles are divided among all blocks, as equal shares of
/// consecutive ones. A share begins and ends anywhere in a tile: at most one
/// tile of a block is finished by a later one.
///
/// A block takes the parts of its share in the order of falling steps, in the
/// first rounds, then its whole tiles. So the only part of a tile that it does
/// not finish comes first, and who finishes one finds the others' parts done.
class StreamKSteps {
public:
  /// Of `tiles` with `steps` each over `blocks`.
  StreamKSteps(int64_t tiles, int64_t steps, int64_t blocks);

  /// Whether there is something to divide: no whole number of waves, and a step
  /// for each block.
  bool isUseful() const;
  /// Tasks of each block: parts of its share, and whole tiles.
  int64_t getRounds() const { return parts + waves; }

  /// What a task does, i32 but for `ends`: steps of a tile (none: nothing),
  /// whether these are its last ones, and the first of the blocks up to its own
  /// that have those before.
  struct Task {
    mlir::Value tile, first, count, ends, helper;
  };
  Task makeTask(TaskNumbers &n, mlir::Value round, mlir::Value block) const;

private:
  mlir::Value blockOf(TaskNumbers &n, mlir::Value step) const;

  int64_t steps, blocks, waves, split;
  /// Steps of a share, and how many blocks have one more.
  int64_t share = 0, longer = 0;
  /// Parts that a share has at most.
  int64_t parts = 0;
};

} // namespace tilewright

#endif // TILEWRIGHT_TRANSFORMS_PIPELINING_STREAMKSTEPS_H

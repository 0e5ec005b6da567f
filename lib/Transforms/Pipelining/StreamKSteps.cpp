//===- StreamKSteps.cpp - which steps of a grid a block computes ----------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Pipelining/StreamKSteps.h"

using namespace mlir;

namespace tilewright {

StreamKSteps::StreamKSteps(int64_t tiles, int64_t steps, int64_t blocks)
    : steps(steps), blocks(blocks),
      waves(std::max<int64_t>(tiles / blocks - 1, 0)),
      split(tiles - waves * blocks) {
  share = split * steps / blocks;
  longer = split * steps % blocks;
  int64_t begin = 0;
  for (int64_t block = 0; block < blocks; ++block) {
    int64_t end = begin + share + (block < longer);
    if (end > begin)
      parts = std::max(parts, (end - 1) / steps - begin / steps + 1);
    begin = end;
  }
}

bool StreamKSteps::isUseful() const { return split % blocks != 0 && share > 0; }

/// The block whose share a step is in.
Value StreamKSteps::blockOf(TaskNumbers &n, Value step) const {
  if (longer == 0)
    return n.div(step, n.constant(share));
  Value front = n.constant(longer * (share + 1));
  Value isLonger = n.compare(arith::CmpIPredicate::slt, step, front);
  Value behind = n.div(n.sub(step, front), n.constant(share));
  return n.select(isLonger, n.div(step, n.constant(share + 1)),
                  n.add(n.constant(longer), behind));
}

StreamKSteps::Task StreamKSteps::makeTask(TaskNumbers &n, Value round,
                                          Value block) const {
  Value size = n.constant(share), more = n.constant(longer);
  Value begin = n.add(n.mul(block, size), n.min(block, more));
  Value end = n.add(n.mul(n.add(block, n.constant(1)), size),
                    n.min(n.add(block, n.constant(1)), more));
  Value all = n.constant(steps);
  // From the last tile of the share backwards; behind its first one there is
  // nothing.
  Value tile = n.sub(n.div(n.sub(end, n.constant(1)), all), round);
  Value start = n.mul(tile, all);
  Value low = n.maxSigned(begin, start);
  Value high = n.minSigned(end, n.add(start, all));
  Value none = n.constant(0);
  Task task{n.add(tile, n.constant(waves * blocks)), n.sub(low, start),
            n.maxSigned(n.sub(high, low), none), Value(), blockOf(n, start)};
  if (waves > 0) {
    Value isPart =
        n.compare(arith::CmpIPredicate::slt, round, n.constant(parts));
    Value before = n.mul(n.sub(round, n.constant(parts)), n.constant(blocks));
    task.tile = n.select(isPart, task.tile, n.add(before, block));
    task.first = n.select(isPart, task.first, none);
    task.count = n.select(isPart, task.count, all);
    task.helper = n.select(isPart, task.helper, block);
  }
  task.ends =
      n.compare(arith::CmpIPredicate::eq, n.add(task.first, task.count), all);
  return task;
}

} // namespace tilewright

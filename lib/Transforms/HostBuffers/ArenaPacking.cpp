//===- ArenaPacking.cpp - places for buffers with lifetimes ---------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/HostBuffers/ArenaPacking.h"

#include <algorithm>
#include <limits>
#include <numeric>

using namespace tilewright;

namespace {

int64_t alignUp(int64_t value, int64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

bool meet(const ArenaBuffer &x, const ArenaBuffer &y) {
  return x.first <= y.last && y.first <= x.last;
}

/// The smallest gap between the placed buffers that are live together with
/// `buffer`, or the place after the last of them.
int64_t findPlace(const ArenaBuffer &buffer,
                  const std::vector<const ArenaBuffer *> &placed,
                  int64_t alignment) {
  int64_t best = -1, bestGap = std::numeric_limits<int64_t>::max();
  int64_t end = 0;
  for (const ArenaBuffer *other : placed) {
    if (!meet(buffer, *other))
      continue;
    int64_t gap = other->offset - end;
    if (gap >= buffer.bytes && gap < bestGap) {
      best = end;
      bestGap = gap;
    }
    end = std::max(end, alignUp(other->offset + other->bytes, alignment));
  }
  return best >= 0 ? best : end;
}

} // namespace

int64_t tilewright::packArena(std::vector<ArenaBuffer> &buffers,
                              int64_t alignment) {
  std::vector<ArenaBuffer *> order;
  for (ArenaBuffer &buffer : buffers)
    order.push_back(&buffer);
  std::stable_sort(order.begin(), order.end(),
                   [](const ArenaBuffer *x, const ArenaBuffer *y) {
                     return x->bytes > y->bytes;
                   });
  std::vector<const ArenaBuffer *> placed; // by offset
  int64_t size = 0;
  for (ArenaBuffer *buffer : order) {
    buffer->offset = findPlace(*buffer, placed, alignment);
    size = std::max(size, buffer->offset + alignUp(buffer->bytes, alignment));
    auto byOffset = [](const ArenaBuffer *x, const ArenaBuffer *y) {
      return x->offset < y->offset;
    };
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), buffer, byOffset),
        buffer);
  }
  return size;
}

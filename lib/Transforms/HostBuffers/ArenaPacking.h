//===- ArenaPacking.h - places for buffers with lifetimes -*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TRANSFORMS_HOSTBUFFERS_ARENAPACKING_H
#define TILEWRIGHT_TRANSFORMS_HOSTBUFFERS_ARENAPACKING_H

#include <cstdint>
#include <vector>

namespace tilewright {

/// A buffer of `bytes` that is live in [first, last] of program order.
struct ArenaBuffer {
  int64_t bytes;
  int64_t first;
  int64_t last;
  int64_t offset = -1;
};

/// Sets every offset, a multiple of `alignment`; returns the arena's size.
/// Buffers whose lifetimes meet do not overlap.
int64_t packArena(std::vector<ArenaBuffer> &buffers, int64_t alignment);

} // namespace tilewright

#endif // TILEWRIGHT_TRANSFORMS_HOSTBUFFERS_ARENAPACKING_H

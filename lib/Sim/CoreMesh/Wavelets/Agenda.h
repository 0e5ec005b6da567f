//===----------------------------------------------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// When what has to be looked at again: soon, in a wheel of one slot per cycle;
// later, in a heap.
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_LIB_SIM_COREMESH_WAVELETS_AGENDA_H
#define TILEWRIGHT_LIB_SIM_COREMESH_WAVELETS_AGENDA_H

#include <array>
#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

namespace twmesh::wavelets {

/// Wakes things by number; what is woken from afar may be found twice.
class Agenda {
public:
  explicit Agenda(size_t things) : soon(things, 0) {}

  /// Looks at `thing` at cycle `at`, which is after `now`.
  void wake(int32_t thing, int64_t now, int64_t at) {
    if (at - now >= slots) {
      later.emplace(at, thing);
      return;
    }
    uint64_t bit = uint64_t(1) << (at % slots);
    if (soon[thing] & bit)
      return;
    soon[thing] |= bit;
    wheel[at % slots].push_back(thing);
    ++waiting;
  }

  /// The next cycle after `now` at which something is to be looked at; -1:
  /// there is none.
  int64_t next(int64_t now) const {
    int64_t far = later.empty() ? -1 : later.top().first;
    if (waiting)
      for (int64_t at = now + 1; at < now + slots; ++at)
        if (!wheel[at % slots].empty())
          return far >= 0 && far < at ? far : at;
    return far;
  }

  /// Takes what is to be looked at at `now` into `found`.
  void take(int64_t now, std::vector<int32_t> &found) {
    found.clear();
    std::swap(found, wheel[now % slots]);
    waiting -= found.size();
    uint64_t bit = uint64_t(1) << (now % slots);
    for (int32_t thing : found)
      soon[thing] &= ~bit;
    while (!later.empty() && later.top().first == now) {
      found.push_back(later.top().second);
      later.pop();
    }
  }

private:
  static constexpr int64_t slots = 64;
  using Event = std::pair<int64_t, int32_t>;

  std::array<std::vector<int32_t>, slots> wheel;
  std::vector<uint64_t> soon;
  size_t waiting = 0;
  std::priority_queue<Event, std::vector<Event>, std::greater<Event>> later;
};

} // namespace twmesh::wavelets

#endif // TILEWRIGHT_LIB_SIM_COREMESH_WAVELETS_AGENDA_H

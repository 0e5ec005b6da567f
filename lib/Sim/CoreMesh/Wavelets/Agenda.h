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

/// Wakes things by number, each at most once per cycle and in ascending order:
/// what stands beside each other in memory is looked at one after the other.
class Agenda {
public:
  explicit Agenda(size_t things) {
    for (Slot &slot : wheel)
      slot.words.resize((things + 63) / 64);
  }

  /// Looks at `thing` at cycle `at`, which is after `now`.
  void wake(int32_t thing, int64_t now, int64_t at) {
    if (at - now >= slots)
      later.emplace(at, thing);
    else
      mark(thing, at);
  }

  /// The next cycle after `now` at which something is to be looked at; -1:
  /// there is none.
  int64_t next(int64_t now) const {
    int64_t far = later.empty() ? -1 : later.top().first;
    for (int64_t at = now + 1; waiting && at < now + slots; ++at)
      if (wheel[at % slots].count)
        return far >= 0 && far < at ? far : at;
    return far;
  }

  /// Takes what is to be looked at at `now` into `found`.
  void take(int64_t now, std::vector<int32_t> &found) {
    found.clear();
    for (; !later.empty() && later.top().first == now; later.pop())
      mark(later.top().second, now);
    Slot &slot = wheel[now % slots];
    waiting -= slot.count;
    for (size_t word = 0; slot.count; ++word) {
      for (uint64_t left = slot.words[word]; left; left &= left - 1) {
        found.push_back(int32_t(64 * word + __builtin_ctzll(left)));
        --slot.count;
      }
      slot.words[word] = 0;
    }
  }

private:
  static constexpr int64_t slots = 64;
  using Event = std::pair<int64_t, int32_t>;

  /// One bit per thing.
  struct Slot {
    std::vector<uint64_t> words;
    size_t count = 0;
  };

  void mark(int32_t thing, int64_t at) {
    Slot &slot = wheel[at % slots];
    uint64_t &word = slot.words[thing / 64], bit = uint64_t(1) << (thing % 64);
    size_t isNew = !(word & bit);
    word |= bit;
    slot.count += isNew;
    waiting += isNew;
  }

  std::array<Slot, slots> wheel;
  size_t waiting = 0;
  std::priority_queue<Event, std::vector<Event>, std::greater<Event>> later;
};

} // namespace twmesh::wavelets

#endif // TILEWRIGHT_LIB_SIM_COREMESH_WAVELETS_AGENDA_H

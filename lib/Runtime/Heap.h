//===----------------------------------------------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Memory whose size a call learns while it runs. What the call neither frees
// nor hands over is freed when it ends, also when it fails. The calling thread
// keeps the blocks of its last calls for the next ones: fresh memory costs a
// page fault and zeros for every page, more than some kernels that write to it.
// Of several calls, as models may take turns.
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_LIB_RUNTIME_HEAP_H
#define TILEWRIGHT_LIB_RUNTIME_HEAP_H

#include "Guards.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <malloc.h>
#include <map>
#include <new>
#include <sys/mman.h>
#include <unordered_map>

namespace tilewright::runtime {

/// Blocks that no call uses, each one of malloc's.
class IdleBlocks {
public:
  IdleBlocks() = default;
  IdleBlocks(const IdleBlocks &) = delete;
  IdleBlocks &operator=(const IdleBlocks &) = delete;
  ~IdleBlocks() {
    while (!blocks.empty())
      drop(blocks.begin());
    ended = true;
  }

  /// Whether those of this thread are gone: it is about to end.
  static inline thread_local bool ended = false;

  /// A block of at least `capacity` bytes, and of at most twice as many, which
  /// `capacity` becomes; null where there is none.
  void *find(int64_t &capacity) {
    auto found = blocks.lower_bound(capacity);
    if (found == blocks.end() || found->first / 2 > capacity)
      return nullptr;
    capacity = found->first;
    void *block = found->second.block;
    blocks.erase(found);
    bytes -= capacity;
    return block;
  }

  /// Keeps a block that call number `call` used.
  void add(void *block, int64_t capacity, int64_t call) {
    try {
      blocks.insert({capacity, {block, call}});
      bytes += capacity;
      guard(block, 0, capacity);
    } catch (const std::bad_alloc &) {
      std::free(block);
    }
    while (bytes > limit)
      drop(blocks.begin());
  }

  /// Keeps a result that its owner has done with for the next call.
  void release(void *block) {
#ifdef __GLIBC__
    if (block)
      return add(block, malloc_usable_size(block), calls);
#endif
    std::free(block);
  }

  /// All blocks together have at most `most` bytes from now on, or more.
  void allow(int64_t most) { limit = std::max(limit, most); }

  /// Number of the next call.
  int64_t beginCall() { return ++calls; }

  /// Frees what the last kCalls calls did not use, and all but the bytes that
  /// one of these may keep: `most` is what the ending one, number `call`, may.
  void endCall(int64_t call, int64_t most) {
    kept[call % kCalls] = most;
    limit = *std::max_element(kept.begin(), kept.end());
    for (auto entry = blocks.begin(); entry != blocks.end();)
      entry =
          entry->second.call <= call - kCalls ? drop(entry) : std::next(entry);
    while (bytes > limit)
      drop(blocks.begin());
  }

private:
  struct Entry {
    void *block;
    int64_t call;
  };
  using Blocks = std::multimap<int64_t, Entry>;

  Blocks::iterator drop(Blocks::iterator entry) {
    std::free(entry->second.block);
    bytes -= entry->first;
    return blocks.erase(entry);
  }

  /// Calls of which blocks are kept.
  static constexpr int64_t kCalls = 4;

  Blocks blocks;
  int64_t bytes = 0, calls = 0, limit = 0;
  std::array<int64_t, kCalls> kept = {};
};

inline IdleBlocks &idleBlocks() {
  thread_local IdleBlocks blocks;
  return blocks;
}

/// Keeps a result that its owner has done with, or frees it where the thread
/// is about to end.
inline void releaseBlock(void *block) {
  if (IdleBlocks::ended)
    std::free(block);
  else
    idleBlocks().release(block);
}

/// The memory of one call.
class Heap {
public:
  Heap() : idle(idleBlocks()) {}
  Heap(const Heap &) = delete;
  Heap &operator=(const Heap &) = delete;
  ~Heap() {
    if (!call)
      return; // it asked for none: others' blocks stay
    while (!blocks.empty())
      recycle(blocks.begin()->first);
    idle.endCall(call, 2 * most);
  }

  /// At least `bytes` bytes, 64-byte aligned; null where there is no memory.
  void *allocate(int64_t bytes) {
    if (bytes < 0 || bytes > INT64_MAX - kHuge)
      return nullptr;
    if (!call)
      call = idle.beginCall();
    // Huge pages where a block fills some of one.
    const int64_t unit = bytes > kHuge / 4 ? kHuge : kLine;
    int64_t capacity = (bytes / unit + (bytes % unit != 0 || !bytes)) * unit;
    void *block = idle.find(capacity);
    if (!block)
      block = fresh(unit, capacity);
    if (!block)
      return nullptr;
    try {
      blocks.insert({block, capacity});
    } catch (const std::bad_alloc &) {
      std::free(block);
      return nullptr;
    }
    guard(block, bytes, capacity);
    live += capacity;
    most = std::max(most, live + given);
    idle.allow(2 * most);
    return block;
  }

  /// Forgets a block, which then belongs to the caller. False where it is no
  /// live block of this heap.
  bool take(void *block) {
    int64_t capacity = forget(block);
    given += capacity;
    return capacity != 0;
  }

  /// Takes a block back that the call has done with. Idle ones may have twice
  /// the bytes of those that were in use at once: they differ in size.
  void recycle(void *block) {
    if (int64_t capacity = forget(block))
      idle.add(block, capacity, call);
  }

private:
  static constexpr int64_t kLine = 64, kHuge = 2 << 20;

  static void *fresh(int64_t unit, int64_t capacity) {
    void *block = std::aligned_alloc(unit, capacity);
#ifdef MADV_HUGEPAGE
    if (block && unit == kHuge)
      madvise(block, capacity, MADV_HUGEPAGE);
#endif
    return block;
  }

  /// The capacity of a block that is live no more; 0 where it was not.
  int64_t forget(void *block) {
    auto found = blocks.find(block);
    if (found == blocks.end())
      return 0;
    int64_t capacity = found->second;
    blocks.erase(found);
    live -= capacity;
    return capacity;
  }

  IdleBlocks &idle;
  /// Its number among those that ask for memory; 0 before it does.
  int64_t call = 0, live = 0, given = 0, most = 0;
  std::unordered_map<void *, int64_t> blocks;
};

} // namespace tilewright::runtime

#endif // TILEWRIGHT_LIB_RUNTIME_HEAP_H

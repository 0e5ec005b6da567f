//===----------------------------------------------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Waiting for another thread: pauses first, then sleep in a futex. Why, and for
// how long: lib/rationale/runtime.md.
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_LIB_RUNTIME_WAITING_H
#define TILEWRIGHT_LIB_RUNTIME_WAITING_H

#include <atomic>
#include <climits>
#include <cstdint>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

namespace tilewright::runtime {

/// Pauses before a helper without work sleeps: about 0.3-0.8 ms. Longer takes
/// the core from whatever else runs here between two calls.
constexpr int kIdleSpins = 20000;

/// Pauses before a thread sleeps that waits for others of its call: about as
/// long as it takes to wake one up. Who is waited for that long has lost its
/// core, and pauses would only cost this thread its own turn.
constexpr int kMeetingSpins = 4000;

inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Sleeps as long as the 32 bits at `word` are `expected`, or shorter.
inline void futexWait(void *word, uint32_t expected) {
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}

inline void futexWake(void *word, int count) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

/// A number that threads count up, and that others wait for. All zeros is a
/// counter at 0 that nobody waits for.
template <typename Number> class Counter {
public:
  Number value() const { return number.load(std::memory_order_acquire); }

  /// Only while nobody waits and nobody adds.
  void reset() { number.store(0, std::memory_order_relaxed); }

  /// Adds to the number, after all that was done before, and wakes who sleeps.
  void add(Number more) {
    // Both orders are total: either this thread sees the sleeper, or the
    // sleeper's futex sees the new number.
    number.fetch_add(more, std::memory_order_seq_cst);
    if (sleepers.load(std::memory_order_seq_cst))
      futexWake(&number, INT_MAX);
  }

  /// Returns the number as soon as `isEnough` of it.
  template <typename Test> Number await(int spins, Test isEnough) {
    for (int spin = 0;;) {
      Number now = value();
      if (isEnough(now))
        return now;
      if (++spin < spins) {
        relax();
        continue;
      }
      sleepers.fetch_add(1, std::memory_order_seq_cst);
      futexWait(&number, static_cast<uint32_t>(now));
      sleepers.fetch_sub(1, std::memory_order_seq_cst);
      spin = 0;
    }
  }

private:
  // A futex compares the low half of longer numbers.
  static_assert(sizeof(Number) == 4 ||
                __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);

  std::atomic<Number> number{0};
  std::atomic<uint32_t> sleepers{0};
};

} // namespace tilewright::runtime

#endif // TILEWRIGHT_LIB_RUNTIME_WAITING_H

//===----------------------------------------------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One pool of helper threads per process; a call borrows some of them as its
// team. How it works, and why, stands in README.md.
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_LIB_RUNTIME_THREADPOOL_H
#define TILEWRIGHT_LIB_RUNTIME_THREADPOOL_H

#include "Twrt.h"

#include <atomic>
#include <cstdint>
#include <vector>

namespace tilewright::runtime {

struct Helper;

/// The threads of one call. Made once, reused by later calls, never freed:
/// a helper may look at its last team's ticket after that call has returned.
class alignas(64) Team {
public:
  /// Runs all tasks on this team; returns when each is done.
  void launch(twrt_kernel fn, void **argv, int64_t tasks, int64_t scratchBytes);

  int size() const { return static_cast<int>(helpers.size()) + 1; }

private:
  friend class Pool;
  friend struct Helper;

  struct Job {
    twrt_kernel fn;
    void **argv;
    int64_t tasks;
    int64_t scratchBytes;
  };

  /// Takes chunks of the launch that the ticket shows until none is left.
  void work();
  void runChunk(const Job &job, uint32_t chunk, uint32_t chunks);
  /// Starts a new generation of the ticket and wakes helpers that sleep.
  void publish(uint32_t chunks);
  /// Waits until the generation differs from `seen`; returns it.
  uint32_t awaitGeneration(uint32_t seen);

  /// generation (32 bits) | chunks (16) | next chunk (16). One fetch_add both
  /// takes a chunk and says which launch it belongs to.
  alignas(64) std::atomic<uint64_t> ticket{0};
  alignas(64) std::atomic<uint32_t> done{0};
  alignas(64) std::atomic<uint32_t> sleepers{0};
  std::atomic<bool> closed{false};
  Job job{};
  std::vector<Helper *> helpers;
};

/// The process-wide pool.
class Pool {
public:
  static Pool &get();

  /// A team of the calling thread and at most `threads - 1` helpers that are
  /// free now; null where there is none (run alone then).
  Team *acquire(int threads);
  void release(Team *team);

  int started();

private:
  Helper *startHelper();
  /// Makes a team of `helpers` (or fewer, if threads run out); lock held.
  Team *assemble(int helpers);
  /// Waits until the team's helpers have left it; lock held.
  void dissolve(Team *team);

  std::vector<Helper *> idle;
  /// Teams between two calls, their helpers still in place.
  std::vector<Team *> resting;
  std::vector<Team *> empty;
  int count = 0;
};

} // namespace tilewright::runtime

#endif // TILEWRIGHT_LIB_RUNTIME_THREADPOOL_H

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
#include "Waiting.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

namespace tilewright::runtime {

struct Helper;

/// Launches that turn go back by runs of so many ranges, each run forwards: a
/// range often fetches what the next one reads.
constexpr int64_t kRun = 4;

/// Which of `count` ranges comes at `place` where the last run comes first. A
/// few ranges are short runs: most of what was read last should come first.
inline int64_t placeFromBack(int64_t place, int64_t count) {
  int64_t run = std::clamp<int64_t>(count / 4, 1, kRun);
  int64_t last = count - place / run * run;
  return std::max<int64_t>(last - run, 0) + place % run;
}

/// The threads of one call. Made once, reused by later calls, never freed:
/// a helper may look at its last team's ticket after that call has returned.
class alignas(64) Team {
public:
  struct Job {
    twrt_kernel fn;
    void **argv;
    int64_t tasks;
    int64_t scratchBytes;
    bool back = false; ///< each member begins with the last run of its share
    uint32_t chunks = 0;
  };

  /// Runs all tasks on this team; returns when each is done. At most
  /// `chunksPerMember` ranges of tasks are made for each member: with 1 of
  /// them, one thread's tasks may wait for another's.
  void launch(const Job &newJob, int64_t chunksPerMember);

  /// Enough chunks that a disturbed core costs little.
  static constexpr int64_t kChunks = 16;

  int size() const { return static_cast<int>(helpers.size()) + 1; }

private:
  friend class Pool;
  friend struct Helper;

  /// The chunks of one member: end (32 bits) | next chunk (32). One fetch_add
  /// takes a chunk; of the launch under way, as long as one is left.
  struct alignas(64) Share {
    std::atomic<uint64_t> ticket{0};
    uint32_t begin = 0; ///< its first chunk; like `job`, for holders of one
  };

  /// Takes the chunks of member `self`, then those that others have not begun.
  void work(uint32_t self);
  /// Runs what is left of a share; returns the number of chunks.
  uint32_t finish(Share &share);
  void runChunk(uint32_t chunk);
  /// Gives each member its share.
  void deal(uint32_t chunks);

  /// Counts launches; helpers wait for the next one.
  alignas(64) Counter<uint32_t> generation;
  /// Chunks of the launch under way that have been run.
  alignas(64) Counter<uint32_t> done;
  alignas(64) std::atomic<bool> closed{false};
  Job job{};
  std::vector<Helper *> helpers;
  /// One per member, the calling thread's first. Grows while no helper looks.
  std::vector<Share> shares;
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

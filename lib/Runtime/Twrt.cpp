//===----------------------------------------------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The C ABI: calls, launches, the profile.
//
//===----------------------------------------------------------------------===//

#include "Twrt.h"
#include "Cpus.h"
#include "FloatingPoint.h"
#include "Heap.h"
#include "Scratch.h"
#include "ThreadPool.h"
#include "Waiting.h"

#include <array>
#include <chrono>
#include <csetjmp>
#include <cstring>

using namespace tilewright::runtime;

namespace {

/// What the calling thread is running. Helpers have none: a launch made inside
/// a kernel runs on its own thread.
struct Call {
  Team *team = nullptr;
  twrt_record *records = nullptr;
  int64_t capacity = 0;
  int64_t launches = 0;
  Heap heap;
  /// Which kernels ran forwards last. Kernels that share a place only turn at
  /// other times.
  std::array<bool, 256> forwards = {};
  /// Where a failure goes on. Compiled code has nothing to unwind, and no
  /// launch is under way when the host function fails.
  std::jmp_buf failed;
};

thread_local Call *currentCall = nullptr;
thread_local char lastError[1024] = "";

/// Borrows a team and makes `call` current for a scope.
class CallScope {
public:
  CallScope(Call &call, int threads) : call(call), outer(currentCall) {
    // A call inside a call keeps to its thread.
    if (!outer && threads > 1)
      call.team = Pool::get().acquire(threads);
    currentCall = &call;
  }
  ~CallScope() {
    currentCall = outer;
    if (call.team)
      Pool::get().release(call.team);
  }
  CallScope(const CallScope &) = delete;
  CallScope &operator=(const CallScope &) = delete;

  int size() const { return call.team ? call.team->size() : 1; }

private:
  Call &call;
  Call *outer;
  DefaultFloatingPoint environment;
};

/// A launch of more tasks streams through more than a cache keeps in any order.
constexpr int64_t kMostTurned = 64;

/// Whether a launch begins with its last tasks: each other one of a kernel
/// does, so that it begins with what the one before has read last. Weights as
/// large as a cache that are read in the same order each time are never found
/// in it. Kernels with scratch may prepare something for all tasks of a range,
/// which stay in one.
bool turns(twrt_kernel fn, int64_t tasks, int64_t scratchBytes) {
  if (!currentCall || tasks > kMostTurned || scratchBytes > 0)
    return false;
  auto &forwards = currentCall->forwards;
  bool &last = forwards[reinterpret_cast<uintptr_t>(fn) / 16 % forwards.size()];
  last = !last;
  return !last;
}

void launch(Team *team, twrt_kernel fn, void **argv, int64_t tasks,
            int64_t scratchBytes) {
  if (tasks < 2) {
    if (tasks == 1)
      fn(argv, 0, 1, threadScratch().get(scratchBytes));
    return;
  }
  bool back = turns(fn, tasks, scratchBytes);
  if (team)
    return team->launch({fn, argv, tasks, scratchBytes, back}, Team::kChunks);
  char *scratch = threadScratch().get(scratchBytes);
  if (!back)
    return fn(argv, 0, tasks, scratch);
  for (int64_t place = 0; place < tasks; ++place) {
    int64_t task = placeFromBack(place, tasks);
    fn(argv, task, task + 1, scratch);
  }
}

int64_t now() {
  auto time = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
}

/// Runs a launch on the team of the current call, and notes how long it took
/// where the call is profiled.
template <typename Run> void record(twrt_kernel fn, int64_t tasks, Run run) {
  Call *call = currentCall;
  if (!call || !call->records)
    return run(call ? call->team : nullptr);
  int64_t start = now();
  run(call->team);
  int64_t index = call->launches++;
  if (index < call->capacity)
    call->records[index] = {reinterpret_cast<void *>(fn), tasks, now() - start};
}

/// Events do not share cache lines.
constexpr int64_t kEventBytes = 64;

Counter<int64_t> &counterOf(char *counters, int64_t event) {
  static_assert(sizeof(Counter<int64_t>) <= kEventBytes);
  return *reinterpret_cast<Counter<int64_t> *>(counters + event * kEventBytes);
}

/// Runs the entry; false where it failed.
bool run(Call &call, twrt_entry entry, void **bufs) {
  if (setjmp(call.failed))
    return false;
  entry(bufs);
  return true;
}

} // namespace

int32_t twrt_abi_version(void) { return TWRT_ABI_VERSION; }

int32_t twrt_default_threads(void) { return availableCpus(); }

int32_t twrt_use_matrix_unit(void) { return useMatrixUnit(); }

int32_t twrt_pool_size(void) { return Pool::get().started(); }

int32_t twrt_call(twrt_entry entry, void **bufs, int32_t threads) {
  Call call;
  CallScope scope(call, threads);
  return run(call, entry, bufs) ? scope.size() : -1;
}

int64_t twrt_call_profiled(twrt_entry entry, void **bufs, int32_t threads,
                           twrt_record *records, int64_t capacity) {
  Call call;
  call.records = records;
  call.capacity = capacity;
  CallScope scope(call, threads);
  return run(call, entry, bufs) ? call.launches : -1;
}

const char *twrt_error(void) { return lastError; }

void twrt_fail(const char *message) {
  std::snprintf(lastError, sizeof lastError, "%s", message);
  if (currentCall)
    std::longjmp(currentCall->failed, 1);
  std::fprintf(stderr, "libtwrt: %s\n", message);
  std::abort();
}

void twrt_fail_at(const char *message, int64_t number) {
  char text[sizeof lastError];
  std::snprintf(text, sizeof text, "%s: %lld", message,
                static_cast<long long>(number));
  twrt_fail(text);
}

void *twrt_alloc(int64_t bytes) {
  void *block = currentCall ? currentCall->heap.allocate(bytes) : nullptr;
  if (block)
    return block;
  char message[96];
  std::snprintf(message, sizeof message,
                "out of memory: a tensor of %lld bytes was asked for",
                static_cast<long long>(bytes));
  twrt_fail(message);
}

void twrt_free(void *block) {
  if (currentCall)
    currentCall->heap.recycle(block);
}

int64_t twrt_size(int64_t bytes, int64_t count) {
  int64_t product;
  if (count < 0)
    twrt_fail("a tensor has a negative size");
  if (__builtin_mul_overflow(bytes, count, &product))
    twrt_fail("out of memory: a tensor has more elements than memory can hold");
  return product;
}

void twrt_give(void **slot, void *block, void *data, int64_t bytes) {
  if (!currentCall || !currentCall->heap.take(block)) {
    block = twrt_alloc(bytes);
    std::memcpy(block, data, bytes);
    data = block;
    currentCall->heap.take(block);
  }
  slot[0] = data;
  slot[1] = block;
}

void twrt_release(void *block) { releaseBlock(block); }

void twrt_program(twrt_kernel fn, void **argv, int64_t units,
                  int64_t scratch_bytes, char *counters, int64_t events) {
  std::memset(counters, 0, events * kEventBytes);
  record(fn, units, [&](Team *team) {
    // A member that waits is not there for other units: one range for each.
    if (team && units > 1)
      team->launch({fn, argv, units, scratch_bytes}, /*chunksPerMember=*/1);
    else if (units > 0)
      fn(argv, 0, units, threadScratch().get(scratch_bytes));
  });
}

void twrt_signal(char *counters, int64_t event) {
  counterOf(counters, event).add(1);
}

void twrt_wait(char *counters, int64_t event, int64_t count) {
  counterOf(counters, event).await(kMeetingSpins, [=](int64_t now) {
    return now >= count;
  });
}

void twrt_launch(twrt_kernel fn, void **argv, int64_t tasks,
                 int64_t scratch_bytes) {
  record(fn, tasks,
         [&](Team *team) { launch(team, fn, argv, tasks, scratch_bytes); });
}

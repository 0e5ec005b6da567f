//===----------------------------------------------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Exercises libtwrt through its C ABI. Each check prints its name when it
// fails; the last line is "ok". test_twrt.py builds and runs it.
//
//===----------------------------------------------------------------------===//

#include "Twrt.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <limits>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

static int failures = 0;
#define CHECK(condition)                                                       \
  if (!(condition)) {                                                          \
    std::printf("FAILED line %d: %s\n", __LINE__, #condition);                 \
    ++failures;                                                                \
  }

// Kernel: counts how often each task runs. argv: counters.
static void countTasks(void **argv, int64_t begin, int64_t end, char *scratch) {
  auto *counters = static_cast<std::atomic<int> *>(argv[0]);
  std::memset(scratch, 1, 256);
  for (int64_t task = begin; task < end; ++task)
    counters[task].fetch_add(1, std::memory_order_relaxed);
}

// Entry: launches countTasks. bufs: counters, number of tasks, launches.
static void countEntry(void **bufs) {
  auto tasks = reinterpret_cast<int64_t>(bufs[1]);
  for (auto i = reinterpret_cast<int64_t>(bufs[2]); i > 0; --i)
    twrt_launch(countTasks, bufs, tasks, 256);
}

static bool runCount(int64_t tasks, int64_t launches, int threads) {
  std::vector<std::atomic<int>> counters(tasks + 1);
  void *bufs[] = {counters.data(), reinterpret_cast<void *>(tasks),
                  reinterpret_cast<void *>(launches)};
  twrt_call(countEntry, bufs, threads);
  for (int64_t i = 0; i < tasks; ++i)
    if (counters[i] != launches)
      return false;
  return counters[tasks] == 0;
}

static void testEachTaskOnce() {
  for (int threads : {1, 2, 3, 4, 7})
    for (int64_t tasks : {0, 1, 2, 3, 31, 32, 33, 97, 1000, 70001})
      CHECK(runCount(tasks, 20, threads));
  CHECK(runCount(3, 200000, 2));
  CHECK(runCount(5, 20000, 4));
}

// Kernel without scratch: notes the order of tasks. argv: times, a clock.
static void noteOrder(void **argv, int64_t begin, int64_t end, char *) {
  auto *clock = static_cast<std::atomic<int> *>(argv[1]);
  for (int64_t task = begin; task < end; ++task)
    static_cast<std::atomic<int> *>(argv[0])[task] = clock->fetch_add(1);
}

// Each other launch of a kernel in a call runs its last tasks first, by runs
// of at most four; not one with scratch, or of many tasks.
static void testTurns() {
  static int64_t tasks, scratch;
  static std::atomic<int> times[3][100];
  for (int64_t count : {2, 7, 26, 64, 65})
    for (int64_t bytes : {0, 64}) {
      tasks = count, scratch = bytes;
      std::atomic<int> clock{0};
      void *bufs[] = {&clock};
      twrt_call(
          [](void **b) {
            for (auto &row : times) {
              void *argv[] = {row, b[0]};
              twrt_launch(noteOrder, argv, tasks, scratch);
            }
          },
          bufs, 1);
      bool turned = bytes == 0 && count <= 64;
      int64_t run = count < 8 ? 1 : 4, rest = count % run;
      for (int64_t i = 0; i < count; ++i) {
        CHECK(times[0][i] == i);
        // What is no whole run comes last.
        int64_t place = i < rest
                            ? count - rest + i
                            : (count - i - 1) / run * run + (i - rest) % run;
        CHECK(times[1][i] == count + (turned ? place : i));
        CHECK(times[2][i] == 2 * count + i);
      }
    }
}

// Kernel without scratch: counts how often each task runs.
static void countPlain(void **argv, int64_t begin, int64_t end, char *) {
  for (int64_t task = begin; task < end; ++task)
    static_cast<std::atomic<int> *>(argv[0])[task].fetch_add(1);
}

// Turned launches of a team: no chunk is lost or run twice.
static void testTurnsOfTeams() {
  static int64_t tasks;
  for (int threads : {2, 3, 5})
    for (int64_t count : {2, 3, 33, 64}) {
      tasks = count;
      std::vector<std::atomic<int>> counters(count);
      void *bufs[] = {counters.data()};
      twrt_call(
          [](void **b) {
            for (int i = 0; i < 1000; ++i)
              twrt_launch(countPlain, b, tasks, 0);
          },
          bufs, threads);
      for (std::atomic<int> &counter : counters)
        CHECK(counter == 1000);
    }
}

static void testConcurrentCalls() {
  std::vector<std::thread> users;
  std::atomic<int> bad{0};
  for (int user = 0; user < 6; ++user)
    users.emplace_back([&, user] {
      for (int i = 0; i < 300; ++i)
        if (!runCount(17 + i, 5, 1 + (user + i) % 4))
          ++bad;
    });
  for (std::thread &user : users)
    user.join();
  CHECK(bad == 0);
}

static void testFork() {
#ifdef __SANITIZE_THREAD__
  return; // ThreadSanitizer cannot start threads in a forked child.
#endif
  CHECK(runCount(64, 10, 2));
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop)
      runCount(64, 10, 2);
  });
  for (int i = 0; i < 20; ++i) {
    pid_t child = fork();
    if (child == 0) {
      alarm(20);
      bool good = twrt_pool_size() == 0 && runCount(64, 100, 2);
      _exit(good && twrt_pool_size() > 0 ? 0 : 1);
    }
    int status = 1;
    waitpid(child, &status, 0);
    CHECK(status == 0);
  }
  stop = true;
  other.join();
  CHECK(runCount(64, 10, 2));
}

static void scratchKernel(void **argv, int64_t, int64_t, char *scratch) {
  if (reinterpret_cast<uintptr_t>(scratch) % 64)
    static_cast<std::atomic<int> *>(argv[0])->fetch_add(1);
  std::memset(scratch, 7, reinterpret_cast<int64_t>(argv[1]));
}

static void testScratch() {
  std::atomic<int> misaligned{0};
  for (int64_t bytes : {64, 100, 1 << 20, 8}) {
    void *bufs[] = {&misaligned, reinterpret_cast<void *>(bytes)};
    static int64_t size;
    size = bytes;
    twrt_call([](void **b) { twrt_launch(scratchKernel, b, 50, size); }, bufs,
              2);
  }
  CHECK(misaligned == 0);
}

// Kernel: a denormal must survive a multiplication by one.
static void denormalKernel(void **argv, int64_t begin, int64_t end, char *) {
  volatile float tiny = std::numeric_limits<float>::denorm_min(), one = 1;
  for (int64_t task = begin; task < end; ++task)
    static_cast<float *>(argv[0])[task] = tiny * one;
}

static void testFloatingPoint() {
#if defined(__x86_64__)
  unsigned old = __builtin_ia32_stmxcsr();
  __builtin_ia32_ldmxcsr(old | 0x8040); // flush to zero, denormals are zero
  std::vector<float> results(100);
  void *bufs[] = {results.data()};
  twrt_call([](void **b) { twrt_launch(denormalKernel, b, 100, 0); }, bufs, 2);
  CHECK(__builtin_ia32_stmxcsr() == (old | 0x8040));
  __builtin_ia32_ldmxcsr(old);
  for (float result : results)
    CHECK(result == std::numeric_limits<float>::denorm_min());
#endif
}

static void nestedKernel(void **argv, int64_t begin, int64_t end, char *) {
  for (int64_t task = begin; task < end; ++task)
    twrt_call(countEntry, argv, 2);
}

static void testNestedCall() {
  std::vector<std::atomic<int>> counters(10);
  void *bufs[] = {counters.data(), reinterpret_cast<void *>(10),
                  reinterpret_cast<void *>(1)};
  twrt_call([](void **b) { twrt_launch(nestedKernel, b, 40, 0); }, bufs, 2);
  for (auto &counter : counters)
    CHECK(counter == 40);
}

static void testProfile() {
  std::vector<std::atomic<int>> counters(5);
  void *bufs[] = {counters.data(), reinterpret_cast<void *>(5),
                  reinterpret_cast<void *>(3)};
  twrt_record records[2] = {};
  CHECK(twrt_call_profiled(countEntry, bufs, 2, records, 2) == 3);
  CHECK(records[1].kernel == reinterpret_cast<void *>(countTasks));
  CHECK(records[1].tasks == 5 && records[1].nanoseconds >= 0);
}

// Entries that fail: by an assertion after a launch, for want of memory.
static void failEntry(void **bufs) {
  twrt_alloc(1000); // the end of the call frees it
  twrt_launch(countTasks, bufs, 4, 256);
  twrt_fail("node 'x': no");
}

static void testFailures() {
  std::vector<std::atomic<int>> counters(4);
  void *bufs[] = {counters.data()};
  for (int threads : {1, 2, 2}) {
    CHECK(twrt_call(failEntry, bufs, threads) == -1);
    CHECK(!std::strcmp(twrt_error(), "node 'x': no"));
  }
  CHECK(counters[3] == 3);
  CHECK(runCount(10, 2, 2)); // the team is whole
  CHECK(twrt_call([](void **) { twrt_alloc(int64_t(1) << 60); }, bufs, 1) < 0);
  CHECK(std::strstr(twrt_error(), "out of memory"));
  CHECK(twrt_call([](void **) { twrt_fail_at("index", -7); }, bufs, 1) < 0);
  CHECK(!std::strcmp(twrt_error(), "index: -7"));
  CHECK(twrt_call([](void **) { twrt_size(8, -1); }, bufs, 1) < 0);
  CHECK(twrt_call([](void **) { twrt_size(1 << 30, int64_t(1) << 40); }, bufs,
                  1) < 0);
}

// Hands over a block of its own twice and one of the caller's, each with 8.
static void giveEntry(void **bufs) {
  auto *block = static_cast<int64_t *>(twrt_alloc(8));
  *block = 8;
  twrt_give(bufs, block, block, 8);
  twrt_give(bufs + 2, block, block, 8);
  twrt_give(bufs + 4, bufs[6], bufs[6], 8);
  twrt_free(block);   // handed over: not this call's any more
  twrt_free(bufs[6]); // never was
  void *early = twrt_alloc(twrt_size(8, 4));
  twrt_free(early);
  twrt_alloc(0);
}

static void testResults() {
  int64_t given = 8;
  void *bufs[7] = {};
  bufs[6] = &given;
  CHECK(twrt_call(giveEntry, bufs, 1) == 1);
  for (int i = 0; i < 6; i += 2) {
    CHECK(*static_cast<int64_t *>(bufs[i]) == 8);
    CHECK(reinterpret_cast<uintptr_t>(bufs[i]) % 64 == 0);
    twrt_release(bufs[i + 1]);
  }
}

// Notes where a block of 3 MiB and one of 100 bytes lie, and frees the first.
static void reuseEntry(void **bufs) {
  bufs[0] = twrt_alloc(3 << 20);
  bufs[1] = twrt_alloc(100);
  std::memset(bufs[0], 1, 3 << 20);
  twrt_free(bufs[0]);
  bufs[2] = twrt_alloc((3 << 20) - 5);
}

static void testReuse() {
  void *first[3] = {}, *second[3] = {};
  CHECK(twrt_call(reuseEntry, first, 1) == 1);
  CHECK(first[2] == first[0]);
  CHECK(twrt_call(reuseEntry, second, 1) == 1);
  CHECK(second[0] == first[0] && second[1] == first[1]);
  // Models take turns: calls that ask for nothing or little free no blocks.
  void *third[3] = {};
  CHECK(twrt_call([](void **) {}, nullptr, 1) == 1);
  CHECK(twrt_call([](void **) { twrt_alloc(64); }, nullptr, 1) == 1);
  CHECK(twrt_call(reuseEntry, third, 1) == 1);
  CHECK(third[0] == first[0]);
  // Ever larger blocks: those behind do not pile up.
  CHECK(twrt_call(
            [](void **) {
              for (int64_t size = 1 << 20; size < int64_t(1) << 30; size *= 2)
                twrt_free(twrt_alloc(size));
            },
            first, 1) == 1);
}

/// Units take turns: each adds to what the one before it left, in 10 rounds.
static void turnsProgram(void **argv, int64_t begin, int64_t end, char *) {
  auto *sum = static_cast<int64_t *>(argv[0]); // no atomic: waits order it
  auto *counters = static_cast<char *>(argv[1]);
  for (int64_t round = 0; round < 10; ++round)
    for (int64_t unit = 0; unit < 4; ++unit) {
      if (unit < begin || unit >= end)
        continue;
      int64_t before = unit ? unit - 1 : 3;
      twrt_wait(counters, before, unit ? round + 1 : round);
      *sum = (*sum * 3 + unit) % 1000003;
      twrt_signal(counters, unit);
    }
}

static int64_t runTurns(int threads) {
  static int64_t sum;
  alignas(64) static char counters[4 * 64];
  sum = 1;
  twrt_call(
      [](void **) {
        void *argv[] = {&sum, counters};
        for (int run = 0; run < 4; ++run)
          twrt_program(turnsProgram, argv, 4, 0, counters, 4);
      },
      nullptr, threads);
  return sum;
}

static void testPrograms() {
  int64_t alone = runTurns(1);
  for (int threads : {2, 3, 8})
    CHECK(runTurns(threads) == alone);
}

static double cpuMilliseconds() {
  timespec used;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return used.tv_sec * 1e3 + used.tv_nsec * 1e-6;
}

static constexpr int kLate = 60; // milliseconds

/// Unit 0 comes late; unit 1 waits for it and says how long it kept its core.
static void lateProgram(void **argv, int64_t begin, int64_t end, char *) {
  auto *counters = static_cast<char *>(argv[1]);
  for (int64_t unit = begin; unit < end; ++unit) {
    if (unit == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(kLate));
      twrt_signal(counters, 0);
      continue;
    }
    double start = cpuMilliseconds();
    twrt_wait(counters, 0, 1);
    *static_cast<double *>(argv[0]) = cpuMilliseconds() - start;
  }
}

/// A task that ends late.
static void lateTask(void **, int64_t begin, int64_t, char *) {
  if (begin > 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(kLate));
}

/// Who waits for a thread that does not run leaves its core to others.
static void testLateThreads() {
  static double used, launched;
  alignas(64) static char counters[64];
  used = launched = 0;
  twrt_call(
      [](void **) {
        void *argv[] = {&used, counters};
        twrt_program(lateProgram, argv, 2, 0, counters, 1);
        double start = cpuMilliseconds();
        twrt_launch(lateTask, nullptr, 2, 0);
        launched = cpuMilliseconds() - start;
      },
      nullptr, 2);
  CHECK(used < kLate / 3.0);
  CHECK(launched < kLate / 3.0);
}

static void nothing(void **, int64_t, int64_t, char *) {}

static double launchNanoseconds(int threads, int64_t launches) {
  static int64_t count;
  count = launches;
  auto start = std::chrono::steady_clock::now();
  twrt_call(
      [](void **b) {
        for (int64_t i = 0; i < count; ++i)
          twrt_launch(nothing, b, 2, 0);
      },
      nullptr, threads);
  std::chrono::duration<double, std::nano> time =
      std::chrono::steady_clock::now() - start;
  return time.count() / static_cast<double>(launches);
}

int main() {
  CHECK(twrt_abi_version() == TWRT_ABI_VERSION);
  CHECK(twrt_default_threads() >= 1);
  std::atomic<int> outside[3] = {};
  void *argv[] = {outside};
  twrt_launch(countTasks, argv, 3, 256); // no call: this thread alone
  CHECK(outside[0] == 1 && outside[2] == 1);
  testEachTaskOnce();
  testTurns();
  testTurnsOfTeams();
  testConcurrentCalls();
  testFork();
  testScratch();
  testFloatingPoint();
  testNestedCall();
  testProfile();
  testFailures();
  testResults();
  testReuse();
  testPrograms();
  testLateThreads();
  launchNanoseconds(2, 1000);
  for (int threads : {1, 2})
    std::printf("launch_ns threads=%d %.0f\n", threads,
                launchNanoseconds(threads, 200000));
  if (failures == 0)
    std::printf("ok\n");
  return failures != 0;
}

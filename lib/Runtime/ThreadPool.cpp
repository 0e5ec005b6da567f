//===----------------------------------------------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ThreadPool.h"
#include "Cpus.h"
#include "FloatingPoint.h"
#include "Scratch.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <mutex>
#include <new>
#include <pthread.h>

using namespace tilewright::runtime;

namespace {

constexpr int kMaxThreads = 1024;

uint32_t nextOf(uint64_t ticket) { return static_cast<uint32_t>(ticket); }
uint32_t endOf(uint64_t ticket) { return ticket >> 32; }

std::mutex &poolMutex() {
  static std::mutex mutex;
  return mutex;
}

Pool *thePool = nullptr;

} // namespace

//===----------------------------------------------------------------------===//
// Helper
//===----------------------------------------------------------------------===//

/// One thread of the pool. It waits for a team, serves it until that closes,
/// and waits again.
struct alignas(64) tilewright::runtime::Helper {
  /// Teams that it was given so far.
  Counter<uint32_t> teams;
  Team *team = nullptr;
  uint32_t member = 0;
  uint32_t seen = 0;
  uint32_t handled = 0;

  void assign(Team *newTeam, uint32_t newMember, uint32_t generation) {
    team = newTeam;
    member = newMember;
    seen = generation;
    teams.add(1);
  }

  void awaitTeam() {
    handled = teams.await(kIdleSpins,
                          [this](uint32_t given) { return given != handled; });
  }

  void serve() {
    for (;;) {
      seen = team->generation.await(
          kIdleSpins, [this](uint32_t now) { return now != seen; });
      if (team->closed.load(std::memory_order_acquire))
        return;
      team->work(member);
    }
  }

  [[noreturn]] void run() {
    resetFloatingPoint();
    for (;;) {
      awaitTeam();
      serve();
      team->done.add(1);
    }
  }

  static void *main(void *self) { static_cast<Helper *>(self)->run(); }
};

//===----------------------------------------------------------------------===//
// Team
//===----------------------------------------------------------------------===//

void Team::runChunk(uint32_t chunk) {
  int64_t begin = job.tasks * chunk / job.chunks;
  int64_t end = job.tasks * (int64_t(chunk) + 1) / job.chunks;
  job.fn(job.argv, begin, end, threadScratch().get(job.scratchBytes));
}

uint32_t Team::finish(Share &share) {
  uint32_t count = 0;
  // A look first: taking a chunk takes the cache line from its owner.
  uint64_t seen = share.ticket.load(std::memory_order_relaxed);
  while (nextOf(seen) < endOf(seen)) {
    uint64_t mine = share.ticket.fetch_add(1, std::memory_order_acq_rel);
    // Only the holder of a chunk may read `job`: its launch cannot end, and the
    // next one cannot overwrite `job`, before this chunk is counted as done.
    if (nextOf(mine) >= endOf(mine))
      break;
    uint32_t next = nextOf(mine), begin = share.begin;
    runChunk(job.back ? begin + placeFromBack(next - begin, endOf(mine) - begin)
                      : next);
    ++count;
    seen = mine + 1;
  }
  return count;
}

void Team::work(uint32_t self) {
  size_t members = shares.size();
  for (size_t number = 0; number < members; ++number)
    if (uint32_t count = finish(shares[(self + number) % members]))
      done.add(count);
}

void Team::deal(uint32_t chunks) {
  uint64_t members = shares.size();
  for (uint64_t member = 0; member < members; ++member) {
    uint64_t begin = chunks * member / members;
    uint64_t end = chunks * (member + 1) / members;
    shares[member].begin = begin;
    shares[member].ticket.store(end << 32 | begin, std::memory_order_release);
  }
}

void Team::launch(const Job &newJob, int64_t chunksPerMember) {
  auto chunks =
      static_cast<uint32_t>(std::min(newJob.tasks, size() * chunksPerMember));
  job = newJob;
  job.chunks = chunks;
  done.reset();
  deal(chunks);
  generation.add(1);
  work(/*self=*/0);
  done.await(kMeetingSpins, [=](uint32_t now) { return now == chunks; });
}

//===----------------------------------------------------------------------===//
// Pool
//===----------------------------------------------------------------------===//

Pool &Pool::get() {
  std::lock_guard<std::mutex> lock(poolMutex());
  if (thePool)
    return *thePool;
  static bool registered = false;
  if (!registered) {
    // Threads do not survive a fork: the child forgets the pool (its memory is
    // shared copy-on-write, its threads are gone) and makes its own when asked.
    pthread_atfork([] { poolMutex().lock(); }, [] { poolMutex().unlock(); },
                   [] {
                     new (&poolMutex()) std::mutex;
                     thePool = nullptr;
                   });
    registered = true;
  }
  return *(thePool = new Pool);
}

Helper *Pool::startHelper() {
  auto *helper = new Helper;
  // Signals belong to the threads of the user.
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  pthread_t thread;
  bool failed = pthread_create(&thread, nullptr, Helper::main, helper) != 0;
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  if (failed) {
    delete helper;
    return nullptr;
  }
  char name[16];
  std::snprintf(name, sizeof(name), "twrt-%d", count++);
  pthread_setname_np(thread, name);
  pthread_detach(thread);
  return helper;
}

Team *Pool::acquire(int threads) {
  int wanted = std::min(threads, kMaxThreads) - 1;
  if (wanted < 1)
    return nullptr;
  std::lock_guard<std::mutex> lock(poolMutex());
  // All calls together get the helpers that one may have: more threads than
  // CPUs would only take turns. Who asks for more than the CPUs gets it, once.
  static const int cpus = availableCpus();
  int limit = std::max(wanted, cpus - 1);
  int available = static_cast<int>(idle.size()) + std::max(0, limit - count);
  for (Team *team : resting)
    available += team->size() - 1;
  int helpers = std::min(wanted, available);
  if (helpers == 0)
    return nullptr;
  // The usual case: the same call again. Its team still stands ready.
  for (Team *&team : resting) {
    if (team->size() != helpers + 1)
      continue;
    std::swap(team, resting.back());
    Team *found = resting.back();
    resting.pop_back();
    return found;
  }
  return assemble(helpers);
}

Team *Pool::assemble(int helpers) {
  while (static_cast<int>(idle.size()) < helpers && !resting.empty()) {
    dissolve(resting.back());
    resting.pop_back();
  }
  while (static_cast<int>(idle.size()) < helpers) {
    Helper *helper = startHelper();
    if (!helper)
      break; // No more threads from the system: fewer will do.
    idle.push_back(helper);
  }
  if (idle.empty())
    return nullptr;
  Team *team = empty.empty() ? new Team : empty.back();
  if (!empty.empty())
    empty.pop_back();
  team->closed.store(false, std::memory_order_relaxed);
  uint32_t generation = team->generation.value();
  auto members = std::min<size_t>(helpers, idle.size()) + 1;
  team->shares = std::vector<Team::Share>(members);
  for (uint32_t member = 1; member < members; ++member) {
    team->helpers.push_back(idle.back());
    idle.back()->assign(team, member, generation);
    idle.pop_back();
  }
  return team;
}

void Pool::release(Team *team) {
  std::lock_guard<std::mutex> lock(poolMutex());
  resting.push_back(team);
}

void Pool::dissolve(Team *team) {
  auto helpers = static_cast<uint32_t>(team->helpers.size());
  team->done.reset();
  team->closed.store(true, std::memory_order_release);
  team->generation.add(1);
  team->done.await(kMeetingSpins, [=](uint32_t now) { return now == helpers; });
  idle.insert(idle.end(), team->helpers.begin(), team->helpers.end());
  team->helpers.clear();
  empty.push_back(team);
}

int Pool::started() {
  std::lock_guard<std::mutex> lock(poolMutex());
  return count;
}

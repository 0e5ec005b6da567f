//===----------------------------------------------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Receives and relays that have been started, and when they can be done.
//
//===----------------------------------------------------------------------===//

#include "lib/Sim/CoreMesh/Timing/Engine.h"
#include "lib/Sim/CoreMesh/Timing/Ops.h"

#include <algorithm>

using namespace twmesh::timing;

void Engine::post(const Instruction &instruction) {
  posted.push_back({&instruction, loops, now});
  if (instruction.op == Op::Recv)
    retry(false);
}

/// Whether a core of `one` has something older to receive on the route.
bool Engine::behind(const Posted &one,
                    const std::vector<const Posted *> &others) {
  const Masks &ours = layout_.masks(*one.instruction, one.loops);
  for (const Posted *other : others) {
    if (other->instruction->incoming != one.instruction->incoming)
      continue;
    const Masks &theirs = layout_.masks(*other->instruction, other->loops);
    for (int64_t y = 0; y < config.height; ++y)
      if (layout_.both(ours[y], theirs[y])->count)
        return true;
  }
  return false;
}

/// Does posted receives and relays until no more can be. Relays wait for each
/// other and for what is sent below them, so that they are done last.
void Engine::retry(bool relays) {
  while (!posted.empty())
    if (!retryReceives() && !(relays && retryRelays()))
      break;
}

bool Engine::retryReceives() {
  bool progress = false;
  std::vector<const Posted *> waiting;
  for (auto it = posted.begin(); it != posted.end();) {
    bool done = it->instruction->op == Op::Recv &&
                (waiting.empty() || !behind(*it, waiting)) && recv(*it);
    progress |= done;
    if (done) {
      it = posted.erase(it);
      // Others have moved.
      waiting.clear();
      for (auto other = posted.begin(); other != it; ++other)
        waiting.push_back(&*other);
    } else {
      waiting.push_back(&*it);
      ++it;
    }
  }
  return progress;
}

/// Does all relays of one axis together that have what they need.
bool Engine::retryRelays() {
  for (bool alongX : {true, false}) {
    std::vector<Relayed> group;
    std::vector<const Posted *> waiting;
    for (const Posted &one : posted) {
      const Instruction &instruction = *one.instruction;
      if (instruction.op == Op::Relay && !behind(one, waiting) &&
          program.routes[instruction.incoming].alongX == alongX)
        group.push_back({&one,
                         &layout_.masks(instruction, one.loops),
                         &layout_.paths(instruction, one.loops),
                         {},
                         {},
                         {},
                         {}});
      waiting.push_back(&one);
    }
    while (!group.empty() && !relay(group)) {
      auto missing = [](const Relayed &one) { return one.missing; };
      group.erase(std::remove_if(group.begin(), group.end(), missing),
                  group.end());
    }
    if (group.empty())
      continue;
    auto isDone = [&](const Posted &one) {
      return std::any_of(
          group.begin(), group.end(),
          [&](const Relayed &relayed) { return relayed.posted == &one; });
    };
    std::deque<Posted> rest;
    for (Posted &one : posted)
      if (!isDone(one))
        rest.push_back(std::move(one));
    posted.swap(rest);
    return true;
  }
  return false;
}

//===----------------------------------------------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Loops, and how they are left early.
//
// What a turn of a loop does to the clocks is a function that commutes with
// adding the same to all of them. Where no expression in the body depends on
// the loop's index, that function is the same in each turn: once the state of
// the machine is one that it was in before, later by some shift, all turns from
// then on repeat what happened in between, to the tick.
//
//===----------------------------------------------------------------------===//

#include "lib/Sim/CoreMesh/Timing/Engine.h"
#include "lib/Sim/CoreMesh/Timing/Ops.h"

#include <algorithm>
#include <stdexcept>

using namespace twmesh::timing;

/// Turns whose states are kept.
static constexpr size_t mostSnapshots = 40;

void Engine::runLoop(const Instruction &loop) {
  if (loop.body.empty())
    return; // turns of nothing are not counted either
  int dim = 2 + static_cast<int>(loops.size());
  bool watch = config.period && config.share && !depends(loop.body, dim);
  std::deque<std::pair<int64_t, Snapshot>> before;
  loops.push_back(0);
  for (int64_t turn = 0; turn < loop.count; ++turn) {
    loops.back() = turn;
    runBody(loop.body);
    if (!watch || turn + 1 == loop.count)
      continue;
    Snapshot here = snapshot();
    for (auto &[earlier, seen] : before) {
      Cell shift;
      if (!repeats(seen, here, shift))
        continue;
      int64_t period = turn - earlier;
      int64_t times = (loop.count - 1 - turn) / period;
      leap(seen, shift, times);
      turn += times * period;
      extrapolated |= times > 0;
      watch = false;
      break;
    }
    before.emplace_back(turn, std::move(here));
    if (before.size() > mostSnapshots)
      before.pop_front();
  }
  loops.pop_back();
}

/// Whether who takes part in a body, or where paths go, depends on a loop.
bool Engine::depends(const std::vector<int> &body, int dim) const {
  auto uses = [&](const std::vector<Expression> &expressions) {
    return std::any_of(expressions.begin(), expressions.end(),
                       [&](const Expression &one) { return one.uses(dim); });
  };
  for (int number : body) {
    const Instruction &one = program.instructions[number];
    if (depends(one.body, dim) || uses(one.cores.atLeastZero) ||
        uses(one.cores.zero))
      return true;
    for (int route : {one.incoming, one.outgoing})
      if (route >= 0 && program.routes[route].source.uses(dim))
        return true;
  }
  return false;
}

/// All clocks but those of cores.
std::vector<Clocks *> Engine::engines() {
  std::vector<Clocks *> all = {&leaving.from, &leaving.until, &entering.from,
                               &entering.until};
  for (auto *clocksOf : {&tokens, &sendFree, &recvFree, &combined})
    for (Clocks &clocks : *clocksOf)
      all.push_back(&clocks);
  return all;
}

/// All rows of the state.
template <typename Visit> void Engine::visit(const Visit &visit) {
  for (Row &row : now)
    visit(row);
  for (Clocks *clocks : engines())
    for (Row &row : *clocks)
      visit(row);
  for (std::deque<Event> &queue : queues)
    for (Event &event : queue)
      for (auto *clocks : {&event.first, &event.last})
        for (Row &row : *clocks)
          visit(row);
  for (Posted &one : posted)
    for (Row &row : one.now)
      visit(row);
}

Engine::Snapshot Engine::snapshot() {
  Snapshot taken = {0, {}, {}, {}};
  Cell origin = now[0].base;
  auto mix = [&](uint64_t value) {
    taken.hash = (taken.hash ^ value) * 0x9E3779B97F4A7C15u;
    taken.hash ^= taken.hash >> 31;
  };
  visit([&](const Row &row) {
    taken.rows.push_back(row);
    mix(word(row.shape.get()));
    if (!row.none())
      mix((row.base - origin).time);
  });
  for (const Clocks *clocks : engines())
    taken.tags.push_back(clocks->empty() ? nullptr : this);
  for (const std::deque<Event> &queue : queues) {
    taken.tags.push_back(nullptr);
    for (const Event &event : queue)
      taken.tags.push_back(event.paths);
  }
  for (const Posted &one : posted)
    taken.tags.push_back(one.instruction);
  for (const Paths *paths : layout_.all())
    taken.traffic.push_back(paths->traffic);
  return taken;
}

bool Engine::repeats(const Snapshot &before, const Snapshot &after,
                     Cell &shift) const {
  if (before.hash != after.hash || before.rows.size() != after.rows.size() ||
      before.tags != after.tags)
    return false;
  shift = after.rows[0].base - before.rows[0].base;
  for (size_t row = 0; row < before.rows.size(); ++row)
    if (!(before.rows[row].shifted(shift) == after.rows[row]))
      return false;
  return true;
}

void Engine::leap(const Snapshot &before, const Cell &shift, int64_t times) {
  if (shift.time > 0 && times > -never / 2 / shift.time)
    throw std::runtime_error("a loop of the program takes more than 2^60 "
                             "ticks: let it turn less often");
  Cell by = {shift.time * times, shift.compute * times, shift.overhead * times,
             shift.moving * times};
  visit([&](Row &row) { row = row.shifted(by); });
  const std::vector<Paths *> &all = layout_.all();
  for (size_t one = 0; one < all.size(); ++one) {
    int64_t then = one < before.traffic.size() ? before.traffic[one] : 0;
    all[one]->traffic += times * (all[one]->traffic - then);
  }
}

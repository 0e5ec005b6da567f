//===----------------------------------------------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Relays: software stages of streaming reductions, scanned along their chains.
//
//===----------------------------------------------------------------------===//

#include "lib/Sim/CoreMesh/Timing/Engine.h"
#include "lib/Sim/CoreMesh/Timing/Ops.h"

#include <algorithm>
#include <stdexcept>

using namespace twmesh::timing;

[[noreturn]] static void failCycle(const char *what, int64_t at) {
  throw std::runtime_error("deadlock: the relay in " + std::string(what) + " " +
                           std::to_string(at) +
                           " waits, around a circle of relays, for itself");
}

/// Cores of a row, each behind the relay that it receives from.
const Ints &Engine::chainOrder(const Mask *mask, const Line *line) {
  auto [found, added] = orders.try_emplace({mask, line});
  if (!added)
    return found->second;
  std::vector<char> state(config.width, 0);
  Ints way;
  for (int64_t x = 0; x < config.width; ++x) {
    int64_t at = x;
    while (at >= 0 && mask->on[at] && state[at] == 0) {
      state[at] = 1;
      way.push_back(at);
      at = line->valid->on[at] ? line->source[at] : -1;
    }
    if (at >= 0 && mask->on[at] && state[at] == 1)
      failCycle("column", at);
    for (; !way.empty(); way.pop_back()) {
      state[way.back()] = 2;
      found->second.push_back(way.back());
    }
  }
  return found->second;
}

/// Rows that take part, each behind the one that it receives from.
std::vector<int64_t> Engine::rowOrder(const Masks &masks,
                                      const Paths &paths) const {
  std::vector<char> state(config.height, 0);
  std::vector<int64_t> way, order;
  for (int64_t y = 0; y < config.height; ++y) {
    int64_t at = y;
    while (at >= 0 && masks[at]->count && state[at] == 0) {
      state[at] = 1;
      way.push_back(at);
      at = paths.alongX ? -1 : paths.from[at];
    }
    if (at >= 0 && masks[at]->count && state[at] == 1)
      failCycle("row", at);
    for (; !way.empty(); way.pop_back()) {
      state[way.back()] = 2;
      order.push_back(way.back());
    }
  }
  return order;
}

bool Engine::relay(const Posted &one) {
  const Instruction &instruction = *one.instruction;
  std::vector<Part> parts;
  collect(one, false, parts);
  const Masks &masks = layout_.masks(instruction, one.loops);
  Paths &paths = layout_.paths(instruction, one.loops);
  bool chained = instruction.incoming == instruction.outgoing;
  Event event = {&paths, -1, instruction.outgoing, instruction.ticks, {}, {}};
  Clocks start(config.height), taken(config.height);
  // Until all have their message, the engines stay as they are.
  Clocks *engines[] = {&recvFree[instruction.incoming],
                       &sendFree[instruction.outgoing],
                       &tokens[instruction.token]};
  Clocks kept[] = {*engines[0], *engines[1], *engines[2]};
  auto merge = [&](Row &into, const Row &from) {
    rows_.apply({OpLater}, {&into, &from}, {&into},
                [&](const Cell *const *in, Cell *const *out) {
                  for (size_t x = 0; x < rows_.width; ++x)
                    out[0][x] = later(in[0][x], in[1][x]);
                });
  };
  for (int64_t y : chained ? rowOrder(masks, paths)
                           : rowOrder(masks, Paths{true, {}, {}, {}, {}})) {
    Row last, missing;
    for (const Part &part : parts) {
      merge(taken[y], part.taken[y]);
      merge(last, part.takenLast[y]);
    }
    Row first = taken[y];
    bool scan = chained && paths.alongX;
    if (chained && !paths.alongX && paths.lines[y]->valid->count) {
      if (paths.from[y] < 0)
        throw std::runtime_error(
            "a chain of relays along columns whose sources differ from column "
            "to column has no timing yet: let all columns reduce alike");
      Row passed = arrivals(event, start, y);
      rows_.apply({OpTake}, {&first, &passed}, {&first},
                  [&](const Cell *const *in, Cell *const *out) {
                    for (size_t x = 0; x < rows_.width; ++x)
                      out[0][x] = happens(in[0][x]) ? in[0][x] : in[1][x];
                  });
    }
    relayRow(one, y, first, last, scan ? paths.lines[y] : nullptr, start[y],
             missing);
    if (missing.none())
      continue;
    for (size_t engine = 0; engine < 3; ++engine)
      *engines[engine] = kept[engine];
    return false;
  }
  paths.traffic += instruction.wavelets;
  deliver(event, start, chained ? &masks : nullptr, &taken);
  commit(parts, instruction.incoming);
  queues[instruction.outgoing].push_back(std::move(event));
  return true;
}

/// Relays of a row; with a chain, each may receive from another of the row.
void Engine::relayRow(const Posted &one, int64_t y, const Row &taken,
                      const Row &takenLast, const Line *chain, Row &start,
                      Row &missing) {
  const Instruction &instruction = *one.instruction;
  const Mask *mask = layout_.masks(instruction, one.loops)[y];
  int64_t ticks = instruction.ticks;
  Row &receiver = at(recvFree[instruction.incoming], y);
  Row &sender = at(sendFree[instruction.outgoing], y);
  Row &token = at(tokens[instruction.token], y);
  rows_.apply({OpRelay, word(mask), word(chain), uint64_t(ticks)},
              {&one.now[y], &receiver, &sender, &token, &taken, &takenLast},
              {&start, &receiver, &sender, &token, &missing},
              [&](const Cell *const *in, Cell *const *out) {
                for (size_t x = 0; x < rows_.width; ++x)
                  for (size_t engine = 1; engine < 4; ++engine)
                    out[engine][x] = in[engine][x];
                auto pass = [&](int64_t x) {
                  Cell arrived = in[4][x];
                  if (!happens(arrived) && chain && chain->valid->on[x])
                    arrived = moved(out[0][chain->source[x]], chain->ticks[x]);
                  if (!happens(arrived)) {
                    out[4][x] = Cell();
                    return;
                  }
                  Cell begin = later(later(in[0][x], in[1][x]), in[2][x]);
                  begin = later(begin, arrived);
                  // No faster than what comes in.
                  begin = later(begin, after(in[5][x], -ticks));
                  out[0][x] = begin;
                  out[1][x] = out[2][x] = moved(begin, ticks);
                  out[3][x] = later(in[3][x], out[1][x]);
                };
                if (chain)
                  for (int64_t x : chainOrder(mask, chain))
                    pass(x);
                else
                  for (size_t x = 0; x < rows_.width; ++x)
                    if (mask->on[x])
                      pass(x);
              });
}

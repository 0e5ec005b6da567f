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
#include <functional>
#include <stdexcept>

using namespace twmesh::timing;

[[noreturn]] static void failCycle(const char *what, int64_t at) {
  throw std::runtime_error("deadlock: the relay in " + std::string(what) + " " +
                           std::to_string(at) +
                           " waits, around a circle of relays, for itself");
}

/// What one relay does at one core.
static Cell passOn(const Cell &now, const Cell &receiver, const Cell &sender,
                   const Cell &arrived, const Cell &last, int64_t ticks) {
  Cell begin = later(later(later(now, receiver), sender), arrived);
  // No faster than what comes in.
  return later(begin, after(last, -ticks));
}

/// Does a group of relays of one axis; where some have not got their message,
/// marks them and leaves all as it was.
bool Engine::relay(std::vector<Relayed> &group) {
  std::map<int, Clocks> receivers, senders, marks;
  std::map<int, std::deque<Event>> events;
  for (Relayed &one : group) {
    const Instruction &instruction = *one.posted->instruction;
    receivers.try_emplace(instruction.incoming, recvFree[instruction.incoming]);
    senders.try_emplace(instruction.outgoing, sendFree[instruction.outgoing]);
    marks.try_emplace(instruction.token, tokens[instruction.token]);
    events.try_emplace(instruction.incoming, queues[instruction.incoming]);
    std::vector<Part> parts;
    collect(*one.posted, false, parts);
    for (Clocks *clocks : {&one.taken, &one.takenLast, &one.start, &one.first})
      clocks->assign(config.height, Row());
    for (Part &part : parts)
      for (int64_t y = 0; y < config.height; ++y)
        for (auto [into, from] : {std::pair(&one.taken, &part.taken),
                                  std::pair(&one.takenLast, &part.takenLast)})
          if (!(*from)[y].none())
            rows_.apply({OpLater}, {&(*into)[y], &(*from)[y]}, {&(*into)[y]},
                        [&](const Cell *const *in, Cell *const *out) {
                          for (size_t x = 0; x < rows_.width; ++x)
                            out[0][x] = later(in[0][x], in[1][x]);
                        });
    commit(parts, instruction.incoming);
    one.missing = false;
  }
  if (group.front().paths->alongX)
    for (int64_t y = 0; y < config.height; ++y)
      relayRow(group, y);
  else
    relayRows(group);
  bool failed = std::any_of(group.begin(), group.end(),
                            [](const Relayed &one) { return one.missing; });
  if (failed) {
    for (auto &[route, clocks] : receivers)
      recvFree[route] = std::move(clocks);
    for (auto &[route, clocks] : senders)
      sendFree[route] = std::move(clocks);
    for (auto &[token, clocks] : marks)
      tokens[token] = std::move(clocks);
    for (auto &[route, queue] : events)
      queues[route] = std::move(queue);
    return false;
  }
  for (Relayed &one : group) {
    const Instruction &instruction = *one.posted->instruction;
    one.paths->traffic += instruction.wavelets;
    if (std::any_of(one.first.begin(), one.first.end(),
                    [](const Row &row) { return !row.none(); }))
      queues[instruction.outgoing].push_back({one.paths,
                                              -1,
                                              instruction.outgoing,
                                              instruction.ticks,
                                              one.first,
                                              {}});
  }
  return true;
}

/// Relays along x, of one row: each may receive from others of the row.
void Engine::relayRow(std::vector<Relayed> &group, int64_t y) {
  std::vector<const Row *> in;
  std::vector<Row *> out;
  std::vector<uint64_t> what = {OpRelay};
  std::vector<Row> missing(group.size());
  size_t active = 0;
  for (size_t i = 0; i < group.size(); ++i) {
    Relayed &one = group[i];
    const Instruction &instruction = *one.posted->instruction;
    active += (*one.masks)[y]->count > 0;
    what.push_back(word((*one.masks)[y]));
    what.push_back(word(one.paths->lines[y]));
    what.push_back(instruction.ticks);
    what.push_back(instruction.incoming);
    what.push_back(instruction.outgoing);
    // Relays share engines; all see, and leave, the same rows.
    Row *engines[] = {&at(recvFree[instruction.incoming], y),
                      &at(sendFree[instruction.outgoing], y),
                      &at(tokens[instruction.token], y)};
    for (Row *row : engines) {
      in.push_back(row);
      out.push_back(row);
    }
    in.insert(in.end(),
              {&one.posted->now[y], &one.taken[y], &one.takenLast[y]});
    out.insert(out.end(), {&one.start[y], &one.first[y], &missing[i]});
  }
  if (!active)
    return;
  // Which of the rows before is the same one.
  auto firstOf = [&](size_t place) {
    return std::find(in.begin(), in.end(), in[place]) - in.begin();
  };
  constexpr size_t each = 6;
  for (size_t i = 0; i < group.size(); ++i)
    what.push_back(firstOf(each * i + 2));
  rows_.apply(what, in, out, [&](const Cell *const *rows, Cell *const *made) {
    std::vector<std::vector<char>> state(group.size()), used(group.size());
    for (size_t i = 0; i < group.size(); ++i) {
      state[i].assign(rows_.width, 0);
      used[i].assign(rows_.width, 0);
      for (size_t engine = 0; engine < 3; ++engine)
        std::copy_n(rows[each * i + engine], rows_.width,
                    made[each * i + engine]);
    }
    std::function<void(size_t, int64_t)> pass = [&](size_t i, int64_t x) {
      if (state[i][x] == 1)
        failCycle("column", x);
      if (state[i][x] == 2)
        return;
      state[i][x] = 1;
      const Instruction &mine = *group[i].posted->instruction;
      Cell arrived = rows[each * i + 4][x];
      for (size_t j = 0; j < group.size() && !happens(arrived); ++j) {
        const Line &line = *group[j].paths->lines[y];
        if (group[j].posted->instruction->outgoing != mine.incoming ||
            !line.valid->on[x] || !(*group[j].masks)[y]->on[line.source[x]])
          continue;
        pass(j, line.source[x]);
        const Cell &start = made[each * j + 3][line.source[x]];
        if (happens(start)) {
          arrived = moved(start, line.ticks[x]);
          used[j][x] = 1;
        }
      }
      state[i][x] = 2;
      if (!happens(arrived)) {
        made[each * i + 5][x] = Cell();
        return;
      }
      Cell &receiver = made[firstOf(each * i)][x];
      Cell &sender = made[firstOf(each * i + 1)][x];
      Cell &token = made[firstOf(each * i + 2)][x];
      Cell begin = passOn(rows[each * i + 3][x], receiver, sender, arrived,
                          rows[each * i + 5][x], mine.ticks);
      made[each * i + 3][x] = begin;
      receiver = sender = moved(begin, mine.ticks);
      token = later(token, receiver);
    };
    for (size_t i = 0; i < group.size(); ++i)
      for (size_t x = 0; x < rows_.width; ++x)
        if ((*group[i].masks)[y]->on[x])
          pass(i, x);
    for (size_t i = 0; i < group.size(); ++i) {
      const Line &line = *group[i].paths->lines[y];
      for (size_t x = 0; x < rows_.width; ++x) {
        for (size_t engine = 0; engine < 3; ++engine)
          made[each * i + engine][x] = made[firstOf(each * i + engine)][x];
        if (!line.valid->on[x] || used[i][x])
          continue;
        const Cell &start = made[each * i + 3][line.source[x]];
        if (happens(start))
          made[each * i + 4][x] = moved(start, line.ticks[x]);
      }
    }
  });
  for (size_t i = 0; i < group.size(); ++i)
    group[i].missing |= !missing[i].none();
}

/// Relays along y: rows as wholes, each behind those that it receives from.
void Engine::relayRows(std::vector<Relayed> &group) {
  std::vector<std::vector<char>> state(group.size(),
                                       std::vector<char>(config.height, 0));
  for (Relayed &one : group) {
    for (int64_t y = 0; y < config.height; ++y)
      if (one.paths->from[y] < 0 && one.paths->lines[y]->valid->count)
        throw std::runtime_error(
            "relays along columns whose sources differ from column to column "
            "have no timing: let all columns pass on alike");
  }
  for (size_t i = 0; i < group.size(); ++i)
    for (int64_t y = 0; y < config.height; ++y)
      if ((*group[i].masks)[y]->count)
        passRow(group, i, y, state);
  // What nobody of the group has taken stays for others.
  for (Relayed &one : group) {
    Event sent = {one.paths, -1, 0, 0, {}, {}};
    for (int64_t y = 0; y < config.height; ++y) {
      Row arrived = arrivals(sent, one.start, y), used = one.first[y];
      rows_.apply({OpDeliver}, {&arrived, &used}, {&one.first[y]},
                  [&](const Cell *const *in, Cell *const *out) {
                    for (size_t x = 0; x < rows_.width; ++x)
                      if (!happens(in[1][x]))
                        out[0][x] = in[0][x];
                  });
    }
  }
}

/// One row of one relay. Until all are done, `first` of another says what of it
/// was taken.
void Engine::passRow(std::vector<Relayed> &group, size_t index, int64_t y,
                     std::vector<std::vector<char>> &state) {
  if (state[index][y] == 1)
    failCycle("row", y);
  if (state[index][y] == 2)
    return;
  state[index][y] = 1;
  Relayed &one = group[index];
  const Instruction &mine = *one.posted->instruction;
  const Mask *mask = (*one.masks)[y];
  Row arrived = one.taken[y];
  for (size_t j = 0; j < group.size(); ++j) {
    Relayed &other = group[j];
    int64_t from = other.paths->from[y];
    if (other.posted->instruction->outgoing != mine.incoming || from < 0 ||
        !(*other.masks)[from]->count ||
        !layout_.both(mask, other.paths->lines[y]->valid)->count)
      continue;
    passRow(group, j, from, state);
    Row passed = arrivals({other.paths, -1, 0, 0, {}, {}}, other.start, y);
    rows_.apply({OpTake, word(mask)}, {&arrived, &passed, &other.first[y]},
                {&arrived, &other.first[y]},
                [&](const Cell *const *in, Cell *const *out) {
                  for (size_t x = 0; x < rows_.width; ++x) {
                    bool take = mask->on[x] && !happens(in[0][x]);
                    out[0][x] = take ? in[1][x] : in[0][x];
                    out[1][x] = take && happens(in[1][x]) ? in[1][x] : in[2][x];
                  }
                });
  }
  state[index][y] = 2;
  int64_t ticks = mine.ticks;
  Row &receiver = at(recvFree[mine.incoming], y);
  Row &sender = at(sendFree[mine.outgoing], y);
  Row &token = at(tokens[mine.token], y);
  Row missing;
  rows_.apply({OpPass, word(mask), uint64_t(ticks)},
              {&one.posted->now[y], &receiver, &sender, &token, &arrived,
               &one.takenLast[y]},
              {&one.start[y], &receiver, &sender, &token, &missing},
              [&](const Cell *const *in, Cell *const *out) {
                for (size_t x = 0; x < rows_.width; ++x) {
                  for (size_t engine = 1; engine < 4; ++engine)
                    out[engine][x] = in[engine][x];
                  if (!mask->on[x])
                    continue;
                  if (!happens(in[4][x])) {
                    out[4][x] = Cell();
                    continue;
                  }
                  out[0][x] = passOn(in[0][x], in[1][x], in[2][x], in[4][x],
                                     in[5][x], ticks);
                  out[1][x] = out[2][x] = moved(out[0][x], ticks);
                  out[3][x] = later(in[3][x], out[1][x]);
                }
              });
  one.missing |= !missing.none();
}

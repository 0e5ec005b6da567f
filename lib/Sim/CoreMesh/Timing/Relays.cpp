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
  Ramps leavingBefore = leaving, enteringBefore = entering;
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
            keepLater((*into)[y], (*from)[y]);
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
    leaving = std::move(leavingBefore);
    entering = std::move(enteringBefore);
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

namespace {
/// The relays of one row along x that take part, as one operation.
struct RowScan {
  /// Place of each relay's engines among the rows that go in and out.
  struct Place {
    size_t receiver, sender, token;
  };
  /// As well of their ramps.
  size_t inFrom, inUntil, outFrom, outUntil;
  std::vector<Relayed *> relays;
  std::vector<const Mask *> masks;
  std::vector<const Line *> lines;
  std::vector<Place> places;
  size_t width, engines;
  const Cells *in;
  Cell *const *out;
  std::vector<std::vector<char>> state, used;

  Cell *engine(size_t place) const { return out[place]; }
  Cell now(size_t i, int64_t x) const { return in[engines + 3 * i][x]; }
  Cell taken(size_t i, int64_t x) const { return in[engines + 3 * i + 1][x]; }
  Cell last(size_t i, int64_t x) const { return in[engines + 3 * i + 2][x]; }
  Cell &start(size_t i, int64_t x) const { return out[engines + 3 * i][x]; }
  Cell &first(size_t i, int64_t x) const { return out[engines + 3 * i + 1][x]; }
  Cell &missing(size_t i, int64_t x) const {
    return out[engines + 3 * i + 2][x];
  }

  void run() {
    state.assign(relays.size(), std::vector<char>(width, 0));
    used = state;
    for (size_t one = 0; one < engines; ++one)
      for (size_t x = 0; x < width; ++x)
        out[one][x] = in[one][x];
    for (size_t i = 0; i < relays.size(); ++i)
      for (size_t x = 0; x < width; ++x)
        if (masks[i]->on[x])
          pass(i, x);
    for (size_t i = 0; i < relays.size(); ++i)
      for (size_t x = 0; x < width; ++x)
        if (lines[i]->valid->on[x] && !used[i][x] &&
            happens(start(i, lines[i]->source[x])))
          first(i, x) =
              moved(start(i, lines[i]->source[x]), lines[i]->ticks[x]);
  }

  void pass(size_t i, int64_t x) {
    if (state[i][x] == 1)
      failCycle("column", x);
    if (state[i][x] == 2)
      return;
    state[i][x] = 1;
    const Instruction &mine = *relays[i]->posted->instruction;
    Cell arrived = taken(i, x);
    for (size_t j = 0; j < relays.size() && !happens(arrived); ++j) {
      const Line &line = *lines[j];
      if (relays[j]->posted->instruction->outgoing != mine.incoming ||
          !line.valid->on[x] || !masks[j]->on[line.source[x]])
        continue;
      pass(j, line.source[x]);
      if (happens(start(j, line.source[x]))) {
        arrived = moved(start(j, line.source[x]), line.ticks[x]);
        used[j][x] = 1;
      }
    }
    state[i][x] = 2;
    if (!happens(arrived)) {
      missing(i, x) = Cell();
      return;
    }
    Cell &receiver = engine(places[i].receiver)[x];
    Cell &sender = engine(places[i].sender)[x];
    Cell &token = engine(places[i].token)[x];
    Cell begin =
        passOn(now(i, x), receiver, sender, arrived, last(i, x), mine.ticks);
    begin = takeRamp(engine(inFrom)[x], engine(inUntil)[x], begin, mine.ticks);
    start(i, x) =
        takeRamp(engine(outFrom)[x], engine(outUntil)[x], begin, mine.ticks);
    receiver = sender = moved(start(i, x), mine.ticks);
    token = later(token, receiver);
  }
};
} // namespace

/// Relays along x, of one row: each may receive from others of the row.
void Engine::relayRow(std::vector<Relayed> &group, int64_t y) {
  RowScan scan;
  scan.width = rows_.width;
  std::vector<const Row *> in;
  std::vector<Row *> out;
  std::vector<uint64_t> what = {OpRelay};
  auto place = [&](Clocks &clocks) {
    Row *row = &at(clocks, y);
    size_t known = std::find(out.begin(), out.end(), row) - out.begin();
    if (known == out.size()) {
      out.push_back(row);
      in.push_back(row);
    }
    return known;
  };
  for (Relayed &one : group) {
    const Mask *mask = (*one.masks)[y];
    if (!mask->count)
      continue;
    const Instruction &mine = *one.posted->instruction;
    scan.relays.push_back(&one);
    scan.masks.push_back(mask);
    scan.lines.push_back(one.paths->lines[y]);
    scan.places.push_back({place(recvFree[mine.incoming]),
                           place(sendFree[mine.outgoing]),
                           place(tokens[mine.token])});
    RowScan::Place &engines = scan.places.back();
    for (uint64_t one :
         {word(mask), word(scan.lines.back()), uint64_t(mine.ticks),
          uint64_t(mine.incoming), uint64_t(mine.outgoing), engines.receiver,
          engines.sender, engines.token})
      what.push_back(one);
  }
  if (scan.relays.empty())
    return;
  scan.inFrom = place(entering.from);
  scan.inUntil = place(entering.until);
  scan.outFrom = place(leaving.from);
  scan.outUntil = place(leaving.until);
  scan.engines = in.size();
  std::vector<Row> missing(scan.relays.size());
  for (size_t i = 0; i < scan.relays.size(); ++i) {
    Relayed &one = *scan.relays[i];
    in.push_back(&one.posted->now[y]);
    in.push_back(&one.taken[y]);
    in.push_back(&one.takenLast[y]);
    for (Row *row : {&one.start[y], &one.first[y], &missing[i]})
      out.push_back(row);
  }
  rows_.apply(what, in, out, [&](const Cells *from, Cell *const *to) {
    scan.in = from;
    scan.out = to;
    scan.run();
  });
  for (size_t i = 0; i < scan.relays.size(); ++i)
    scan.relays[i]->missing |= !missing[i].none();
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
      rows_.each(true, {OpDeliver}, {&arrived, &used}, {&one.first[y]},
                 [](const Cells *in, Cell *const *out, size_t x) {
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
    rows_.each(mask->all(), {OpTake, word(mask)},
               {&arrived, &passed, &other.first[y]},
               {&arrived, &other.first[y]},
               [&](const Cells *in, Cell *const *out, size_t x) {
                 bool take = mask->on[x] && !happens(in[0][x]);
                 out[0][x] = take ? in[1][x] : in[0][x];
                 out[1][x] = take && happens(in[1][x]) ? in[1][x] : in[2][x];
               });
  }
  state[index][y] = 2;
  int64_t ticks = mine.ticks;
  Row &receiver = at(recvFree[mine.incoming], y);
  Row &sender = at(sendFree[mine.outgoing], y);
  Row &token = at(tokens[mine.token], y);
  Row &inFrom = at(entering.from, y), &inUntil = at(entering.until, y);
  Row &outFrom = at(leaving.from, y), &outUntil = at(leaving.until, y);
  Row missing;
  // Of what is over before all messages arrive nothing is left.
  static const Row none;
  const Row &now = one.posted->now[y];
  bool all = mask->all() && arrived.whole();
  auto left = [&](const Row &row, const Row &until) {
    return all && arrived.behind(until) ? &none : &row;
  };
  rows_.each(mask->all(), {OpPass, word(mask), uint64_t(ticks)},
             {left(now, now), left(receiver, receiver), left(sender, sender),
              left(token, token), left(inFrom, inUntil), left(inUntil, inUntil),
              left(outFrom, outUntil), left(outUntil, outUntil), &arrived,
              &one.takenLast[y]},
             {&one.start[y], &receiver, &sender, &token, &inFrom, &inUntil,
              &outFrom, &outUntil, &missing},
             [&](const Cells *in, Cell *const *out, size_t x) {
               for (size_t engine = 1; engine < 8; ++engine)
                 out[engine][x] = in[engine][x];
               if (!mask->on[x])
                 return;
               if (!happens(in[8][x])) {
                 out[8][x] = in[0][x];
                 return;
               }
               Cell begin = passOn(in[0][x], in[1][x], in[2][x], in[8][x],
                                   in[9][x], ticks);
               begin = takeRamp(out[4][x], out[5][x], begin, ticks);
               out[0][x] = takeRamp(out[6][x], out[7][x], begin, ticks);
               out[1][x] = out[2][x] = moved(out[0][x], ticks);
               out[3][x] = later(in[3][x], out[1][x]);
             });
  one.missing |= !missing.none();
}

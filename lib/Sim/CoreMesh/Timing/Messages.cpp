//===----------------------------------------------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Messages: sent, on their way, received.
//
//===----------------------------------------------------------------------===//

#include "lib/Sim/CoreMesh/Timing/Engine.h"
#include "lib/Sim/CoreMesh/Timing/Ops.h"

#include <algorithm>

using namespace twmesh::timing;

Cell twmesh::timing::takeRamp(Cell &from, Cell &until, const Cell &begin,
                              int64_t ticks) {
  if (!happens(until) || begin.time >= until.time) {
    from = begin;
    until = moved(begin, ticks);
    return begin;
  }
  int64_t before = std::max<int64_t>(from.time - begin.time, 0);
  if (before >= ticks)
    return begin;
  Cell start = after(begin, until.time - before - begin.time);
  from = before ? begin : from;
  until = moved(start, ticks);
  return start;
}

void Engine::send(const Instruction &instruction) {
  const Masks &masks = layout_.masks(instruction, loops);
  int64_t ticks = instruction.ticks;
  Clocks start(config.height);
  for (int64_t y = 0; y < config.height; ++y) {
    const Mask *mask = masks[y];
    if (!mask->count)
      continue;
    Row &free = at(sendFree[instruction.outgoing], y);
    Row &token = at(tokens[instruction.token], y);
    Row &from = at(leaving.from, y), &until = at(leaving.until, y);
    rows_.each(mask->all(), {OpSend, word(mask), uint64_t(ticks)},
               {&now[y], &free, &token, &from, &until},
               {&start[y], &free, &token, &from, &until},
               [&](const Cells *in, Cell *const *out, size_t x) {
                 for (size_t engine = 1; engine < 5; ++engine)
                   out[engine][x] = in[engine][x];
                 if (!mask->on[x])
                   return;
                 out[0][x] = takeRamp(out[3][x], out[4][x],
                                      later(in[0][x], in[1][x]), ticks);
                 out[1][x] = moved(out[0][x], ticks);
                 out[2][x] = later(out[1][x], in[2][x]);
               });
  }
  Paths &paths = layout_.paths(instruction, loops);
  paths.traffic += instruction.wavelets;
  Event event = {&paths, instruction.token, instruction.outgoing, ticks, {},
                 {}};
  deliver(event, start);
  if (paths.shared)
    share(instruction, event, start);
  queues[instruction.outgoing].push_back(std::move(event));
  retry(false);
}

/// The clocks of those cores.
Row Engine::masked(const Row &row, const Mask *mask) {
  if (row.none() || mask->all())
    return row;
  Row kept;
  rows_.apply({OpMask, word(mask)}, {&row}, {&kept},
              [&](const Cells *in, Cell *const *out) {
                for (size_t x = 0; x < rows_.width; ++x)
                  if (mask->on[x])
                    out[0][x] = in[0][x];
              });
  return kept;
}

/// When the first wavelets arrive in a row, of messages that start so.
Row Engine::arrivals(const Event &event, const Clocks &start, int64_t y) {
  const Line *line = event.paths->lines[y];
  Row arrived;
  if (!line->valid->count)
    return arrived;
  if (!event.paths->alongX && event.paths->from[y] < 0) {
    std::vector<Cell> cells(config.width, nothing());
    for (int64_t x = 0; x < config.width; ++x)
      if (line->valid->on[x])
        cells[x] = moved(start[line->source[x]][x], line->ticks[x]);
    return rows_.make(cells, Cell());
  }
  const Row &from = start[event.paths->alongX ? y : event.paths->from[y]];
  if (!event.paths->alongX && line->even >= 0)
    return masked(from, line->valid).shifted({line->even, 0, 0, line->even});
  rows_.apply({OpArrive, word(line)}, {&from}, {&arrived},
              [&](const Cells *in, Cell *const *out) {
                for (size_t x = 0; x < rows_.width; ++x)
                  if (line->valid->on[x]) {
                    size_t source = line->source.empty() ? x : line->source[x];
                    if (happens(in[0][source]))
                      out[0][x] = moved(in[0][source], line->ticks[x]);
                  }
              });
  return arrived;
}

void Engine::deliver(Event &event, const Clocks &start) {
  event.first.resize(config.height);
  for (int64_t y = 0; y < config.height; ++y)
    event.first[y] = arrivals(event, start, y);
}

/// Where links are shared: when the last wavelets arrive, and when their
/// senders are done.
void Engine::share(const Instruction &instruction, Event &event,
                   const Clocks &start) {
  Clocks sent(config.height);
  event.last.resize(config.height);
  int64_t ticks = event.ticks;
  if (event.paths->alongX) {
    for (int64_t y = 0; y < config.height; ++y) {
      const Line *line = event.paths->lines[y];
      const Flows *flows = event.paths->flows[y];
      if (start[y].none())
        continue;
      rows_.apply(
          {OpShare, word(line), uint64_t(ticks)}, {&start[y]},
          {&event.last[y], &sent[y]}, [&](const Cells *in, Cell *const *out) {
            std::vector<int64_t> starts;
            for (size_t x = 0; x < rows_.width; ++x)
              starts.push_back(in[0][x].time);
            std::vector<int64_t> ends = shareLinks(*flows, starts, ticks);
            for (size_t flow = 0; flow < ends.size(); ++flow) {
              int64_t source = (*flows)[flow].source;
              if (!happens(in[0][source]))
                continue;
              Cell end = moved(in[0][source], ticks);
              end.time = ends[flow];
              out[1][source] = later(out[1][source], end);
              for (int64_t x : (*flows)[flow].takers)
                out[0][x] = moved(end, line->ticks[x]);
            }
          });
    }
  } else {
    shareColumns(event, start, sent);
  }
  for (int64_t y = 0; y < config.height; ++y)
    for (Clocks *clocks :
         {&sendFree[instruction.outgoing], &tokens[instruction.token]}) {
      if (sent[y].none())
        continue;
      Row &kept = at(*clocks, y);
      keepLater(kept, sent[y]);
    }
}

void Engine::shareColumns(Event &event, const Clocks &start, Clocks &sent) {
  size_t height = config.height, width = config.width;
  std::vector<std::vector<Cell>> last(height), done(height);
  for (auto *cells : {&last, &done})
    for (std::vector<Cell> &row : *cells)
      row.assign(width, nothing());
  for (size_t x = 0; x < width; ++x) {
    const Flows &flows = *event.paths->flows[x];
    std::vector<int64_t> starts;
    for (size_t y = 0; y < height; ++y)
      starts.push_back(start[y][x].time);
    std::vector<int64_t> ends = shareLinks(flows, starts, event.ticks);
    for (size_t flow = 0; flow < ends.size(); ++flow) {
      int64_t source = flows[flow].source;
      if (!happens(start[source][x]))
        continue;
      Cell end = moved(start[source][x], event.ticks);
      end.time = ends[flow];
      done[source][x] = later(done[source][x], end);
      for (int64_t y : flows[flow].takers)
        last[y][x] = moved(end, event.paths->lines[y]->ticks[x]);
    }
  }
  for (size_t y = 0; y < height; ++y) {
    event.last[y] = rows_.make(last[y], Cell());
    sent[y] = rows_.make(done[y], Cell());
  }
}

bool Engine::recv(const Posted &one) {
  const Instruction &instruction = *one.instruction;
  std::vector<Part> parts;
  if (!collect(one, true, parts))
    return false;
  const Masks &masks = layout_.masks(instruction, one.loops);
  int64_t ticks = instruction.ticks;
  Clocks begins(config.height);
  for (int64_t y = 0; y < config.height; ++y) {
    const Mask *mask = masks[y];
    if (!mask->count)
      continue;
    Row &free = at(recvFree[instruction.incoming], y);
    Row &token = at(tokens[instruction.token], y);
    Row &from = at(entering.from, y), &until = at(entering.until, y);
    Row none, unused;
    int buffer = instruction.combines;
    Row &before = buffer < 0 ? unused : at(combined[buffer], y);
    int64_t ahead = config.waiting * config.wavelet;
    // Of what is over before all messages arrive nothing is left.
    auto over = [&](const Row &row) {
      return std::all_of(parts.begin(), parts.end(), [&](const Part &part) {
        return part.taken[y].none() || part.taken[y].behind(row);
      });
    };
    bool all = mask->all();
    bool idle = all && over(until);
    std::vector<const Row *> rows = {over(one.now[y]) ? &none : &one.now[y],
                                     all && over(free) ? &none : &free,
                                     all && over(token) ? &none : &token,
                                     idle ? &none : &from,
                                     idle ? &none : &until,
                                     &before};
    for (const Part &part : parts)
      if (!part.taken[y].none())
        rows.insert(rows.end(), {&part.taken[y], &part.takenLast[y]});
    rows_.each(all, {OpRecv, word(mask), uint64_t(ticks), buffer >= 0}, rows,
               {&begins[y], &free, &token, &from, &until, &before},
               [&](const Cells *in, Cell *const *out, size_t x) {
                 for (size_t engine = 1; engine < 6; ++engine)
                   out[engine][x] = in[engine][x];
                 if (!mask->on[x])
                   return;
                 Cell begin = later(in[0][x], in[1][x]);
                 for (size_t part = 6; part < rows.size(); part += 2)
                   begin = later(begin, in[part][x]);
                 if (happens(in[5][x]))
                   begin = later(begin, after(in[5][x], -ahead));
                 begin = takeRamp(out[3][x], out[4][x], begin, ticks);
                 if (buffer >= 0)
                   out[5][x] = later(begin, in[5][x]);
                 Cell done = moved(begin, ticks);
                 for (size_t part = 7; part < rows.size(); part += 2)
                   done = later(done, in[part][x]);
                 out[0][x] = begin;
                 out[1][x] = done;
                 out[2][x] = later(in[2][x], done);
               });
  }
  if (config.sync == Sync::Rendezvous || config.entries >= 0)
    for (const Part &part : parts)
      feedBack(instruction, part, begins);
  commit(parts, instruction.incoming);
  return true;
}

/// Takes messages for a posted instruction from what is under way; with `all`
/// fails, and changes nothing, where a core would get none.
bool Engine::collect(const Posted &one, bool all, std::vector<Part> &parts) {
  Masks wanted = layout_.masks(*one.instruction, one.loops);
  auto open = [&] {
    return std::any_of(wanted.begin(), wanted.end(),
                       [](const Mask *mask) { return mask->count > 0; });
  };
  for (Event &event : queues[one.instruction->incoming]) {
    if (!open())
      break;
    Part part = {&event, Clocks(config.height), Clocks(config.height),
                 event.first, event.last};
    if (takeFrom(one, event, wanted, part))
      parts.push_back(std::move(part));
  }
  return !all || !open();
}

/// The cores of a row that have a clock.
const Mask *Engine::happening(const Row &row) {
  auto [found, added] = masksOf.try_emplace(row.shape.get());
  if (added) {
    std::vector<char> on(config.width, 0);
    for (int64_t x = 0; x < config.width; ++x)
      on[x] = happens(row[x]);
    found->second = {row, layout_.intern(std::move(on))};
  }
  return found->second.second;
}

bool Engine::takeFrom(const Posted &one, Event &event, Masks &wanted,
                      Part &part) {
  bool any = false;
  int route = one.instruction->incoming;
  bool meet = config.sync == Sync::Rendezvous;
  const std::vector<const Ints *> &sources = layout_.sources(route, one.loops);
  for (int64_t y = 0; y < config.height; ++y) {
    const Mask *mask = wanted[y];
    if (!mask->count || event.first[y].none())
      continue;
    const Ints *theirs = event.paths->sources[y], *ours = sources[y];
    if (theirs == ours)
      theirs = ours = nullptr;
    static const Row none;
    const Row &last = event.last.empty() ? none : event.last[y];
    const Row &free = meet ? at(recvFree[route], y) : none;
    // The sender starts once it has heard that its receiver is ready.
    const Line *line = event.paths->lines[y];
    Row missing, rest, restLast;
    if (!meet && !theirs && mask->all() && event.first[y].whole()) {
      part.taken[y] = event.first[y];
      part.takenLast[y] = last;
      part.rest[y] = Row();
      if (!part.restLast.empty())
        part.restLast[y] = Row();
      wanted[y] = nobody;
      any = true;
      continue;
    }
    rows_.apply(
        {OpTake, word(mask), word(theirs), word(ours), meet ? word(line) : 0},
        {&event.first[y], &last, meet ? &one.now[y] : &none, &free},
        {&part.taken[y], &part.takenLast[y], &rest, &restLast, &missing},
        [&](const Cells *in, Cell *const *out) {
          for (size_t x = 0; x < rows_.width; ++x) {
            bool taken = mask->on[x] && happens(in[0][x]) &&
                         (!theirs || (*theirs)[x] == (*ours)[x]);
            out[taken ? 0 : 2][x] = in[0][x];
            out[taken ? 1 : 3][x] = in[1][x];
            if (mask->on[x] && !taken)
              out[4][x] = Cell();
            if (!taken || !meet)
              continue;
            Cell ready =
                after(later(in[2][x], in[3][x]), line->hops[x] * config.hop);
            out[0][x] = later(in[0][x], moved(ready, line->ticks[x]));
          }
        });
    if (part.taken[y].none())
      continue;
    any = true;
    part.rest[y] = rest;
    if (!part.restLast.empty())
      part.restLast[y] = restLast;
    if (missing.none()) {
      wanted[y] = nobody;
      continue;
    }
    wanted[y] = happening(missing);
  }
  return any;
}

/// Takes from the queue what was received.
void Engine::commit(std::vector<Part> &parts, int route) {
  for (Part &part : parts) {
    part.event->first = std::move(part.rest);
    part.event->last = std::move(part.restLast);
  }
  std::deque<Event> &queue = queues[route];
  queue.erase(std::remove_if(queue.begin(), queue.end(),
                             [](const Event &event) {
                               return std::all_of(
                                   event.first.begin(), event.first.end(),
                                   [](const Row &row) { return row.none(); });
                             }),
              queue.end());
}

/// What a sender learns of one of its receivers: under rendezvous, that its
/// message has arrived; where the fabric holds only so much, that the rest of
/// it could leave.
Cell Engine::answer(const Line &line, size_t x, const Cell &begin,
                    int64_t ticks) const {
  if (config.sync == Sync::Rendezvous)
    return moved(begin, ticks);
  int64_t held = config.entries * line.hops[x] * config.wavelet;
  if (ticks <= held)
    return nothing();
  return after(moved(begin, ticks - held), line.hops[x] * config.hop);
}

void Engine::feedBack(const Instruction &instruction, const Part &part,
                      const Clocks &begins) {
  const Paths &paths = *part.event->paths;
  int64_t ticks = instruction.ticks;
  // Of a multicast along y many rows answer one: the latest of those counts.
  std::vector<int64_t> answers(config.height);
  for (int64_t y = 0; y < config.height && !paths.alongX; ++y)
    if (!part.taken[y].none() && paths.from[y] >= 0)
      ++answers[paths.from[y]];
  std::map<int64_t, std::vector<Cell>> latest;
  for (int64_t y = 0; y < config.height; ++y) {
    const Line &line = *paths.lines[y];
    const Row &taken = part.taken[y];
    if (taken.none())
      continue;
    int64_t source = paths.alongX ? y : paths.from[y];
    if (paths.alongX || source < 0 || answers[source] == 1) {
      hear(part, y, answersOf(paths, y, taken, begins[y], ticks));
      continue;
    }
    std::vector<Cell> &cells = latest[source];
    cells.resize(config.width, nothing());
    for (int64_t x = 0; x < config.width; ++x)
      if (happens(taken[x]))
        cells[x] = later(cells[x], answer(line, x, begins[y][x], ticks));
  }
  for (auto &[source, cells] : latest)
    hearOne(part, source, rows_.make(cells, Cell()));
}

/// What the cores of a row answer, where their senders stand along x; where
/// those stand along y, in other rows.
Row Engine::answersOf(const Paths &paths, int64_t y, const Row &taken,
                      const Row &begins, int64_t ticks) {
  const Line *line = paths.lines[y];
  Row back;
  rows_.apply({OpFeedBack, word(line), uint64_t(ticks)}, {&taken, &begins},
              {&back}, [&](const Cells *in, Cell *const *out) {
                for (size_t x = 0; x < rows_.width; ++x) {
                  if (!happens(in[0][x]))
                    continue;
                  size_t to = paths.alongX ? line->source[x] : x;
                  out[0][to] =
                      later(out[0][to], answer(*line, x, in[1][x], ticks));
                }
              });
  return back;
}

/// Tells the senders of a row's messages what it answers.
void Engine::hear(const Part &part, int64_t y, const Row &back) {
  const Paths &paths = *part.event->paths;
  int64_t source = paths.alongX ? y : paths.from[y];
  if (back.none() || source >= 0) {
    hearOne(part, source, back);
    return;
  }
  const Line *line = paths.lines[y];
  for (int64_t row = 0; row < config.height; ++row)
    for (Clocks *clocks : hearing(part)) {
      Row &kept = at(*clocks, row);
      rows_.apply({OpReturn, word(line), uint64_t(row)}, {&kept, &back},
                  {&kept}, [&](const Cells *in, Cell *const *out) {
                    for (size_t x = 0; x < rows_.width; ++x)
                      out[0][x] = line->source[x] != row
                                      ? in[0][x]
                                      : later(in[0][x], in[1][x]);
                  });
    }
}

/// The same where they all stand in one row.
void Engine::hearOne(const Part &part, int64_t source, const Row &back) {
  if (!back.none())
    for (Clocks *clocks : hearing(part))
      keepLater(at(*clocks, source), back);
}

/// The clocks that an answer holds back.
std::vector<Clocks *> Engine::hearing(const Part &part) {
  std::vector<Clocks *> clocks = {&sendFree[part.event->route]};
  if (part.event->token >= 0)
    clocks.push_back(&tokens[part.event->token]);
  return clocks;
}

//===----------------------------------------------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Sim/CoreMesh/Timing/Paths.h"

#include <algorithm>
#include <stdexcept>

using namespace twmesh::timing;

static int64_t modulo(int64_t value, int64_t length) {
  return (value % length + length) % length;
}

Paths &Layout::paths(const Instruction &instruction, const Ints &loops) {
  const Route &route = program.routes[instruction.outgoing];
  // Receivers may depend on more loops than the sender and the route do.
  int depth = std::max(instruction.cores.depth(), route.source.depth());
  for (int number : route.receivers)
    depth = std::max(depth, std::min(program.instructions[number].cores.depth(),
                                     static_cast<int>(loops.size()) + 2));
  // Without loops, all that stands outside of loops.
  int place = instruction.loops.empty() ? -1 : instruction.loops.back();
  auto &kept = pathsMemory[{instruction.outgoing * program.instructions.size() +
                                instruction.set,
                            place, loopsOf(depth, loops)}];
  if (kept)
    return *kept;
  kept = std::make_unique<Paths>();
  Paths &paths = *kept;
  paths.alongX = route.alongX;
  paths.sources = sources(instruction.outgoing, loops);
  paths.from.assign(config.height, -1);
  const Masks &senders = masks(instruction, loops);
  Masks takers = receivers(instruction, loops);
  for (int64_t y = 0; y < config.height; ++y)
    addLine(paths, route, y, senders, takers[y]);
  if (config.topology != Topology::Exchange)
    addFlows(paths);
  inOrder.push_back(&paths);
  return paths;
}

/// The source that all cores of a row have, or -1.
int64_t Layout::oneSource(const Ints *sources) {
  auto [found, added] = oneSourceMemory.try_emplace(sources, -1);
  if (added && std::all_of(sources->begin(), sources->end(),
                           [&](int64_t s) { return s == sources->front(); }))
    found->second = sources->front();
  return found->second;
}

void Layout::addLine(Paths &paths, const Route &route, int64_t y,
                     const Masks &senders, const Mask *takers) {
  const Ints *sources = paths.sources[y];
  int64_t from = route.alongX ? -1 : oneSource(sources);
  paths.from[y] = from;
  if (!route.alongX && from < 0) {
    Line line = makeLine(route, y, senders, takers, *sources);
    otherLines.push_back(std::make_unique<Line>(std::move(line)));
    paths.lines.push_back(otherLines.back().get());
    return;
  }
  auto word = [](const void *pointer) {
    return static_cast<int64_t>(reinterpret_cast<uintptr_t>(pointer));
  };
  const Mask *sending = senders[route.alongX ? y : from];
  int64_t where = route.alongX ? word(sources) : y - from;
  auto &kept = lineMemory[{route.alongX, word(sending), word(takers), where,
                           dead.empty() ? -1 : y}];
  if (!kept) {
    bool alike = !route.alongX && dead.empty();
    kept = std::make_unique<Line>(
        alike ? alikeLine(y, from, both(sending, takers))
              : makeLine(route, y, senders, takers, *sources));
    if (!route.alongX)
      kept->source.clear();
  }
  paths.lines.push_back(kept.get());
}

/// Paths along y that all come from one row, none around a broken link.
Line Layout::alikeLine(int64_t y, int64_t from, const Mask *valid) {
  int64_t hops = config.topology == Topology::Exchange
                     ? 0
                     : std::abs(turn(false, from, y));
  int64_t ticks = config.message + hops * config.hop;
  return {
      valid, {}, Ints(config.width, hops), Ints(config.width, ticks), ticks};
}

Line Layout::makeLine(const Route &route, int64_t y, const Masks &senders,
                      const Mask *takers, const Ints &sources) {
  Line line;
  line.source.assign(config.width, -1);
  line.hops.assign(config.width, 0);
  line.ticks.assign(config.width, 0);
  std::vector<char> valid(config.width, 0);
  bool different = false;
  for (int64_t x = 0; x < config.width; ++x) {
    int64_t source = sources[x];
    if (source < 0 || !takers->on[x])
      continue;
    if (!(route.alongX ? senders[y]->on[source] : senders[source]->on[x]))
      continue;
    int64_t to = route.alongX ? x : y, across = route.alongX ? y : x;
    int64_t turned = std::abs(turn(route.alongX, source, to));
    if (config.topology == Topology::Exchange)
      turned = 0;
    if (!dead.empty())
      turned += broken(route.alongX, across, source, to);
    valid[x] = 1;
    line.source[x] = source;
    line.hops[x] = turned;
    line.ticks[x] = config.message + turned * config.hop;
    different |= line.even >= 0 && line.even != line.ticks[x];
    line.even = line.ticks[x];
  }
  if (different)
    line.even = -1;
  line.valid = intern(std::move(valid));
  return line;
}

/// Links from one place to another, less than 0 westwards or northwards.
int64_t Layout::turn(bool alongX, int64_t from, int64_t to) const {
  int64_t length = alongX ? config.width : config.height, way = to - from;
  if (config.topology != Topology::Torus)
    return way;
  int64_t ahead = modulo(way, length);
  return ahead <= length - ahead ? ahead : ahead - length;
}

/// Hops more around broken links.
int64_t Layout::broken(bool alongX, int64_t across, int64_t from,
                       int64_t to) const {
  int64_t length = alongX ? config.width : config.height;
  int64_t way = turn(alongX, from, to), step = way < 0 ? -1 : 1, more = 0;
  int direction = alongX ? (step > 0 ? East : West) : step > 0 ? South : North;
  for (int64_t done = 0; done != way; done += step) {
    int64_t place = modulo(from + done, length);
    int64_t y = alongX ? across : place, x = alongX ? place : across;
    if (!dead.count({y, x, direction}))
      continue;
    static const char *const names[] = {"east", "west", "south", "north"};
    if (config.detour < 0)
      throw std::runtime_error(
          "the link from " + nameOf(y, x) + " to the " + names[direction] +
          " is broken, and a path crosses it: routes of this machine are " +
          "fixed; use another part of the grid");
    more += config.detour;
  }
  return more;
}

void Layout::addFlows(Paths &paths) {
  if (paths.alongX) {
    for (const Line *line : paths.lines) {
      const Flows *&flows = flowsOfLine[line];
      if (!flows)
        flows = flowsOf(true, line->source);
      paths.flows.push_back(flows);
    }
  } else {
    // Columns in which the same cores take part are alike.
    bool alike = true;
    for (int64_t y = 0; y < config.height; ++y) {
      const Mask *valid = paths.lines[y]->valid;
      alike &= valid->count == 0 || (valid->all() && paths.from[y] >= 0);
    }
    for (int64_t x = 0; x < config.width; ++x) {
      if (x > 0 && alike) {
        paths.flows.push_back(paths.flows[0]);
        continue;
      }
      Ints column(config.height, -1);
      for (int64_t y = 0; y < config.height; ++y)
        if (paths.lines[y]->valid->on[x])
          column[y] =
              paths.from[y] >= 0 ? paths.from[y] : paths.lines[y]->source[x];
      paths.flows.push_back(flowsOf(false, column));
    }
  }
  for (const Flows *flows : paths.flows)
    paths.shared |= crowded.count(flows) > 0;
}

/// Flows of a line; all takers of one source in one direction are one flow,
/// which crosses each link once.
const Flows *Layout::flowsOf(bool alongX, const Ints &sources) {
  auto [found, added] = flowMemory.try_emplace({alongX, sources});
  if (!added)
    return found->second.get();
  found->second = std::make_unique<Flows>();
  Flows &flows = *found->second;
  int64_t length = sources.size();
  std::map<std::pair<int64_t, int>, size_t> known;
  for (int64_t to = 0; to < length; ++to) {
    int64_t from = sources[to];
    int64_t way = from < 0 ? 0 : turn(alongX, from, to);
    if (way == 0)
      continue;
    int direction = alongX ? (way > 0 ? East : West) : way > 0 ? South : North;
    auto [flow, first] = known.try_emplace({from, direction}, flows.size());
    if (first)
      flows.push_back({from, 0, direction, {}});
    Flow &into = flows[flow->second];
    into.reach = std::max(into.reach, std::abs(way));
    into.takers.push_back(to);
  }
  // How many flows leave each core in each direction.
  std::vector<std::array<int64_t, 4>> load(length);
  bool several = false;
  for (const Flow &flow : flows)
    for (int64_t done = 0; done < flow.reach; ++done) {
      bool up = flow.direction == East || flow.direction == South;
      int64_t at = modulo(flow.source + (up ? done : -done), length);
      several |= ++load[at][flow.direction] > 1;
    }
  if (several)
    crowded.insert(&flows);
  return &flows;
}

void Layout::addLoads(int64_t *loads) const {
  int64_t height = config.height, width = config.width;
  for (const Paths *paths : inOrder)
    for (size_t line = 0; line < paths->flows.size() && paths->traffic; ++line)
      for (const Flow &flow : *paths->flows[line])
        for (int64_t done = 0; done < flow.reach; ++done) {
          bool up = flow.direction == East || flow.direction == South;
          int64_t along = flow.source + (up ? done : -done);
          int64_t y = paths->alongX ? line : modulo(along, height);
          int64_t x = paths->alongX ? modulo(along, width) : line;
          loads[(flow.direction * height + y) * width + x] += paths->traffic;
        }
}

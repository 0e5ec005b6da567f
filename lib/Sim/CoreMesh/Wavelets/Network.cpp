//===----------------------------------------------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Sim/CoreMesh/Wavelets/Network.h"

#include <algorithm>
#include <stdexcept>

using namespace twmesh::wavelets;

/// Where wavelets wait for a core: no port of its router.
static constexpr int core_side = Ports;

Network::Network(const twmesh_program &program)
    : coreAgenda(size_t(program.height) * program.width),
      passed(size_t(program.height) * program.width * Ports, 0),
      ramp(program.ramp), alpha(program.alpha), depth(program.depth),
      outputs(size_t(program.height) * program.width * Ports),
      source(program.flows, -1),
      outputAgenda(size_t(program.height) * program.width * Ports) {
  for (int32_t flow = 0; flow < program.flows; ++flow) {
    hopsOfFlow.clear();
    layFlow(program, flow);
  }
  hopsOfFlow.clear();
  queueAt.clear();
  sortByCore();
  int64_t total = 0;
  for (Queue &queue : queues) {
    queue.first = int32_t(total);
    total += queue.capacity;
    if (total > INT32_MAX)
      throw std::length_error("the queues of all routers have more than 2^31 "
                              "entries together");
  }
  entries.resize(total);
  gatherFeeders();
}

void Network::layFlow(const twmesh_program &program, int32_t flow) {
  int32_t from = program.flowSource[flow];
  source[flow] = hopAt(program, flow, from, Ramp, -1);
  for (int32_t i = program.destinationBegin[flow];
       i < program.destinationBegin[flow + 1]; ++i)
    walk(program, flow, program.destinations[i]);
}

/// The hop of a flow at one input of a core's router; made where it is new.
int32_t Network::hopAt(const twmesh_program &program, int32_t flow,
                       int32_t core, int port, int32_t upstream) {
  int64_t place = int64_t(core) * (Ports + 1) + port;
  auto [known, isNew] = hopsOfFlow.try_emplace(place, hops.size());
  if (!isNew)
    return known->second;
  int64_t cores = int64_t(program.height) * program.width;
  int64_t name = program.flowChannel[flow] * cores * (Ports + 1) + place;
  auto [queue, isNewQueue] = queueAt.try_emplace(name, queues.size());
  if (isNewQueue) {
    bool onRamp = port == Ramp || port == core_side;
    int32_t capacity = depth + (onRamp ? ramp : alpha) - 1;
    queues.push_back({core, capacity, upstream, 0});
    queues.back().forCore = port == core_side;
  }
  hops.push_back({queue->second, flow});
  return known->second;
}

int Network::direction(const twmesh_program &program, int32_t from,
                       int32_t to) const {
  int32_t width = program.width, height = program.height;
  int32_t dx = to % width - from % width, dy = to / width - from / width;
  // Half way around a torus is east or south, as the timing has it.
  auto ahead = [&](int32_t distance, int32_t length) {
    if (!program.torus)
      return distance > 0;
    return 2 * ((distance + length) % length) <= length;
  };
  if (dx)
    return ahead(dx, width) ? East : West;
  return ahead(dy, height) ? South : North;
}

int32_t Network::neighbor(const twmesh_program &program, int32_t core,
                          int port) const {
  int32_t width = program.width, height = program.height;
  int32_t x = core % width, y = core / width;
  if (port == East || port == West)
    x = (x + (port == East ? 1 : width - 1)) % width;
  else
    y = (y + (port == South ? 1 : height - 1)) % height;
  return y * width + x;
}

/// Adds the way to one destination: straight, and beside what is there.
void Network::walk(const twmesh_program &program, int32_t flow,
                   int32_t destination) {
  int32_t core = program.flowSource[flow], hop = source[flow];
  while (core != destination) {
    int port = direction(program, core, destination);
    int entered = port == North   ? South
                  : port == South ? North
                  : port == East  ? West
                                  : East;
    int32_t next = neighbor(program, core, port);
    int32_t there = hopAt(program, flow, next, entered, core * Ports + port);
    connect(hop, port, there);
    core = next;
    hop = there;
  }
  int32_t last = hopAt(program, flow, core, core_side, core * Ports + Ramp);
  connect(hop, Ramp, last);
  ends[key(flow, core)] = last;
}

void Network::connect(int32_t hop, int port, int32_t next) {
  hops[hop].outputs |= 1 << port;
  hops[hop].next[port] = next;
}

/// Permutation that sorts by a key; what is alike keeps its order.
template <typename Key>
static std::vector<int32_t> places(size_t count, Key key) {
  std::vector<int32_t> order(count), place(count);
  for (size_t i = 0; i < count; ++i)
    order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return key(a) < key(b); });
  for (size_t i = 0; i < count; ++i)
    place[order[i]] = i;
  return place;
}

template <typename T>
static void permute(std::vector<T> &things, const std::vector<int32_t> &place) {
  std::vector<T> sorted(things.size());
  for (size_t i = 0; i < things.size(); ++i)
    sorted[place[i]] = things[i];
  things.swap(sorted);
}

/// What stands at one core lies together in memory: a cycle touches little.
void Network::sortByCore() {
  std::vector<int32_t> hopPlace = places(
      hops.size(), [&](int32_t hop) { return queues[hops[hop].queue].core; });
  std::vector<int32_t> queuePlace =
      places(queues.size(), [&](int32_t queue) { return queues[queue].core; });
  for (Hop &hop : hops) {
    hop.queue = queuePlace[hop.queue];
    for (int32_t &next : hop.next)
      next = next < 0 ? next : hopPlace[next];
  }
  permute(hops, hopPlace);
  permute(queues, queuePlace);
  for (int32_t &hop : source)
    hop = hopPlace[hop];
  for (auto &[name, hop] : ends)
    hop = hopPlace[hop];
}

/// Which queues feed each output, in one array.
void Network::gatherFeeders() {
  std::vector<std::pair<int32_t, int32_t>> pairs;
  for (const Hop &hop : hops)
    for (int port = 0; port < Ports; ++port)
      if (hop.outputs >> port & 1)
        pairs.emplace_back(queues[hop.queue].core * Ports + port, hop.queue);
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  for (auto [output, queue] : pairs) {
    if (!outputs[output].feeders++)
      outputs[output].feeder = feeders.size();
    feeders.push_back(queue);
  }
}

void Network::step(int64_t now) {
  outputAgenda.take(now, awake);
  for (int32_t number : awake)
    stepOutput(number, now);
}

void Network::stepOutput(int32_t number, int64_t now) {
  Output &output = outputs[number];
  int port = number % Ports;
  for (int32_t i = 0; i < output.feeders; ++i) {
    int32_t turn = output.turn + i;
    turn -= turn >= output.feeders ? output.feeders : 0;
    Queue &queue = queues[feeders[output.feeder + turn]];
    if (!offers(queue, port, now))
      continue;
    int32_t next = hops[at(queue).hop].next[port];
    if (!hasRoom(queues[hops[next].queue], now))
      continue;
    push(next, now, port == Ramp ? ramp : alpha);
    ++passed[number];
    queue.pending &= ~(1 << port);
    if (!queue.pending)
      pop(queue, now);
    output.turn = turn + 1 == output.feeders ? 0 : turn + 1;
    outputAgenda.wake(number, now, now + 1);
    return;
  }
}

void Network::push(int32_t hop, int64_t now, int32_t latency) {
  Queue &queue = queues[hops[hop].queue];
  int32_t slot = queue.head + queue.size;
  slot -= slot >= queue.capacity ? queue.capacity : 0;
  entries[queue.first + slot] = {int32_t(now + latency), hop};
  if (++queue.size == 1)
    show(queue, now);
}

void Network::pop(Queue &queue, int64_t now) {
  bool wasFull = queue.size == queue.capacity;
  queue.head = queue.head + 1 == queue.capacity ? 0 : queue.head + 1;
  --queue.size;
  queue.popped = now;
  if (wasFull && queue.upstream >= 0)
    outputAgenda.wake(queue.upstream, now, now + 1);
  else if (wasFull)
    coreAgenda.wake(queue.core, now, now + 1);
  if (queue.size)
    show(queue, now);
}

/// A wavelet has become the first of a queue.
void Network::show(Queue &queue, int64_t now) {
  const Wavelet &wavelet = at(queue);
  int64_t when = std::max<int64_t>(wavelet.ready, now + 1);
  if (queue.forCore) {
    coreAgenda.wake(queue.core, now, when);
    return;
  }
  queue.pending = hops[wavelet.hop].outputs;
  for (int port = 0; port < Ports; ++port)
    if (queue.pending >> port & 1)
      outputAgenda.wake(queue.core * Ports + port, now, when);
}

std::pair<int32_t, int32_t> Network::blockedBy(int32_t flow,
                                               int64_t now) const {
  const Queue *queue = &queues[hops[source[flow]].queue];
  // Full queues may wait for each other around a torus: then there is no last.
  for (size_t left = queues.size(); left && !queue->forCore && queue->size;
       --left) {
    const Queue *full = nullptr;
    for (int port = 0; port < Ports && !full; ++port) {
      if (!(queue->pending >> port & 1))
        continue;
      const Queue &next = queues[hops[hops[at(*queue).hop].next[port]].queue];
      full = hasRoom(next, now) ? nullptr : &next;
    }
    if (!full)
      break;
    queue = full;
  }
  return {queue->core, queue->size ? hops[at(*queue).hop].flow : flow};
}

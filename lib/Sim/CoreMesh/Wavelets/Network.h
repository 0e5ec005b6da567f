//===----------------------------------------------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Routers of five ports. Each input port has a queue per channel; each output
// passes one wavelet per cycle, taking turns among the queues that feed it. A
// multicast's wavelet leaves its queue once all outputs took it.
//
// What a cycle does depends on how things stood before it alone, so that the
// order in which routers are looked at does not matter.
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_LIB_SIM_COREMESH_WAVELETS_NETWORK_H
#define TILEWRIGHT_LIB_SIM_COREMESH_WAVELETS_NETWORK_H

#include "lib/Sim/CoreMesh/Wavelets/Agenda.h"
#include "lib/Sim/CoreMesh/Wavelets/Wavelets.h"

#include <unordered_map>

namespace twmesh::wavelets {

enum Port { North, South, East, West, Ramp, Ports };

/// Where a flow passes a queue, and where it goes from there.
struct Hop {
  int32_t queue;
  int32_t flow;
  uint8_t outputs = 0; ///< one bit per port; none: the core takes it
  std::array<int32_t, Ports> next{-1, -1, -1, -1, -1};
};

struct Wavelet {
  int32_t ready; ///< cycle from which on it can go on
  int32_t hop;
};

/// Wavelets of one channel at one input of a router, or on their way into it;
/// or those that wait for a core.
struct Queue {
  int32_t core;     ///< at whose router, or core, it stands
  int32_t capacity; ///< with those on their way
  int32_t upstream; ///< output that fills it; -1: the core does
  int32_t first;    ///< index into the network's entries
  int32_t head = 0, size = 0;
  uint8_t pending = 0;  ///< outputs that have not taken the head
  bool forCore = false; ///< its core takes from it
  int32_t popped = -1;  ///< cycle in which something last left
};

class Network {
public:
  explicit Network(const twmesh_program &program);

  /// Whether the core can put a wavelet of a flow into its ramp now.
  bool canInject(int32_t flow, int64_t now) const {
    return hasRoom(queues[hops[source[flow]].queue], now);
  }
  void inject(int32_t flow, int64_t now) { push(source[flow], now, ramp); }

  /// Whether a wavelet of a flow waits for a core, at its end of the flow.
  bool canTake(int32_t end, int64_t now) const {
    const Queue &queue = queues[hops[end].queue];
    return queue.size && queue.popped != now && at(queue).ready <= now &&
           at(queue).hop == end;
  }
  void take(int32_t end, int64_t now) { pop(queues[hops[end].queue], now); }

  /// The end of a flow at a core: what `canTake` asks for; -1: there is none.
  int32_t end(int32_t flow, int32_t core) const {
    auto found = ends.find(key(flow, core));
    return found == ends.end() ? -1 : found->second;
  }

  /// One cycle of all outputs that are awake.
  void step(int64_t now);

  int64_t next(int64_t now) const { return outputAgenda.next(now); }

  /// Why a flow's wavelet cannot enter: the core whose untaken wavelets fill
  /// the way, and the flow of those.
  std::pair<int32_t, int32_t> blockedBy(int32_t flow, int64_t now) const;

  /// Cores to look at, woken by wavelets that come and by room that they find.
  Agenda coreAgenda;
  /// Wavelets that left by each output, [cores][Ports].
  std::vector<int64_t> passed;

private:
  struct Output {
    int32_t feeder = 0, feeders = 0, turn = 0;
  };

  void layFlow(const twmesh_program &program, int32_t flow);
  int32_t hopAt(const twmesh_program &program, int32_t flow, int32_t core,
                int port, int32_t upstream);
  void walk(const twmesh_program &program, int32_t flow, int32_t destination);
  int direction(const twmesh_program &program, int32_t from, int32_t to) const;
  int32_t neighbor(const twmesh_program &program, int32_t core, int port) const;
  void connect(int32_t hop, int port, int32_t next);
  void sortByCore();
  void gatherFeeders();
  void stepOutput(int32_t number, int64_t now);

  static int64_t key(int32_t flow, int32_t core) {
    return int64_t(flow) << 32 | uint32_t(core);
  }
  const Wavelet &at(const Queue &queue) const {
    return entries[queue.first + queue.head];
  }
  /// As of the beginning of the cycle: what left in it still counts.
  bool hasRoom(const Queue &queue, int64_t now) const {
    return queue.size + (queue.popped == now) < queue.capacity;
  }
  bool offers(const Queue &queue, int port, int64_t now) const {
    return queue.size && (queue.pending >> port & 1) && queue.popped != now &&
           at(queue).ready <= now;
  }
  void push(int32_t hop, int64_t now, int32_t latency);
  void pop(Queue &queue, int64_t now);
  void show(Queue &queue, int64_t now);

  int32_t ramp, alpha, depth;
  std::vector<Hop> hops;
  std::vector<Queue> queues;
  std::vector<Wavelet> entries;
  std::vector<Output> outputs;
  std::vector<int32_t> feeders;
  std::vector<int32_t> source; ///< a flow's first hop
  std::unordered_map<int64_t, int32_t> ends;
  std::unordered_map<int64_t, int32_t> queueAt;
  std::unordered_map<int64_t, int32_t> hopsOfFlow;
  Agenda outputAgenda;
  std::vector<int32_t> awake;
};

} // namespace twmesh::wavelets

#endif // TILEWRIGHT_LIB_SIM_COREMESH_WAVELETS_NETWORK_H

//===----------------------------------------------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs a program on the clocks of all cores.
//
// Each instruction is taken in the order of the program for all cores at once.
// A core has a clock, and one for each route that it sends on or receives
// from: those engines run beside it. A receive whose message has not been sent
// yet is posted, and done when it is; what a wait waits for must be done.
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_LIB_SIM_COREMESH_TIMING_ENGINE_H
#define TILEWRIGHT_LIB_SIM_COREMESH_TIMING_ENGINE_H

#include "lib/Sim/CoreMesh/Timing/Paths.h"
#include "lib/Sim/CoreMesh/Timing/Rows.h"

#include <deque>

namespace twmesh::timing {

/// A row of clocks for each row of cores; empty: of nothing that happens.
using Clocks = std::vector<Row>;

/// The way between cores and their routers, in one direction, for all that a
/// core sends or receives: when it began to be busy, and until when it is.
struct Ramps {
  Clocks from, until;
};

/// Takes a ramp for `ticks` from `begin` on; what is on it already and this
/// never leave it idle, so that of messages that share it the last is done as
/// early as by any other order. Returns when this would have to begin to be
/// done as it is. Of the times in which the ramp was busy the last is known.
Cell takeRamp(Cell &from, Cell &until, const Cell &begin, int64_t ticks);

/// Messages of one execution of an instruction that have not been received.
struct Event {
  Paths *paths;
  int token, route;
  int64_t ticks;
  /// When the first and the last of each message arrive, by who receives it;
  /// without `last`: one per tick of the link.
  Clocks first, last;
};

/// A receive or relay, with the clocks of the cores that started it.
struct Posted {
  const Instruction *instruction;
  Ints loops;
  Clocks now;
};

/// A relay of a group that is scanned together: relays that pass to each other
/// stand in several instructions where routes alternate along a chain.
struct Relayed {
  const Posted *posted;
  const Masks *masks;
  Paths *paths;
  /// Messages that had been sent before; when this passes on; what arrives of
  /// that where no relay of the group has taken it.
  Clocks taken, takenLast, start, first;
  bool missing = false;
};

class Engine {
public:
  Engine(const Config &config, const Program &program);

  void run();

  /// When each core is done.
  const Clocks &ends() const { return now; }
  Cell latest() const;
  Layout &layout() { return layout_; }
  const Rows &rows() const { return rows_; }
  bool extrapolated = false;
  int64_t executed = 0;

private:
  /// What of a posted receive an event serves.
  struct Part {
    Event *event;
    Clocks taken, takenLast, rest, restLast;
  };
  struct Snapshot {
    uint64_t hash;
    std::vector<Row> rows;
    std::vector<const void *> tags;
    std::vector<int64_t> traffic;
  };

  void runBody(const std::vector<int> &body);
  void runLoop(const Instruction &loop);
  std::string turns() const;
  bool depends(const std::vector<int> &body, int dim) const;
  Snapshot snapshot();
  bool repeats(const Snapshot &before, const Snapshot &after,
               Cell &shift) const;
  void leap(const Snapshot &before, const Cell &shift, int64_t times);
  template <typename Visit> void visit(const Visit &visit);
  std::vector<Clocks *> engines();

  void count(int number);
  size_t compute(const std::vector<int> &body, size_t at);
  void compute(int64_t y, const Mask *mask, int64_t ticks);
  void send(const Instruction &instruction);
  void share(const Instruction &instruction, Event &event, const Clocks &start);
  void shareColumns(Event &event, const Clocks &start, Clocks &sent);
  void wait(const Instruction &instruction);
  void checkPosted(const std::vector<int64_t> &tokens);
  void prune(Clocks &clocks, Clocks *with);
  void align();
  void keepLater(Row &kept, const Row &other);
  void finish();

  void post(const Instruction &instruction);
  bool behind(const Posted &one, const std::vector<const Posted *> &others);
  bool retryReceives();
  bool retryRelays();
  void retry(bool relays);
  bool recv(const Posted &posted);
  bool collect(const Posted &posted, bool all, std::vector<Part> &parts);
  bool takeFrom(const Posted &posted, Event &event, Masks &wanted, Part &part);
  void commit(std::vector<Part> &parts, int route);
  void feedBack(const Instruction &instruction, const Part &part,
                const Clocks &begins);
  Cell answer(const Line &line, size_t x, const Cell &begin,
              int64_t ticks) const;
  Row answersOf(const Paths &paths, int64_t y, const Row &taken,
                const Row &begins, int64_t ticks);
  void hear(const Part &part, int64_t y, const Row &back);
  void hearOne(const Part &part, int64_t source, const Row &back);
  std::vector<Clocks *> hearing(const Part &part);
  bool relay(std::vector<Relayed> &group);
  void relayRow(std::vector<Relayed> &group, int64_t y);
  void relayRows(std::vector<Relayed> &group);
  void passRow(std::vector<Relayed> &group, size_t index, int64_t y,
               std::vector<std::vector<char>> &state);
  void deliver(Event &event, const Clocks &start);
  const Mask *happening(const Row &row);
  Row masked(const Row &row, const Mask *mask);
  Row arrivals(const Event &event, const Clocks &start, int64_t y);

  Row &at(Clocks &clocks, int64_t y) {
    if (clocks.empty())
      clocks.resize(config.height);
    return clocks[y];
  }

  const Config &config;
  const Program &program;
  Layout layout_;
  Rows rows_;
  const Mask *nobody;
  Clocks now;
  /// Of what is combined into a buffer, when the last began to be: the next is
  /// taken after it, number by number.
  std::vector<Clocks> tokens, sendFree, recvFree, combined;
  Ramps leaving, entering;
  std::vector<std::deque<Event>> queues;
  std::deque<Posted> posted;
  Ints loops;
  /// Of shapes, which are kept alive, the cores that have a clock.
  std::unordered_map<const Shape *, std::pair<Row, const Mask *>> masksOf;
};

/// When each flow of a line is done, whose `ticks` of work start at `starts`
/// (by source; `never`: not): links are shared max-min fair, and never idle
/// while a flow could use them.
std::vector<int64_t> shareLinks(const Flows &flows,
                                const std::vector<int64_t> &starts,
                                int64_t ticks);

} // namespace twmesh::timing

#endif // TILEWRIGHT_LIB_SIM_COREMESH_TIMING_ENGINE_H

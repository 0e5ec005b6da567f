//===----------------------------------------------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One core: a thread that starts instructions in order, and beside it engines
// that send and receive, one per route and direction. They share a memory of
// single-ported banks.
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_LIB_SIM_COREMESH_WAVELETS_CORE_H
#define TILEWRIGHT_LIB_SIM_COREMESH_WAVELETS_CORE_H

#include "lib/Sim/CoreMesh/Wavelets/Network.h"
#include "lib/Sim/CoreMesh/Wavelets/Trace.h"

#include <deque>

namespace twmesh::wavelets {

/// A send, receive or relay that was started: in the line of the engine that
/// takes its wavelets in, of the one that sends them on, or of both.
struct Transfer {
  const twmesh_instruction *instruction;
  int32_t wavelets, address;
  int32_t taken = 0, sent = 0; ///< wavelets
  int32_t end = -1;            ///< of the flow that it takes from
  int32_t outFlow = -1;
  bool relays = false, combines = false;
  int64_t earliest = 0; ///< cycle of the first wavelet that can be sent
  int64_t started = 0;  ///< by the thread
  int64_t firstIn = 0, firstOut = 0; ///< cycles of the first wavelets
  Transfer *nextIn = nullptr, *nextOut = nullptr; ///< behind it in line
  Transfer *before = nullptr; ///< combines into the same slot, and comes first
  /// By when each of a relay's sums can leave, in the order of wavelets.
  std::vector<int64_t> leaves;

  void start(const twmesh_instruction &what, int32_t room);
};

/// Which cycles a core's banks were used in, and what the running kernel loses
/// by that.
class Banks {
public:
  explicit Banks(const twmesh_program &program)
      : program(&program), busy(program.banks, -1), taken(program.banks, 0) {}

  /// Whether an engine may access the bank of an address now: it then has. A
  /// write can be put off by a cycle.
  bool access(int64_t address, bool writes, int64_t now);

  void startKernel(int32_t kernel, int64_t now);
  /// When the running kernel ends, if no engine takes another access.
  int64_t kernelEnd() const {
    return moves ? movedEnd() : began + program->kernel[kernel].cycles;
  }

private:
  int64_t movedEnd() const;

  const twmesh_program *program;
  std::vector<int64_t> busy;
  std::vector<int64_t> taken; ///< accesses of engines since the kernel began
  int64_t readTaken = 0, writeTaken = 0; ///< bytes of those
  int32_t kernel = -1;
  bool moves = false; ///< it is known what the kernel takes from memory
  int64_t began = 0;
};

class Core {
public:
  Core(const twmesh_program &program, Network &network, int32_t number,
       Trace *trace);

  /// Does what can be done in a cycle; asks to be looked at again if need be.
  void step(int64_t now);

  bool finished() const { return pc == last && !live; }
  int64_t finishedAt = -1;
  int64_t computed = 0;

  /// The instruction that the core's thread stands at, or null at its end.
  const twmesh_instruction *standsAt() const {
    return pc == last ? nullptr : pc;
  }
  /// A transfer of a token that is not done.
  const Transfer *unfinished(int32_t token) const;
  /// The first transfer that takes from, or sends on, a route; null: none.
  const Transfer *firstIn(int32_t route) const { return front(inbound, route); }
  const Transfer *firstOut(int32_t route) const {
    return front(outbound, route);
  }
  /// Any transfer that is not done.
  const Transfer *anyUnfinished() const { return unfinished(-1); }

private:
  /// Transfers of one route and direction, in the order of their start.
  struct Engine {
    int32_t route;
    Transfer *first = nullptr, *last = nullptr;
    int64_t moved = -1; ///< cycle in which a wavelet last came

    void push(Transfer &transfer, Transfer *Transfer::*next);
    void pop(Transfer *Transfer::*next) { first = first->*next; }
  };

  static const Transfer *front(const std::vector<Engine> &engines,
                               int32_t route);
  static Engine &engine(std::vector<Engine> &engines, int32_t route);

  void completeReceives();
  bool runThread(int64_t now);
  bool startNext(int64_t now);
  bool runs(int64_t now);
  bool waits(int64_t now);
  void startTransfer(int64_t now);
  bool receive(int64_t now);
  bool receiveOn(Engine &engine, int64_t now);
  bool send(int64_t now);
  bool sendOn(Transfer &transfer, int64_t now);
  bool hasNext(const Transfer &transfer, int64_t now) const;
  bool touch(const Transfer &transfer, int32_t wavelet, bool reads, bool writes,
             int64_t now);
  void finish(Transfer &transfer);
  void wake(int64_t now, int64_t at) {
    network.coreAgenda.wake(number, now, at);
  }

  const twmesh_program &program;
  Network &network;
  int32_t number;
  const twmesh_instruction *pc, *last;
  Banks banks;
  bool computing = false;
  int64_t began = 0;    ///< what computes
  int64_t awaited = -1; ///< its end, for which the core is woken
  int32_t outstanding(int32_t token) const { return tokens[token]; }
  std::vector<int32_t> tokens; ///< transfers of each that are not done
  std::vector<Engine> inbound, outbound;
  size_t turn = 0; ///< which engine sends next
  std::deque<Transfer> pool;
  std::vector<Transfer *> spare;
  std::vector<Transfer *> arrived; ///< took their last wavelet just now
  std::vector<std::pair<int32_t, Transfer *>> combining; ///< last per slot
  int64_t stepped = -1;
  Trace *trace;            ///< null: nobody wants to know
  int64_t waitsSince = -1; ///< the thread, at a wait
  int32_t live = 0;
};

} // namespace twmesh::wavelets

#endif // TILEWRIGHT_LIB_SIM_COREMESH_WAVELETS_CORE_H

//===----------------------------------------------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A program and a machine as the timing takes them, read from words.
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_LIB_SIM_COREMESH_TIMING_MODEL_H
#define TILEWRIGHT_LIB_SIM_COREMESH_TIMING_MODEL_H

#include "lib/Sim/CoreMesh/Timing/Expression.h"

#include <array>
#include <string>

namespace twmesh::timing {

enum class Topology : int64_t { Mesh, Torus, Exchange };
enum class Sync : int64_t { Dataflow, Rendezvous, Lockstep };
enum Direction { East, West, South, North };

struct Config {
  int64_t height, width;
  Topology topology;
  /// Ticks per hop, of a message besides, and of a wavelet on a link.
  int64_t hop, message, wavelet;
  /// Wavelets of a message that wait at a core which does not take them.
  int64_t waiting;
  Sync sync;
  /// Wavelets that the fabric holds per hop; -1: any number.
  int64_t entries;
  /// Alike rows are computed once; loops that repeat are left early.
  bool share, period;
  /// Executions of instructions after which it is an error.
  int64_t most;
  /// Hops around a broken link; -1: there is no way around.
  int64_t detour;
  /// (y, x), and (y, x, direction).
  std::vector<std::array<int64_t, 2>> deadCores;
  std::vector<std::array<int64_t, 3>> deadLinks;
};

/// Who takes part: where all of these hold.
struct CoreSet {
  bool ring;
  std::vector<Expression> atLeastZero, zero;
  int depth() const;
  /// Whether any of these depends on a dimension.
  bool uses(int dim) const;
};

struct Route {
  bool alongX, ring;
  Expression source;
  /// The instructions that receive from it.
  std::vector<int> receivers;
};

enum class Op : int64_t { Compute, Send, Recv, Relay, Wait, Loop };

struct Instruction {
  Op op;
  int number = 0;
  /// The loops around, by the numbers of their instructions.
  std::vector<int> loops;
  CoreSet cores;
  /// Equal sets have one number.
  int set = -1;
  int incoming = -1, outgoing = -1;
  int token = -1;
  /// Of a computation, a message on its links, a wait.
  int64_t ticks = 0;
  int64_t wavelets = 0;
  /// The buffer that a receive combines into; -1: it stores.
  int combines = -1;
  std::vector<int64_t> tokens;
  int64_t count = 0;
  std::vector<int> body;
};

struct Program {
  std::vector<Route> routes;
  int64_t tokens = 0, buffers = 0;
  std::vector<Instruction> instructions;
  std::vector<int> body;
};

Config readConfig(const int64_t *&words);
Program readProgram(const int64_t *&words);

} // namespace twmesh::timing

#endif // TILEWRIGHT_LIB_SIM_COREMESH_TIMING_MODEL_H

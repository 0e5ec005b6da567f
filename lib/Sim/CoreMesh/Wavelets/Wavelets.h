//===----------------------------------------------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The wavelet simulator: routers, queues and cores of a mesh, cycle by cycle,
// where something happens. A program comes as one stream of instructions per
// core; no values move, only who may go on when.
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_LIB_SIM_COREMESH_WAVELETS_WAVELETS_H
#define TILEWRIGHT_LIB_SIM_COREMESH_WAVELETS_WAVELETS_H

#include "lib/Sim/CoreMesh/Library.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  TWMESH_COMPUTE = 0, ///< detail: number of a kernel
  TWMESH_BUSY = 1,    ///< detail: cycles
  TWMESH_SEND = 2,
  TWMESH_RECV = 3,
  TWMESH_RELAY = 4,
  TWMESH_WAIT = 5, ///< for `token`
};

/// One instruction of one core.
typedef struct {
  int32_t op;
  int32_t token;
  int32_t inRoute, outRoute; ///< which of the core's engines; -1: none
  int32_t inFlow, outFlow;   ///< -1: none
  int32_t wavelets;          ///< of the message
  int32_t address;           ///< of the slot in bytes; -1: not known
  int32_t combines;          ///< number of the slot combined into; -1: none
  int32_t detail;
} twmesh_instruction;

/// One kernel: `cycles` at least; where addresses are known, the bytes that it
/// moves. Its accesses per bank stand apart.
typedef struct {
  int64_t cycles;
  int64_t readBytes, writeBytes;
} twmesh_kernel;

/// A machine and a program for it. A flow is what one core sends on one route,
/// to `destinations[destinationBegin[f]..destinationBegin[f + 1])`, all in its
/// row or column. Flows of one channel share queues; a channel is a color, or
/// one flow's own.
typedef struct {
  int32_t height, width;
  int32_t torus; ///< rows and columns are closed to rings
  int32_t alpha; ///< cycles per hop, at least 1
  int32_t ramp;  ///< cycles between core and router, at least 1
  int32_t stage; ///< cycles of a relay's instruction, at least 1
  int32_t base;  ///< cycles that a message takes before its first wavelet
  int32_t depth; ///< entries of a queue
  int32_t waveletBytes;     ///< of one link in one cycle
  int32_t banks, bankBytes; ///< of a core's memory: how many, capacity of one
  int32_t accessBytes;      ///< of one access to a bank
  int32_t readBytes, writeBytes; ///< per cycle of a core's memory
  int64_t limit;                 ///< cycles after which it is an error
  int32_t flows, channels, tokens, kernels;
  const int32_t *flowSource;
  const int32_t *flowRoute; ///< as in `inRoute`
  const int32_t *flowChannel;
  const int32_t *destinationBegin; ///< [flows + 1]
  const int32_t *destinations;
  const twmesh_kernel *kernel;
  const int32_t *kernelAccesses;          ///< [kernels][banks]
  const int64_t *begin;                   ///< [cores + 1]
  const twmesh_instruction *instructions; ///< core by core
} twmesh_program;

enum { TWMESH_DONE = 0, TWMESH_DEADLOCK = 1, TWMESH_LIMIT = 2 };

/// Who waits, as a link of the chain that a deadlock is: an instruction of a
/// core, and why.
enum {
  TWMESH_AWAITS_DATA = 0,  ///< no wavelet came
  TWMESH_AWAITS_TURN = 1,  ///< an earlier instruction comes first
  TWMESH_AWAITS_ROOM = 2,  ///< queues on the way are full
  TWMESH_AWAITS_TOKEN = 3, ///< stands at a wait
  TWMESH_AT_END = 4,       ///< has no more instructions
};
typedef struct {
  int32_t core;
  int32_t reason;
  int64_t instruction; ///< index into `instructions`; -1: at the end
} twmesh_waiter;

/// What came out. `links`: wavelets that left each router by north, south,
/// east, west, and to its core.
typedef struct {
  int32_t status;
  int64_t cycles;
  int64_t unfinished; ///< cores
  int64_t *finish;    ///< [cores]
  int64_t *compute;   ///< cycles in kernels, [cores]
  int64_t *links;     ///< [cores][5]
  int32_t waiters;    ///< in: room; out: how many
  int32_t cycleBegin; ///< from which waiter on they wait for each other
  twmesh_waiter *waiter;
} twmesh_outcome;

/// What a part of a core did for one instruction: its thread ran a kernel, was
/// busy or waited; an engine took wavelets in, or sent them.
enum { TWMESH_THREAD = 0, TWMESH_IN = 1, TWMESH_OUT = 2 };
typedef struct {
  int64_t instruction; ///< index into `instructions`
  int32_t engine;
  int64_t started; ///< when the thread came to it
  int64_t begin,
      end; ///< of the kernel, the wait, the first to the last wavelet
} twmesh_event;

/// Events of the cores that are `traced`.
typedef struct {
  const uint8_t *traced; ///< [cores]
  int64_t room;          ///< in: of `event`
  int64_t count;         ///< out: what happened, also where there was no room
  twmesh_event *event;
} twmesh_trace;

/// Runs a program. Returns 0, or -1 if it makes no sense: see `twmesh_error`.
/// `trace` may be null.
TWMESH_EXPORT int32_t twmesh_wavelets(const twmesh_program *program,
                                      twmesh_outcome *outcome,
                                      twmesh_trace *trace);

#ifdef __cplusplus
}
#endif

#endif // TILEWRIGHT_LIB_SIM_COREMESH_WAVELETS_WAVELETS_H

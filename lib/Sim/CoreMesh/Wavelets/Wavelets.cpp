//===----------------------------------------------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Sim/CoreMesh/Wavelets/Wavelets.h"
#include "lib/Sim/CoreMesh/Wavelets/Deadlock.h"

#include <algorithm>
#include <exception>
#include <optional>

using namespace twmesh::wavelets;

/// What of a program would send the simulator astray; null: nothing.
static const char *checkMachine(const twmesh_program &program) {
  if (program.height < 1 || program.width < 1)
    return "a mesh needs at least one row and one column";
  if (program.alpha < 1 || program.ramp < 1 || program.stage < 1)
    return "hops, ramps and stages take at least one cycle";
  for (int32_t most : {program.alpha, program.ramp, program.stage, program.base,
                       program.depth})
    if (most > 1 << 20)
      return "hops, ramps, stages, messages and queues are beyond 2^20";
  if (program.limit < 1 || program.limit > INT32_MAX / 2)
    return "the limit of cycles is not between 1 and 2^30";
  if (program.depth < 1 || program.waveletBytes < 1)
    return "queues hold at least one wavelet, and that at least one byte";
  if (program.banks < 1 || program.bankBytes < 1 || program.accessBytes < 1 ||
      program.readBytes < 1 || program.writeBytes < 1)
    return "memory has at least one bank and moves at least one byte";
  return nullptr;
}

/// Whether a flow ends at a core: it may receive from it.
static bool delivers(const twmesh_program &program, int32_t flow,
                     int32_t core) {
  const int32_t *begin = program.destinations + program.destinationBegin[flow];
  const int32_t *end =
      program.destinations + program.destinationBegin[flow + 1];
  return std::find(begin, end, core) != end;
}

static const char *checkInstruction(const twmesh_program &program,
                                    const twmesh_instruction &what,
                                    int32_t core) {
  bool moves = what.op >= TWMESH_SEND && what.op <= TWMESH_RELAY;
  bool takes = what.op == TWMESH_RECV || what.op == TWMESH_RELAY;
  bool sends = what.op == TWMESH_SEND || what.op == TWMESH_RELAY;
  if (what.op < TWMESH_COMPUTE || what.op > TWMESH_WAIT)
    return "an instruction is unknown";
  if ((moves || what.op == TWMESH_WAIT) &&
      (what.token < 0 || what.token >= program.tokens))
    return "a token is unknown";
  if (moves && what.wavelets < 1)
    return "a message is empty";
  if (takes && (what.inFlow < 0 || what.inFlow >= program.flows ||
                what.inRoute < 0 || !delivers(program, what.inFlow, core)))
    return "a core receives what does not come to it";
  if (sends && (what.outFlow < 0 || what.outFlow >= program.flows ||
                what.outRoute < 0 || program.flowSource[what.outFlow] != core))
    return "a core sends what is another's";
  if (what.op == TWMESH_COMPUTE &&
      (what.detail < 0 || what.detail >= program.kernels))
    return "a kernel is unknown";
  return nullptr;
}

static const char *check(const twmesh_program &program) {
  if (const char *reason = checkMachine(program))
    return reason;
  int32_t cores = program.height * program.width;
  for (int32_t core = 0; core < cores; ++core)
    for (int64_t i = program.begin[core]; i < program.begin[core + 1]; ++i)
      if (const char *reason =
              checkInstruction(program, program.instructions[i], core))
        return reason;
  return nullptr;
}

/// Cycle after cycle in which something happens; returns the last.
static int64_t runAll(const twmesh_program &program, Network &network,
                      std::vector<Core> &cores) {
  for (Core &core : cores)
    core.step(0);
  std::vector<int32_t> awake;
  int64_t now = 0;
  while (true) {
    int64_t far = network.next(now), near = network.coreAgenda.next(now);
    if (far < 0 || (near >= 0 && near < far))
      far = near;
    if (far < 0 || far > program.limit)
      return far < 0 ? now : far;
    now = far;
    network.step(now);
    network.coreAgenda.take(now, awake);
    for (int32_t number : awake)
      cores[number].step(now);
  }
}

static void report(const twmesh_program &program, const Network &network,
                   const std::vector<Core> &cores, int64_t now,
                   twmesh_outcome &outcome) {
  outcome.cycles = 0;
  outcome.unfinished = 0;
  for (size_t core = 0; core < cores.size(); ++core) {
    outcome.finish[core] = cores[core].finishedAt;
    outcome.compute[core] = cores[core].computed;
    outcome.cycles = std::max(outcome.cycles, cores[core].finishedAt);
    outcome.unfinished += !cores[core].finished();
  }
  std::copy(network.passed.begin(), network.passed.end(), outcome.links);
  outcome.status = TWMESH_DONE;
  if (now > program.limit)
    outcome.status = TWMESH_LIMIT;
  else if (outcome.unfinished)
    outcome.status = TWMESH_DEADLOCK;
  if (outcome.status == TWMESH_DONE)
    outcome.waiters = 0;
  else
    Deadlock(program, network, cores, now + 1).explain(outcome);
}

int32_t twmesh_wavelets(const twmesh_program *program, twmesh_outcome *outcome,
                        twmesh_trace *trace) try {
  if (const char *reason = check(*program))
    return twmesh::fail(reason);
  Network network(*program);
  std::vector<Core> cores;
  int32_t count = program->height * program->width;
  cores.reserve(count);
  std::optional<Trace> events;
  if (trace)
    events.emplace(*program, *trace);
  for (int32_t core = 0; core < count; ++core)
    cores.emplace_back(*program, network, core,
                       trace && trace->traced[core] ? &*events : nullptr);
  int64_t now = runAll(*program, network, cores);
  report(*program, network, cores, now, *outcome);
  return 0;
} catch (const std::exception &error) {
  return twmesh::fail(error.what());
}

//===----------------------------------------------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Sim/CoreMesh/Wavelets/Core.h"

#include <algorithm>

using namespace twmesh::wavelets;

static int64_t ceilDiv(int64_t amount, int64_t by) {
  return (amount + by - 1) / by;
}

bool Banks::access(int64_t address, bool writes, int64_t now) {
  int64_t bank =
      std::min<int64_t>(address / program->bankBytes, program->banks - 1);
  int64_t when = std::max(busy[bank] + 1, now);
  if (when > now + writes)
    return false;
  busy[bank] = when;
  ++taken[bank];
  (writes ? writeTaken : readTaken) += program->accessBytes;
  return true;
}

void Banks::startKernel(int32_t number, int64_t now) {
  kernel = number;
  const twmesh_kernel &what = program->kernel[number];
  moves = what.readBytes || what.writeBytes;
  began = now;
  readTaken = writeTaken = 0;
  std::fill(taken.begin(), taken.end(), 0);
}

int64_t Banks::movedEnd() const {
  const twmesh_kernel &what = program->kernel[kernel];
  int64_t cycles = what.cycles;
  auto atLeast = [&](int64_t own, int64_t others, int64_t perCycle) {
    if (own)
      cycles = std::max(cycles, ceilDiv(own + others, perCycle));
  };
  atLeast(what.readBytes, readTaken, program->readBytes);
  atLeast(what.writeBytes, writeTaken, program->writeBytes);
  const int32_t *accesses =
      program->kernelAccesses + int64_t(kernel) * program->banks;
  for (int32_t bank = 0; bank < program->banks; ++bank)
    atLeast(accesses[bank], taken[bank], 1);
  return began + cycles;
}

void Transfer::start(const twmesh_instruction &what, int32_t room) {
  std::vector<int64_t> kept = std::move(leaves);
  *this = Transfer();
  leaves = std::move(kept);
  instruction = &what;
  wavelets = what.wavelets;
  address = what.address;
  outFlow = what.outFlow;
  relays = what.op == TWMESH_RELAY;
  combines = relays || what.combines >= 0;
  if (relays)
    leaves.resize(room);
}

void Core::Engine::push(Transfer &transfer, Transfer *Transfer::*next) {
  if (first)
    last->*next = &transfer;
  else
    first = &transfer;
  last = &transfer;
}

Core::Core(const twmesh_program &program, Network &network, int32_t number,
           Trace *trace)
    : program(program), network(network), number(number),
      pc(program.instructions + program.begin[number]),
      last(program.instructions + program.begin[number + 1]), banks(program),
      tokens(program.tokens, 0), trace(trace) {}

void Core::step(int64_t now) {
  if (stepped == now)
    return;
  stepped = now;
  completeReceives();
  bool moved = receive(now);
  if (runThread(now))
    moved |= receive(now);
  if (send(now) && runThread(now))
    moved |= receive(now);
  if (moved)
    wake(now, now + 1);
  if (finished() && finishedAt < 0)
    finishedAt = now;
}

/// What came in an earlier cycle is in memory.
void Core::completeReceives() {
  for (Transfer *transfer : arrived)
    finish(*transfer);
  arrived.clear();
}

/// Starts instructions until one takes time; whether any was started.
bool Core::runThread(int64_t now) {
  bool any = false;
  while (pc != last && startNext(now))
    any = true;
  return any;
}

/// Goes past the next instruction; false: it takes longer.
bool Core::startNext(int64_t now) {
  switch (pc->op) {
  case TWMESH_WAIT:
    if (waits(now))
      return false;
    break;
  case TWMESH_COMPUTE:
  case TWMESH_BUSY:
    if (!runs(now))
      return false;
    break;
  default:
    startTransfer(now);
  }
  ++pc;
  return true;
}

/// Whether the thread stands at a wait for what is not done.
bool Core::waits(int64_t now) {
  if (outstanding(pc->token)) {
    if (waitsSince < 0)
      waitsSince = now;
    return true;
  }
  if (trace && waitsSince >= 0)
    trace->add(*pc, TWMESH_THREAD, waitsSince, waitsSince, now);
  waitsSince = -1;
  return false;
}

/// Whether the kernel, or the overhead, that the thread stands at is over; it
/// is started where it was not.
bool Core::runs(int64_t now) {
  bool isKernel = pc->op == TWMESH_COMPUTE;
  if (!computing) {
    computing = true;
    began = now;
    awaited = -1;
    if (isKernel)
      banks.startKernel(pc->detail, now);
  }
  int64_t until = isKernel ? banks.kernelEnd() : began + pc->detail;
  if (until <= now) {
    computing = false;
    computed += isKernel ? now - began : 0;
    if (trace)
      trace->add(*pc, TWMESH_THREAD, began, began, now);
    return true;
  }
  if (until != awaited)
    wake(now, until);
  awaited = until;
  return false;
}

void Core::startTransfer(int64_t now) {
  if (spare.empty()) {
    pool.emplace_back();
    spare.push_back(&pool.back());
  }
  Transfer &transfer = *spare.back();
  spare.pop_back();
  transfer.start(*pc, program.stage + 1);
  transfer.started = now;
  ++live;
  ++tokens[pc->token];
  if (pc->inRoute >= 0) {
    transfer.end = network.end(pc->inFlow, number);
    engine(inbound, pc->inRoute).push(transfer, &Transfer::nextIn);
  }
  if (pc->op == TWMESH_SEND) {
    transfer.earliest = now + program.base + program.stage;
    wake(now, transfer.earliest);
  }
  if (pc->outRoute >= 0)
    engine(outbound, pc->outRoute).push(transfer, &Transfer::nextOut);
  if (pc->combines < 0)
    return;
  for (auto &[slot, previous] : combining)
    if (slot == pc->combines) {
      transfer.before = previous;
      previous = &transfer;
      return;
    }
  combining.emplace_back(pc->combines, &transfer);
}

Core::Engine &Core::engine(std::vector<Engine> &engines, int32_t route) {
  for (Engine &known : engines)
    if (known.route == route)
      return known;
  engines.push_back({route});
  return engines.back();
}

const Transfer *Core::front(const std::vector<Engine> &engines, int32_t route) {
  for (const Engine &known : engines)
    if (known.route == route)
      return known.first;
  return nullptr;
}

const Transfer *Core::unfinished(int32_t token) const {
  auto search = [&](const std::vector<Engine> &engines,
                    Transfer *Transfer::*next) -> const Transfer * {
    for (const Engine &known : engines)
      for (const Transfer *one = known.first; one; one = one->*next)
        if (token < 0 || one->instruction->token == token)
          return one;
    return nullptr;
  };
  const Transfer *found = search(inbound, &Transfer::nextIn);
  return found ? found : search(outbound, &Transfer::nextOut);
}

/// One wavelet per engine; whether any came.
bool Core::receive(int64_t now) {
  bool any = false;
  for (Engine &known : inbound)
    if (known.first && known.moved != now)
      any |= receiveOn(known, now);
  return any;
}

bool Core::receiveOn(Engine &known, int64_t now) {
  Transfer &transfer = *known.first;
  if (!network.canTake(transfer.end, now))
    return false;
  if (transfer.before && transfer.before->taken <= transfer.taken)
    return false;
  int32_t room = program.stage + 1;
  if (transfer.relays && transfer.taken - transfer.sent == room)
    return false;
  if (!touch(transfer, transfer.taken, transfer.combines, !transfer.relays,
             now))
    return false;
  network.take(transfer.end, now);
  known.moved = now;
  if (!transfer.taken)
    transfer.firstIn = now;
  if (transfer.relays) {
    if (!transfer.taken)
      transfer.earliest = now + program.base;
    int64_t leaves = std::max(now + program.stage, transfer.earliest);
    transfer.leaves[transfer.taken % room] = leaves;
    wake(now, leaves);
  }
  if (++transfer.taken < transfer.wavelets)
    return true;
  known.pop(&Transfer::nextIn);
  if (trace)
    trace->add(*transfer.instruction, TWMESH_IN, transfer.started,
               transfer.firstIn, now + 1);
  if (!transfer.relays)
    arrived.push_back(&transfer);
  return true;
}

/// One wavelet of one engine, in turn; whether that was a transfer's last.
bool Core::send(int64_t now) {
  size_t engines = outbound.size();
  for (size_t i = 0; i < engines; ++i) {
    size_t chosen = turn + i < engines ? turn + i : turn + i - engines;
    Transfer *transfer = outbound[chosen].first;
    if (!transfer || !sendOn(*transfer, now))
      continue;
    turn = chosen + 1 < engines ? chosen + 1 : 0;
    wake(now, now + 1);
    if (transfer->sent < transfer->wavelets)
      return false;
    outbound[chosen].pop(&Transfer::nextOut);
    if (trace)
      trace->add(*transfer->instruction, TWMESH_OUT, transfer->started,
                 transfer->firstOut, now + 1);
    finish(*transfer);
    return true;
  }
  return false;
}

/// Whether the next wavelet of a transfer is there to be sent.
bool Core::hasNext(const Transfer &transfer, int64_t now) const {
  if (!transfer.relays)
    return now >= transfer.earliest;
  return transfer.sent < transfer.taken &&
         transfer.leaves[transfer.sent % (program.stage + 1)] <= now;
}

bool Core::sendOn(Transfer &transfer, int64_t now) {
  if (!hasNext(transfer, now) || !network.canInject(transfer.outFlow, now))
    return false;
  if (!transfer.relays && !touch(transfer, transfer.sent, true, false, now))
    return false;
  network.inject(transfer.outFlow, now);
  if (!transfer.sent)
    transfer.firstOut = now;
  ++transfer.sent;
  return true;
}

/// Whether memory serves an engine's next wavelet: an access holds for as many
/// wavelets as it has bytes of.
bool Core::touch(const Transfer &transfer, int32_t wavelet, bool reads,
                 bool writes, int64_t now) {
  if (transfer.address < 0)
    return true;
  int32_t held = std::max(program.accessBytes / program.waveletBytes, 1);
  int64_t address = transfer.address + int64_t(wavelet) * program.waveletBytes;
  bool begins = wavelet % held == 0;
  bool ends = wavelet % held == held - 1 || wavelet + 1 == transfer.wavelets;
  if ((reads && begins && !banks.access(address, false, now)) ||
      (writes && ends && !banks.access(address, true, now))) {
    wake(now, now + 1);
    return false;
  }
  return true;
}

void Core::finish(Transfer &transfer) {
  --tokens[transfer.instruction->token];
  --live;
  if (transfer.instruction->combines >= 0) {
    for (auto it = combining.begin(); it != combining.end(); ++it)
      if (it->second == &transfer) {
        combining.erase(it);
        break;
      }
    for (Engine &known : inbound)
      for (Transfer *other = known.first; other; other = other->nextIn)
        if (other->before == &transfer)
          other->before = nullptr;
  }
  spare.push_back(&transfer);
}

//===----------------------------------------------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Sim/CoreMesh/Timing/Engine.h"
#include "lib/Sim/CoreMesh/Timing/Ops.h"

#include <algorithm>
#include <stdexcept>

using namespace twmesh::timing;

Engine::Engine(const Config &config, const Program &program)
    : config(config), program(program), layout_(config, program),
      rows_(config.width, config.share),
      nobody(layout_.intern(std::vector<char>(config.width, 0))),
      now(config.height, rows_.constant(Cell())), tokens(program.tokens),
      sendFree(program.routes.size()), recvFree(program.routes.size()),
      combined(program.buffers), queues(program.routes.size()) {}

void Engine::run() {
  runBody(program.body);
  finish();
}

void Engine::runBody(const std::vector<int> &body) {
  for (size_t at = 0; at < body.size(); ++at) {
    const Instruction &instruction = program.instructions[body[at]];
    count(body[at]);
    switch (instruction.op) {
    case Op::Compute:
      at = compute(body, at);
      break;
    case Op::Send:
      send(instruction);
      break;
    case Op::Recv:
    case Op::Relay:
      post(instruction);
      break;
    case Op::Wait:
      wait(instruction);
      break;
    case Op::Loop:
      runLoop(instruction);
      break;
    }
  }
}

/// Counts an instruction that is executed.
void Engine::count(int number) {
  if (++executed <= config.most)
    return;
  throw std::runtime_error(
      "it takes more than the limit of " + std::to_string(config.most) +
      " instructions, those of loops counted in each turn; it stands at "
      "instruction " +
      std::to_string(number) + turns() +
      ": raise `limit` if it should take that long, let loops repeat "
      "(`period`), or time a smaller grid");
}

/// The turns of the loops around, for messages.
std::string Engine::turns() const {
  std::string text;
  for (int64_t turn : loops)
    text += (text.empty() ? ", in turn " : " / ") + std::to_string(turn);
  return text;
}

/// Computations that follow each other and take as long: those of other cores
/// are one operation on a row. Returns the place of the last.
size_t Engine::compute(const std::vector<int> &body, size_t at) {
  int64_t ticks = program.instructions[body[at]].ticks;
  auto joins = [&](size_t next) {
    const Instruction &one = program.instructions[body[next]];
    return one.op == Op::Compute && one.ticks == ticks;
  };
  std::vector<const Masks *> all;
  for (;; count(body[++at])) {
    all.push_back(&layout_.masks(program.instructions[body[at]], loops));
    if (at + 1 == body.size() || !joins(at + 1))
      break;
  }
  for (int64_t y = 0; y < config.height && ticks; ++y) {
    const Mask *mask = nobody;
    for (const Masks *masks : all) {
      if (layout_.both(mask, (*masks)[y])->count) {
        compute(y, mask, ticks);
        mask = nobody;
      }
      mask = layout_.either(mask, (*masks)[y]);
    }
    compute(y, mask, ticks);
  }
  return at;
}

void Engine::compute(int64_t y, const Mask *mask, int64_t ticks) {
  if (mask->all())
    now[y] = now[y].shifted({ticks, ticks, 0, 0});
  else if (mask->count)
    rows_.apply({OpCompute, word(mask), uint64_t(ticks)}, {&now[y]}, {&now[y]},
                [&](const Cells *in, Cell *const *out) {
                  for (size_t x = 0; x < rows_.width; ++x)
                    out[0][x] = mask->on[x]
                                    ? in[0][x] + Cell{ticks, ticks, 0, 0}
                                    : in[0][x];
                });
}

/// The later of both, core by core.
void Engine::keepLater(Row &kept, const Row &other) {
  rows_.each(true, {OpLater}, {&kept, &other}, {&kept},
             [](const Cells *in, Cell *const *out, size_t x) {
               out[0][x] = later(in[0][x], in[1][x]);
             });
}

/// The row that is later than all others everywhere, if there is one.
static const Row *decisive(const std::vector<const Row *> &rows) {
  const Row *last = *std::max_element(
      rows.begin(), rows.end(),
      [](const Row *a, const Row *b) { return a->base.time < b->base.time; });
  bool behind = last->whole() && rows.size() > 1 && last != rows.front() &&
                std::all_of(rows.begin(), rows.end(), [&](const Row *row) {
                  return row == last || last->behind(*row);
                });
  return behind ? last : nullptr;
}

void Engine::wait(const Instruction &instruction) {
  retry(true);
  checkPosted(instruction.tokens);
  int64_t ticks = instruction.ticks;
  bool always = instruction.tokens.empty();
  std::vector<const Row *> in;
  for (int64_t y = 0; y < config.height; ++y) {
    in.assign(1, &now[y]);
    for (int64_t token : instruction.tokens)
      if (!tokens[token].empty() && !tokens[token][y].none())
        in.push_back(&tokens[token][y]);
    if (in.size() == 1 && !(always && ticks))
      continue;
    if (const Row *last = decisive(in)) {
      now[y] = last->shifted({ticks, 0, ticks, 0});
      continue;
    }
    rows_.each(true, {OpWait, uint64_t(ticks), always}, in, {&now[y]},
               [&](const Cells *rows, Cell *const *out, size_t x) {
                 Cell latest = rows[0][x];
                 bool waits = always;
                 for (size_t one = 1; one < in.size(); ++one) {
                   waits |= happens(rows[one][x]);
                   latest = later(latest, rows[one][x]);
                 }
                 out[0][x] = waits ? latest + Cell{ticks, 0, ticks, 0} : latest;
               });
  }
  for (int64_t token : instruction.tokens)
    tokens[token].clear();
  if (config.sync == Sync::Lockstep)
    align();
  // Engines that are free by now delay nothing any longer.
  for (auto *engines : {&sendFree, &recvFree, &combined})
    for (Clocks &clocks : *engines)
      prune(clocks, nullptr);
  for (Ramps *ramps : {&leaving, &entering})
    prune(ramps->until, &ramps->from);
}

/// Forgets clocks that are no later than their cores', and what belongs to
/// them.
void Engine::prune(Clocks &clocks, Clocks *with) {
  bool busy = false;
  static const Row none;
  for (int64_t y = 0; y < config.height && !clocks.empty(); ++y) {
    if (clocks[y].none())
      continue;
    if (now[y].covers(clocks[y])) {
      clocks[y] = Row();
      if (with)
        (*with)[y] = Row();
      continue;
    }
    if (clocks[y].behind(now[y])) {
      busy = true;
      continue;
    }
    Row unused, &other = with ? (*with)[y] : unused;
    rows_.each(true, {OpPrune}, {&now[y], &clocks[y], with ? &other : &none},
               {&clocks[y], &other},
               [&](const Cells *rows, Cell *const *out, size_t x) {
                 if (rows[1][x].time > rows[0][x].time) {
                   out[0][x] = rows[1][x];
                   out[1][x] = rows[2][x];
                 }
               });
    busy |= !clocks[y].none();
  }
  if (busy)
    return;
  clocks.clear();
  if (with)
    with->clear();
}

/// All cores wait for the last: a row's base is its latest.
void Engine::align() { now.assign(config.height, rows_.constant(latest())); }

Cell Engine::latest() const {
  Cell latest = nothing();
  for (const Row &row : now)
    if (!row.none())
      latest = later(latest, row.base);
  return latest;
}

/// Fails where a receive that is waited for has not got its message, or a
/// sender waits in vain for a receiver.
void Engine::checkPosted(const std::vector<int64_t> &waited) {
  auto fail = [](const std::string &what, const Instruction &instruction) {
    throw std::runtime_error(
        what + " at instruction " + std::to_string(instruction.number) +
        " of the program, counted as they stand: the program never gets past "
        "this wait, or its receivers run ahead of their senders; put a send "
        "before the wait that needs it");
  };
  auto isWaited = [&](int token) {
    return std::count(waited.begin(), waited.end(), token) > 0;
  };
  for (const Posted &one : posted) {
    if (!isWaited(one.instruction->token))
      continue;
    const Masks &masks = layout_.masks(*one.instruction, one.loops);
    for (int64_t y = 0; y < config.height; ++y)
      for (int64_t x = 0; x < config.width; ++x)
        if (masks[y]->on[x])
          fail(nameOf(y, x) +
                   " or one behind waits for a message that is not "
                   "sent before, on route " +
                   std::to_string(one.instruction->incoming) +
                   ", which it receives from",
               *one.instruction);
  }
  if (config.sync != Sync::Rendezvous)
    return;
  for (const std::deque<Event> &queue : queues)
    for (const Event &event : queue)
      for (int64_t y = 0; y < config.height && isWaited(event.token); ++y)
        if (!event.first[y].none())
          throw std::runtime_error(
              "deadlock: a core waits until its message on route " +
              std::to_string(event.route) +
              " is taken, and a receiver in row " + std::to_string(y) +
              " has not come to its receive; under "
              "rendezvous a receive must be started before the wait for its "
              "send");
}

void Engine::finish() {
  retry(true);
  std::vector<int64_t> all(tokens.size());
  for (size_t token = 0; token < all.size(); ++token)
    all[token] = token;
  checkPosted(all);
  for (auto *clocksOf : {&tokens, &sendFree, &recvFree})
    for (const Clocks &clocks : *clocksOf)
      for (int64_t y = 0; y < config.height && !clocks.empty(); ++y)
        keepLater(now[y], clocks[y]);
}

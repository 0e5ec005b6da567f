//===----------------------------------------------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Sim/CoreMesh/Timing/Model.h"

#include <algorithm>

using namespace twmesh::timing;

int CoreSet::depth() const {
  int depth = 0;
  for (const auto *list : {&atLeastZero, &zero})
    for (const Expression &expression : *list)
      depth = std::max(depth, expression.depth());
  return depth;
}

bool CoreSet::uses(int dim) const {
  for (const auto *list : {&atLeastZero, &zero})
    for (const Expression &expression : *list)
      if (expression.uses(dim))
        return true;
  return false;
}

Config twmesh::timing::readConfig(const int64_t *&words) {
  Config config;
  config.height = *words++;
  config.width = *words++;
  config.topology = static_cast<Topology>(*words++);
  config.hop = *words++;
  config.message = *words++;
  config.wavelet = *words++;
  config.waiting = *words++;
  config.sync = static_cast<Sync>(*words++);
  config.entries = *words++;
  config.share = *words++;
  config.period = *words++;
  config.most = *words++;
  config.detour = *words++;
  for (int64_t left = *words++; left > 0; --left, words += 2)
    config.deadCores.push_back({words[0], words[1]});
  for (int64_t left = *words++; left > 0; --left, words += 3)
    config.deadLinks.push_back({words[0], words[1], words[2]});
  return config;
}

/// Places of cores are (y, x), so that x changes along a row.
static CoreSet readCores(const int64_t *&words) {
  CoreSet cores;
  cores.ring = *words++;
  for (auto *list : {&cores.atLeastZero, &cores.zero})
    for (int64_t left = *words++; left > 0; --left)
      list->emplace_back(words, 1);
  return cores;
}

namespace {
class Reader {
public:
  Reader(const int64_t *&words, Program &program)
      : words(words), program(program) {}

  std::vector<int> body() {
    std::vector<int> numbers;
    for (int64_t left = *words++; left > 0; --left)
      numbers.push_back(instruction());
    return numbers;
  }

private:
  int instruction() {
    Instruction read;
    read.op = static_cast<Op>(*words++);
    read.number = static_cast<int>(program.instructions.size());
    read.loops = loops;
    program.instructions.emplace_back();
    if (read.op == Op::Loop)
      readLoop(read);
    else if (read.op == Op::Wait)
      readWait(read);
    else
      readRest(read);
    int number = read.number;
    program.instructions[number] = std::move(read);
    return number;
  }

  void readLoop(Instruction &read) {
    read.count = *words++;
    loops.push_back(read.number);
    read.body = body();
    loops.pop_back();
  }

  void readWait(Instruction &read) {
    for (int64_t left = *words++; left > 0; --left)
      read.tokens.push_back(*words++);
    read.ticks = *words++;
  }

  void readRest(Instruction &read) {
    const int64_t *first = words;
    read.cores = readCores(words);
    read.set = sets.try_emplace(Ints(first, words), sets.size()).first->second;
    read.ticks = *words++;
    if (read.op == Op::Compute)
      return;
    read.incoming = static_cast<int>(*words++);
    read.outgoing = static_cast<int>(*words++);
    read.token = static_cast<int>(*words++);
    read.wavelets = *words++;
    read.combines = static_cast<int>(*words++);
    if (read.incoming >= 0)
      program.routes[read.incoming].receivers.push_back(read.number);
  }

  const int64_t *&words;
  Program &program;
  std::vector<int> loops;
  std::map<Ints, int> sets;
};
} // namespace

Program twmesh::timing::readProgram(const int64_t *&words) {
  Program program;
  for (int64_t left = *words++; left > 0; --left) {
    bool alongX = *words++, ring = *words++;
    // Places on a route are (p, q): along its axis, and across.
    program.routes.push_back({alongX, ring, {words, alongX ? 0 : 1}, {}});
  }
  program.tokens = *words++;
  program.buffers = *words++;
  program.body = Reader(words, program).body();
  return program;
}

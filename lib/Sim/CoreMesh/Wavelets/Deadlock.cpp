//===----------------------------------------------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Sim/CoreMesh/Wavelets/Deadlock.h"

#include <algorithm>

using namespace twmesh::wavelets;

void Deadlock::explain(twmesh_outcome &outcome) const {
  std::vector<Node> seen;
  Node node = firstNode();
  int32_t room = outcome.waiters;
  for (outcome.waiters = 0; outcome.waiters < room; ++outcome.waiters) {
    auto known = std::find(seen.begin(), seen.end(), node);
    if (known != seen.end()) {
      outcome.cycleBegin = known - seen.begin();
      return;
    }
    seen.push_back(node);
    auto [next, reason] = follow(node);
    outcome.waiter[outcome.waiters] = {node.core, reason, instruction(node)};
    node = next;
  }
  outcome.cycleBegin = 0;
}

Deadlock::Node Deadlock::firstNode() const {
  for (size_t core = 0; core < cores.size(); ++core)
    if (!cores[core].finished())
      return {int32_t(core), nullptr, false};
  return {0, nullptr, false};
}

int64_t Deadlock::instruction(const Node &node) const {
  const twmesh_instruction *what =
      node.transfer ? node.transfer->instruction : cores[node.core].standsAt();
  return what ? what - program.instructions : -1;
}

std::pair<Deadlock::Node, int32_t> Deadlock::follow(const Node &node) const {
  if (!node.transfer)
    return followThread(node);
  return node.sends ? followSend(node) : followReceive(node);
}

std::pair<Deadlock::Node, int32_t>
Deadlock::followThread(const Node &node) const {
  const twmesh_instruction *what = cores[node.core].standsAt();
  const Transfer *open = what ? cores[node.core].unfinished(what->token)
                              : cores[node.core].anyUnfinished();
  int32_t reason = what ? TWMESH_AWAITS_TOKEN : TWMESH_AT_END;
  if (!open)
    return {node, reason};
  bool sends = open->taken == open->instruction->wavelets ||
               open->instruction->inRoute < 0;
  return {{node.core, open, sends}, reason};
}

std::pair<Deadlock::Node, int32_t>
Deadlock::followReceive(const Node &node) const {
  const Transfer &transfer = *node.transfer;
  const twmesh_instruction &what = *transfer.instruction;
  const Transfer *first = cores[node.core].firstIn(what.inRoute);
  if (first && first != &transfer)
    return {receiving(node.core, first), TWMESH_AWAITS_TURN};
  if (transfer.before && transfer.before->taken <= transfer.taken)
    return {receiving(node.core, transfer.before), TWMESH_AWAITS_TURN};
  if (network.canTake(transfer.end, now)) // a relay that cannot send on
    return {{node.core, &transfer, true}, TWMESH_AWAITS_ROOM};
  int32_t source = program.flowSource[what.inFlow];
  const Transfer *sending = cores[source].firstOut(what.inRoute);
  return {{source, sending, sending != nullptr}, TWMESH_AWAITS_DATA};
}

std::pair<Deadlock::Node, int32_t>
Deadlock::followSend(const Node &node) const {
  const Transfer &transfer = *node.transfer;
  const twmesh_instruction &what = *transfer.instruction;
  const Transfer *first = cores[node.core].firstOut(what.outRoute);
  if (first && first != &transfer)
    return {{node.core, first, true}, TWMESH_AWAITS_TURN};
  if (what.inRoute >= 0 && transfer.taken == transfer.sent)
    return {receiving(node.core, &transfer), TWMESH_AWAITS_DATA};
  auto [core, flow] = network.blockedBy(what.outFlow, now);
  const Transfer *taking = cores[core].firstIn(program.flowRoute[flow]);
  return {receiving(core, taking), TWMESH_AWAITS_ROOM};
}

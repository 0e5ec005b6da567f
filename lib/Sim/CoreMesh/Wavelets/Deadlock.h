//===----------------------------------------------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Who waits for whom, when nothing can go on any more.
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_LIB_SIM_COREMESH_WAVELETS_DEADLOCK_H
#define TILEWRIGHT_LIB_SIM_COREMESH_WAVELETS_DEADLOCK_H

#include "lib/Sim/CoreMesh/Wavelets/Core.h"

namespace twmesh::wavelets {

/// Follows one reason after another from a core that is not finished, until
/// one comes again: from `cycleBegin` on, they are a cycle.
class Deadlock {
public:
  Deadlock(const twmesh_program &program, const Network &network,
           const std::vector<Core> &cores, int64_t now)
      : program(program), network(network), cores(cores), now(now) {}

  void explain(twmesh_outcome &outcome) const;

private:
  /// A transfer and which half of it waits; none: the core's thread.
  struct Node {
    int32_t core;
    const Transfer *transfer;
    bool sends;
    bool operator==(const Node &other) const {
      return core == other.core && transfer == other.transfer &&
             sends == other.sends;
    }
  };

  Node firstNode() const;
  /// What a node waits for, and why; a node without a next waits for itself.
  std::pair<Node, int32_t> follow(const Node &node) const;
  std::pair<Node, int32_t> followThread(const Node &node) const;
  std::pair<Node, int32_t> followReceive(const Node &node) const;
  std::pair<Node, int32_t> followSend(const Node &node) const;
  Node receiving(int32_t core, const Transfer *transfer) const {
    return {core, transfer, false};
  }
  int64_t instruction(const Node &node) const;

  const twmesh_program &program;
  const Network &network;
  const std::vector<Core> &cores;
  int64_t now;
};

} // namespace twmesh::wavelets

#endif // TILEWRIGHT_LIB_SIM_COREMESH_WAVELETS_DEADLOCK_H

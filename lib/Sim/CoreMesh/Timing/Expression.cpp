//===----------------------------------------------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Sim/CoreMesh/Timing/Expression.h"

#include <algorithm>
#include <stdexcept>
#include <string>

using namespace twmesh::timing;

namespace {
enum Op : int64_t { Constant, Dimension, Add, Multiply, Mod, FloorDiv };
} // namespace

Expression::Expression(const int64_t *&words, int along) {
  read(words, along);
  nodes.back().whole = !nodes.back().changes;
  for (const Node &node : nodes)
    if (node.changes && node.left >= 0)
      for (int part : {node.left, node.right})
        nodes[part].whole = !nodes[part].changes;
}

int Expression::read(const int64_t *&words, int along) {
  Node node = {*words++, 0, -1, -1, false, false};
  if (node.op == Constant || node.op == Dimension) {
    node.value = *words++;
    if (node.op == Dimension) {
      dims = std::max(dims, static_cast<int>(node.value) + 1);
      node.changes = node.value == along;
    }
  } else {
    node.left = read(words, along);
    node.right = read(words, along);
    node.changes = nodes[node.left].changes || nodes[node.right].changes;
  }
  nodes.push_back(node);
  return static_cast<int>(nodes.size()) - 1;
}

bool Expression::uses(int dim) const {
  return std::any_of(nodes.begin(), nodes.end(), [&](const Node &node) {
    return node.op == Dimension && node.value == dim;
  });
}

int64_t Expression::compute(int64_t op, int64_t left, int64_t right) {
  // Wraps around as NumPy's integers do.
  if (op == Add)
    return static_cast<int64_t>(static_cast<uint64_t>(left) + right);
  if (op == Multiply)
    return static_cast<int64_t>(static_cast<uint64_t>(left) * right);
  if (right <= 0)
    throw std::runtime_error("an expression of the program divides by " +
                             std::to_string(right) +
                             ": as in MLIR, it must be a positive number");
  int64_t quotient = left / right, rest = left % right;
  if (rest < 0) {
    --quotient;
    rest += right;
  }
  return op == Mod ? rest : quotient;
}

int64_t Expression::evaluate(size_t index, int64_t place, int64_t fixed,
                             const Ints &loops) const {
  const Node &node = nodes[index];
  if (node.op == Constant)
    return node.value;
  if (node.op != Dimension)
    return compute(node.op, values[node.left], values[node.right]);
  if (node.changes)
    return place;
  return node.value < 2 ? fixed : loops[node.value - 2];
}

bool Expression::one(int64_t fixed, const Ints &loops, int64_t &value) const {
  if (nodes.back().changes)
    return false;
  values.resize(nodes.size());
  for (size_t index = 0; index < nodes.size(); ++index)
    values[index] = evaluate(index, 0, fixed, loops);
  value = values.back();
  return true;
}

const Ints &Expression::along(const Ints &places, int64_t fixed,
                              const Ints &loops) const {
  values.resize(nodes.size());
  folded.clear();
  for (size_t index = 0; index < nodes.size(); ++index)
    if (!nodes[index].changes) {
      values[index] = evaluate(index, 0, fixed, loops);
      if (nodes[index].whole)
        folded.push_back(values[index]);
    }
  auto [found, added] = known.try_emplace(folded);
  if (!added)
    return found->second;
  found->second.reserve(places.size());
  for (int64_t place : places) {
    for (size_t index = 0; index < nodes.size(); ++index)
      if (nodes[index].changes)
        values[index] = evaluate(index, place, fixed, loops);
    found->second.push_back(values.back());
  }
  return found->second;
}

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

/// A division by what is no positive number.
[[noreturn]] static void divides(int64_t right) {
  throw std::runtime_error("an expression of the program divides by " +
                           std::to_string(right) +
                           ": as in MLIR, it must be a positive number");
}

inline int64_t Expression::compute(int64_t op, int64_t left, int64_t right) {
  // Wraps around as NumPy's integers do.
  if (op == Add)
    return static_cast<int64_t>(static_cast<uint64_t>(left) + right);
  if (op == Multiply)
    return static_cast<int64_t>(static_cast<uint64_t>(left) * right);
  if (right <= 0)
    divides(right);
  int64_t quotient = left / right, rest = left % right;
  if (rest < 0) {
    --quotient;
    rest += right;
  }
  return op == Mod ? rest : quotient;
}

int64_t Expression::evaluate(size_t index, int64_t fixed,
                             const Ints &loops) const {
  const Node &node = nodes[index];
  if (node.op == Constant)
    return node.value;
  if (node.op != Dimension)
    return compute(node.op, values[node.left], values[node.right]);
  return node.value < 2 ? fixed : loops[node.value - 2];
}

bool Expression::one(int64_t fixed, const Ints &loops, int64_t &value) const {
  if (nodes.back().changes)
    return false;
  values.resize(nodes.size());
  for (size_t index = 0; index < nodes.size(); ++index)
    values[index] = evaluate(index, fixed, loops);
  value = values.back();
  return true;
}

/// The values of a node that changes along a row, where what it is made of is
/// known.
void Expression::column(size_t index, const Ints &places) const {
  const Node &node = nodes[index];
  Ints &made = columns[index];
  if (node.op == Dimension) {
    made = places;
    return;
  }
  made.resize(places.size());
  auto run = [&](auto left, auto right) {
    switch (node.op) {
    case Add:
      for (size_t at = 0; at < made.size(); ++at)
        made[at] = compute(Add, left(at), right(at));
      break;
    case Multiply:
      for (size_t at = 0; at < made.size(); ++at)
        made[at] = compute(Multiply, left(at), right(at));
      break;
    default:
      for (size_t at = 0; at < made.size(); ++at)
        made[at] = compute(node.op, left(at), right(at));
    }
  };
  auto all = [&](int part) {
    return [column = columns[part].data()](size_t at) { return column[at]; };
  };
  auto one = [&](int part) {
    return [value = values[part]](size_t) { return value; };
  };
  if (!nodes[node.right].changes)
    run(all(node.left), one(node.right));
  else if (!nodes[node.left].changes)
    run(one(node.left), all(node.right));
  else
    run(all(node.left), all(node.right));
}

const Ints &Expression::along(const Ints &places, int64_t fixed,
                              const Ints &loops) const {
  values.resize(nodes.size());
  folded.clear();
  for (size_t index = 0; index < nodes.size(); ++index)
    if (!nodes[index].changes) {
      values[index] = evaluate(index, fixed, loops);
      if (nodes[index].whole)
        folded.push_back(values[index]);
    }
  auto [found, added] = known.try_emplace(folded);
  if (!added)
    return found->second;
  // Node by node: one operation for all places is a loop without a choice.
  columns.resize(nodes.size());
  for (size_t index = 0; index < nodes.size(); ++index)
    if (nodes[index].changes)
      column(index, places);
  found->second = columns.back();
  return found->second;
}

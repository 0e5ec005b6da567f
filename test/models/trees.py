# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The programs of `examples/fractal` on trees, for one tree: a node of each level beside the others of its level.

`tree` [leaves, 1, words] holds the words; `children` [nodes, 2], a constant, says which two nodes each node joins, -1
for leaves, which come first. Nodes are in the order of their levels, the root is the last one. That is the best form of
a known tree for a library; programs read the tree in each run.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx

from tilewright.demo.graph import GraphBuilder

from ._weights import Weights

Joined = Callable[[list[str], list[str]], list[str]]


def children_of(leaves: int, even: bool, seed: int) -> np.ndarray:
    """[2 * leaves - 1, 2]: neighbours are joined, in pairs or at random places; nodes in the order of levels."""
    random = np.random.default_rng(seed)
    pairs: list[tuple[int, int]] = []
    levels = [0] * leaves
    parts = list(range(leaves))
    while len(parts) > 1:
        for at in range(len(parts) // 2) if even else [random.integers(len(parts) - 1)]:
            left, right = parts[at : at + 2]
            parts[at : at + 2] = [len(levels)]
            pairs.append((left, right))
            levels.append(1 + max(levels[left], levels[right]))
    order = sorted(range(len(levels)), key=lambda node: (levels[node], node))
    place = {node: number for number, node in enumerate(order)}
    joined = [[place[child] for child in pairs[node - leaves]] for node in order[leaves:]]
    return np.array([[-1, -1]] * leaves + joined, np.int64).reshape(-1, 2)


def depths(children: np.ndarray) -> np.ndarray:
    """The level of each node; that of a leaf is 0."""
    found = np.zeros(len(children), np.int64)
    for node, (left, right) in enumerate(children):
        if left >= 0:
            found[node] = 1 + max(found[left], found[right])
    return found


def _levels(g: GraphBuilder, children: np.ndarray, states: list[str], join: Joined) -> list[str]:
    """States of the root, from those of the leaves."""
    level = depths(children)
    for number in range(1, level[-1] + 1):
        rows = children[level == number]
        left, right = ([g.op("Gather", state, g.const(rows[:, side]), axis=0) for state in states] for side in (0, 1))
        new = join(left, right)
        states = [g.op("Concat", old, part, axis=0) for old, part in zip(states, new, strict=True)]
    root = g.const([len(children) - 1])
    return [g.op("Gather", state, root, axis=0) for state in states]


def tree_lstm(
    words: int = 300, hidden: int = 150, leaves: int = 64, even: bool = False, seed: int = 0
) -> onnx.ModelProto:
    """`tree` -> `h`, `c` [1, hidden] of the root: gates i, o, u, then both forget gates."""
    g, weights = GraphBuilder("tree_lstm"), Weights(seed)
    children = children_of(leaves, even, seed)
    g.weight(children, "children")
    w = g.weight(weights.linear(3 * hidden, words).T.copy(), "w")
    u = g.weight(weights.linear(5 * hidden, 2 * hidden).T.copy(), "u")
    bias = weights.normal(1, 5 * hidden, scale=0.1)
    b = g.weight(bias, "b")
    x = g.op("Reshape", g.input("tree", np.float32, [leaves, 1, words]), g.const([leaves, words]))

    def product(a: str, m: str, added: str, count: int) -> list[str]:
        gates = g.op("Add", g.op("MatMul", a, m), added)
        return list(g.ops("Split", gates, g.const([hidden] * count), outputs=count, axis=1))

    def output(o: str, c: str) -> list[str]:
        return [g.op("Mul", g.op("Sigmoid", o), g.op("Tanh", c)), c]

    def gated(i: str, new: str) -> str:
        return g.op("Mul", g.op("Sigmoid", i), g.op("Tanh", new))

    def join(left: list[str], right: list[str]) -> list[str]:
        (hl, cl), (hr, cr) = left, right
        i, o, new, fl, fr = product(g.op("Concat", hl, hr, axis=1), u, b, 5)
        kept = g.op("Add", g.op("Mul", g.op("Sigmoid", fl), cl), g.op("Mul", g.op("Sigmoid", fr), cr))
        return output(o, g.op("Add", gated(i, new), kept))

    i, o, new = product(x, w, g.const(bias[:, : 3 * hidden], np.float32), 3)
    for name, value in zip("hc", _levels(g, children, output(o, gated(i, new)), join), strict=True):
        g.output(value, name, np.float32, [1, hidden])
    return g.model()


def recursive_autoencoder(hidden: int = 512, leaves: int = 64, even: bool = True, seed: int = 0) -> onnx.ModelProto:
    """`tree` -> `y` [1, hidden]: a layer joins two vectors."""
    g, weights = GraphBuilder("recursive_autoencoder"), Weights(seed)
    children = children_of(leaves, even, seed)
    g.weight(children, "children")
    w = g.weight(weights.linear(hidden, 2 * hidden).T.copy(), "w")
    b = g.weight(weights.normal(1, hidden, scale=0.1), "b")
    x = g.op("Reshape", g.input("tree", np.float32, [leaves, 1, hidden]), g.const([leaves, hidden]))

    def join(left: list[str], right: list[str]) -> list[str]:
        both = g.op("Concat", *left, *right, axis=1)
        return [g.op("Tanh", g.op("Add", g.op("MatMul", both, w), b))]

    g.output(_levels(g, children, [x], join)[0], "y", np.float32, [1, hidden])
    return g.model()

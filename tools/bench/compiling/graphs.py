# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graphs of a given number of nodes: what must not grow faster than they do is seen on these."""

from __future__ import annotations

import numpy as np
import onnx

from tilewright.demo.graph import GraphBuilder

_WIDTH = 32


def chain(nodes: int) -> onnx.ModelProto:
    """Residual gated layers of eight nodes each, one behind the other; weights of every layer differ."""
    rng = np.random.default_rng(nodes)
    g = GraphBuilder("chain")
    x = g.input("x", np.float32, [8, _WIDTH])
    for layer in range(nodes // 8):
        with g.scope(f"layer.{layer}"):
            mean = g.op("ReduceMean", x, axes=[-1])
            y = g.op("Sub", x, mean)
            up = g.op("MatMul", y, _weight(g, rng, _WIDTH, _WIDTH))
            gate = g.op("Sigmoid", g.op("MatMul", y, _weight(g, rng, _WIDTH, _WIDTH)))
            x = g.op("Add", x, g.op("Mul", up, gate))
            x = g.op("Tanh", x)
    g.output(x, "y", np.float32, [8, _WIDTH])
    return g.model()


def random_dag(nodes: int, seed: int = 0) -> onnx.ModelProto:
    """Nodes that read one or two of the sixteen values before them (now and then of all); leaves are summed up."""
    rng = np.random.default_rng(seed)
    g = GraphBuilder("random_dag")
    values = [g.input("x", np.float32, [8, _WIDTH])]
    unread = {values[0]}
    for _ in range(nodes):
        near = values if rng.random() < 0.1 else values[-16:]
        a, b = (near[int(rng.integers(len(near)))] for _ in range(2))
        value = _node(g, rng, a, b)
        unread -= {a, b}
        unread.add(value)
        values.append(value)
    left = sorted(unread, key=values.index)
    total = left[0] if len(left) == 1 else g.op("Tanh", g.op("Sum", *left))
    g.output(total, "y", np.float32, [8, _WIDTH])
    return g.model()


def _node(g: GraphBuilder, rng: np.random.Generator, a: str, b: str) -> str:
    kind = int(rng.integers(8))
    if kind == 0:
        return g.op("MatMul", a, _weight(g, rng, _WIDTH, _WIDTH))
    if kind == 1:
        return g.op("Softmax", g.op("Add", a, b), axis=-1)
    if kind == 2:
        return g.op("Sub", a, g.op("ReduceMean", b, axes=[-1]))
    if kind in (3, 4):
        return g.op(("Relu", "Tanh")[kind - 3], a)
    return g.op(("Add", "Mul", "Max")[kind - 5], a, g.op("Sigmoid", b))


def _weight(g: GraphBuilder, rng: np.random.Generator, rows: int, columns: int) -> str:
    return g.weight((rng.standard_normal((rows, columns)) / rows**0.5).astype(np.float32))


GRAPHS = {"chain": chain, "random_dag": random_dag}

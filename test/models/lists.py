# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The programs of `examples/fractal` as graphs of whole arrays, in the form that is best for a library.

Inputs and outputs are those of the program, as arrays: the first axes are levels, the last two those of the leaves.
`bench.list_programs` finds the program's weights in the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import ceil

import numpy as np
import onnx

from tilewright.demo.graph import GraphBuilder

from ._graph import Graph
from ._weights import Weights


def _slice(g: GraphBuilder, x: str, start: int, end: int, axis: int = 0) -> str:
    return g.op("Slice", x, g.const([start]), g.const([end]), g.const([axis]))


def _moved(g: GraphBuilder, x: str, shape: Sequence[int], order: Sequence[int], result: Sequence[int]) -> str:
    """Axes in another order, then another shape; axes of one element cost nothing."""
    wide = [axis for axis in order if shape[axis] != 1]
    x = x if wide == sorted(wide) else g.op("Transpose", x, perm=list(order))
    return g.op("Reshape", x, g.const(list(result)))


def _zeros(g: GraphBuilder, *shape: int) -> str:
    return g.const(np.zeros(shape), np.float32)


def _lstm(g: GraphBuilder, w: Weights, x: str, hidden: int) -> str:
    """[sequence, batch, hidden] -> the hidden states."""
    kernel = g.weight(w.linear(4 * hidden, hidden, gain=2.0)[None], "W")
    recurrent = g.weight(w.linear(4 * hidden, hidden)[None], "R")
    bias = g.weight(w.normal(1, 8 * hidden, scale=0.1), "B")
    y = g.ops("LSTM", x, kernel, recurrent, bias, outputs=1, hidden_size=hidden)[0]
    return g.op("Squeeze", y, g.const([1]))


def stacked_lstm(
    layers: int = 4, hidden: int = 256, sequence: int = 64, batch: int = 1, seed: int = 0
) -> onnx.ModelProto:
    """`xss` [sequence, batch, 1, hidden] -> `y`: one LSTM behind the other."""
    g, w = GraphBuilder("stacked_lstm"), Weights(seed)
    shape = [sequence, batch, 1, hidden]
    x = g.op("Reshape", g.input("xss", np.float32, shape), g.const([sequence, batch, hidden]))
    for layer in range(layers):
        with g.scope(f"layer.{layer}"):
            x = _lstm(g, w, x, hidden)
    g.output(g.op("Reshape", x, g.const(shape)), "y", np.float32, shape)
    return g.model()


def dilated_lstm(
    layers: int = 6, hidden: int = 256, sequence: int = 64, batch: int = 1, seed: int = 0
) -> onnx.ModelProto:
    """`xss` [batch, sequence, 1, hidden] -> `y`: layer t takes the 2^t sequences of every 2^t-th element as a batch."""
    g, w = GraphBuilder("dilated_lstm"), Weights(seed)
    shape = [batch, sequence, 1, hidden]
    x = _moved(g, g.input("xss", np.float32, shape), shape, (1, 0, 2, 3), [sequence, batch, hidden])
    for layer in range(layers):
        distance = 2**layer
        steps = ceil(sequence / distance)
        missing = steps * distance - sequence
        with g.scope(f"layer.{layer}"):
            x = g.op("Concat", x, _zeros(g, missing, batch, hidden), axis=0) if missing else x
            x = g.op("Reshape", x, g.const([steps, distance * batch, hidden]))
            x = g.op("Reshape", _lstm(g, w, x, hidden), g.const([steps * distance, batch, hidden]))
            x = _slice(g, x, 0, sequence) if missing else x
    g.output(_moved(g, x, [sequence, batch, hidden], (1, 0, 2), shape), "y", np.float32, shape)
    return g.model()


class _Diagonals:
    """The points of a grid, diagonal by diagonal."""

    def __init__(self, rows: int, columns: int) -> None:
        self.rows = [range(max(0, d - columns + 1), min(rows, d + 1)) for d in range(rows + columns - 1)]
        self.points = [(i, d - i) for d, of in enumerate(self.rows) for i in of]
        self.starts = np.cumsum([0, *map(len, self.rows)]).tolist()

    def before(self, g: GraphBuilder, d: int, states: Sequence[str], zero: str) -> tuple[str, str]:
        """Of the states of diagonal d - 1 those that come from above (x) and from the left (y) to diagonal d."""
        rows, last = self.rows[d], self.rows[d - 1]
        above = range(max(rows.start - 1, 0), rows.stop - 1)
        left = range(rows.start, min(rows.stop, d))
        up = _slice(g, states[0], above.start - last.start, above.stop - last.start)
        side = _slice(g, states[1], left.start - last.start, left.stop - last.start)
        up = g.op("Concat", zero, up, axis=0) if len(above) < len(rows) else up
        return up, g.op("Concat", side, zero, axis=0) if len(left) < len(rows) else side


def _grid_layer(
    g: GraphBuilder, w: Weights, sides: Sequence[str], at: _Diagonals, batch: int, hidden: int
) -> list[str]:
    """Both states of all points, [points, batch, hidden] in the order of diagonals."""
    given, recurrent = [], []
    for x, side in zip(sides, "xy", strict=True):
        product = g.op("MatMul", x, g.weight(w.linear(hidden, hidden), f"w{side}"))
        recurrent.append(g.weight(w.linear(2 * hidden, hidden, gain=0.7), f"u{side}"))
        given.append(g.op("Add", product, g.weight(w.normal(hidden, scale=0.1), f"b{side}")))
    zero = _zeros(g, 1, batch, hidden)
    states: list[list[str]] = []
    for d, (start, end) in enumerate(zip(at.starts, at.starts[1:], strict=False)):
        before = at.before(g, d, states[-1], zero) if d else (zero, zero)
        both = g.op("Concat", *before, axis=2)
        parts = [_slice(g, x, start, end) for x in given]
        sums = [g.op("Add", x, g.op("MatMul", both, u)) for x, u in zip(parts, recurrent, strict=True)]
        states.append([g.op("Tanh", x) for x in sums])
    return [g.op("Concat", *(state[side] for state in states), axis=0) for side in (0, 1)]


def grid_rnn(
    layers: int = 4, hidden: int = 256, rows: int = 10, columns: int = 10, batch: int = 1, seed: int = 0
) -> onnx.ModelProto:
    """`sources` [batch, rows, 1, hidden], `targets` [batch, columns, 1, hidden] -> `x`, `y`: one step per diagonal."""
    g, w, at = GraphBuilder("grid_rnn"), Weights(seed), _Diagonals(rows, columns)
    sides = []
    for axis, (name, length) in enumerate((("sources", rows), ("targets", columns))):
        shape = [batch, length, 1, hidden]
        x = _moved(g, g.input(name, np.float32, shape), shape, (1, 0, 2, 3), [length, batch, hidden])
        sides.append(g.op("Gather", x, g.const([point[axis] for point in at.points]), axis=0))
    for layer in range(layers):
        with g.scope(f"layer.{layer}"):
            sides = _grid_layer(g, w, sides, at, batch, hidden)
    place = {point: i for i, point in enumerate(at.points)}
    order = g.const([place[i, j] for i in range(rows) for j in range(columns)])
    for x, name in zip(sides, "xy", strict=True):
        x, shape = g.op("Gather", x, order, axis=0), [batch, rows, columns, 1, hidden]
        g.output(_moved(g, x, [rows * columns, batch, hidden], (1, 0, 2), shape), name, np.float32, shape)
    return g.model()


def b2b_gemm(m: int = 8192, k: int = 64, n: int = 256, p: int = 64, block: int = 64) -> onnx.ModelProto:
    """`a`, `b`, `c` -> `y` = A B C; each in square blocks, those of B and C by columns."""
    g = GraphBuilder("b2b_gemm")
    leaf = [block, block]
    rows, inner, middle, columns = (size // block for size in (m, k, n, p))
    levels = {"a": [rows, inner], "b": [middle, inner], "c": [columns, middle]}
    orders = {"a": (0, 2, 1, 3), "b": (1, 2, 0, 3), "c": (1, 2, 0, 3)}
    flat = {"a": [m, k], "b": [k, n], "c": [n, p]}
    a, b, c = (
        _moved(g, g.input(name, np.float32, level + leaf), level + leaf, orders[name], flat[name])
        for name, level in levels.items()
    )
    y = g.op("MatMul", g.op("MatMul", a, b), c)
    y = _moved(g, y, [m, p], (0, 1), [rows, block, columns, block])
    shape = [rows, columns, *leaf]
    g.output(_moved(g, y, [rows, block, columns, block], (0, 2, 1, 3), shape), "y", np.float32, shape)
    return g.model()


def attention(
    heads: int = 8, sequence: int = 512, depth: int = 128, block: int = 64, batch: int = 1
) -> onnx.ModelProto:
    """`qsss`, `ksss`, `vsss` [batch, heads, blocks, block, depth] -> `y`: softmax(q k^T) v as one operator."""
    g = Graph("attention", opset=23)
    shape = [batch, heads, sequence // block, block, depth]
    whole = g.const([batch, heads, sequence, depth])
    values = [g.op("Reshape", g.input(name, np.float32, shape), whole) for name in ("qsss", "ksss", "vsss")]
    g.output(g.op("Reshape", g.op("Attention", *values, scale=1.0), g.const(shape)), "y", np.float32, shape)
    return g.model()


def _attend(g: GraphBuilder, q: str, k: str, v: str, rank: int) -> str:
    scores = g.op("MatMul", q, g.op("Transpose", k, perm=[*range(rank - 2), rank - 1, rank - 2]))
    return g.op("MatMul", g.op("Softmax", scores, axis=-1), v)


def bigbird(sequence: int = 1024, block: int = 64, hidden: int = 512, batch: int = 1) -> onnx.ModelProto:
    """`qss`, `kss`, `vss` [batch, blocks, block, hidden] -> `y`: two batches of products, global and windowed."""
    g, blocks = GraphBuilder("bigbird"), sequence // block
    shape = [batch, blocks, block, hidden]
    q, k, v = (g.input(name, np.float32, shape) for name in ("qss", "kss", "vss"))
    inner = blocks - 4
    ends = g.op("Concat", _slice(g, q, 0, 2, 1), _slice(g, q, blocks - 2, blocks, 1), axis=1)
    ends, keys, values = (
        g.op("Reshape", x, g.const([batch, n * block, hidden])) for x, n in ((ends, 4), (k, blocks), (v, blocks))
    )
    ends = g.op("Reshape", _attend(g, ends, keys, values, 3), g.const([batch, 4, block, hidden]))
    near = []
    for x in (k, v):
        outer = [_slice(g, x, i, i + 1, 1) for i in (0, blocks - 1)]
        outer = [g.op("Expand", part, g.const([batch, inner, block, hidden])) for part in outer]
        window = [_slice(g, x, i, i + inner, 1) for i in (1, 2, 3)]
        near.append(g.op("Concat", outer[0], *window, outer[1], axis=2))
    middle = _attend(g, _slice(g, q, 2, blocks - 2, 1), near[0], near[1], 4)
    y = g.op("Concat", _slice(g, ends, 0, 2, 1), middle, _slice(g, ends, 2, 4, 1), axis=1)
    g.output(y, "y", np.float32, shape)
    return g.model()


def scored_inputs(names: Sequence[str], shape: Sequence[int]) -> dict[str, np.ndarray]:
    """Queries, keys and values whose scores, which no program scales, have a variance of one: no weight underflows."""
    w = Weights(1)
    return {name: w.normal(*shape, scale=shape[-1] ** (0.0 if i else -0.5)) for i, name in enumerate(names)}


def attention_inputs(heads: int, sequence: int, depth: int, block: int, batch: int) -> dict[str, np.ndarray]:
    """Those of `attention`."""
    return scored_inputs(("qsss", "ksss", "vsss"), (batch, heads, sequence // block, block, depth))


def bigbird_inputs(sequence: int, block: int, hidden: int, batch: int) -> dict[str, np.ndarray]:
    """Those of `bigbird`."""
    return scored_inputs(("qss", "kss", "vss"), (batch, sequence // block, block, hidden))


#: Makers of inputs for models whose random ones would not do, by name; they take the builder's sizes.
INPUTS: Mapping[str, Callable[..., dict[str, np.ndarray]]] = {"attention": attention_inputs, "bigbird": bigbird_inputs}

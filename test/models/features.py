# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tables of features and series: DCN, DeepFM, a transformer over columns, N-BEATS, an interaction net of sequences."""

from __future__ import annotations

import numpy as np
import onnx

from ._graph import Graph
from ._weights import Weights
from .tables import _dense
from .transformers import Blocks


def deep_cross(
    columns: int = 26, rows: int = 5000, width: int = 16, crosses: int = 3, batch: int = 128, seed: int = 0
) -> onnx.ModelProto:
    """`sparse`, `dense` -> `click`: DCN-v2 (Wang et al., 2021): x0 * (W x + b) + x beside a dense net."""
    g, w = Graph("deep_cross", 17), Weights(seed)
    sparse = g.input("sparse", np.int64, [batch, columns])
    offset = g.op("Add", sparse, g.const(np.arange(columns) * rows))
    found = g.op("Reshape", g.op("Gather", g.weight(w.normal(columns * rows, width)), offset), g.const([batch, -1]))
    first = x = g.op("Concat", g.input("dense", np.float32, [batch, 13]), found, axis=1)
    inputs = 13 + columns * width
    for _ in range(crosses):
        y = g.op("Gemm", x, g.weight(w.linear(inputs, inputs)), g.weight(w.normal(inputs, scale=0.1)), transB=1)
        x = g.op("Add", g.op("Mul", first, y), x)
    deep = _dense(g, w, first, (inputs, 768, 768), "Relu")
    y = _dense(g, w, g.op("Concat", x, deep, axis=1), (inputs + 768, 1), "Sigmoid")
    g.output(y, "click", np.float32, [batch, 1])
    return g.model()


def factorized(
    columns: int = 39, rows: int = 5000, width: int = 16, batch: int = 256, seed: int = 0
) -> onnx.ModelProto:
    """`sparse` -> `click`: DeepFM (Guo et al., 2017): squares of sums less sums of squares."""
    g, w = Graph("factorized", 17), Weights(seed)
    sparse = g.input("sparse", np.int64, [batch, columns])
    offset = g.op("Add", sparse, g.const(np.arange(columns) * rows))
    first = g.op("ReduceSum", g.op("Gather", g.weight(w.normal(columns * rows, 1)), offset), g.const([1]), keepdims=0)
    found = g.op("Gather", g.weight(w.normal(columns * rows, width, scale=0.3)), offset)
    total = g.op("ReduceSum", found, g.const([1]), keepdims=0)
    squares = g.op("ReduceSum", g.op("Mul", found, found), g.const([1]), keepdims=0)
    pairs = g.op("ReduceSum", g.op("Sub", g.op("Mul", total, total), squares), g.const([1]), keepdims=1)
    deep = _dense(g, w, g.op("Reshape", found, g.const([batch, -1])), (columns * width, 400, 400, 400, 1))
    y = g.op("Sigmoid", g.op("Mul", g.op("Add", g.op("Add", first, pairs), deep), g.f32(0.1)))
    g.output(y, "click", np.float32, [batch, 1])
    return g.model()


def column_transformer(
    columns: int = 24, hidden: int = 192, heads: int = 8, layers: int = 3, batch: int = 64, seed: int = 0
) -> onnx.ModelProto:
    """`x` [batch, columns] -> `y`: FT-Transformer (Gorishniy et al., 2021): each number times a vector is a token."""
    b = Blocks("column_transformer", seed)
    g, w = b.g, b.w
    x = g.op("Unsqueeze", g.input("x", np.float32, [batch, columns]), g.const([2]))
    x = g.op("Add", g.op("Mul", x, g.weight(w.normal(columns, hidden))), g.weight(w.normal(columns, hidden)))
    token = g.op("Expand", g.weight(w.normal(1, 1, hidden)), g.const([batch, 1, hidden]))
    x = g.op("Concat", token, x, axis=1)
    for _ in range(layers):
        normal = b.norm(x, hidden)
        q, k, v = (b.heads(b.linear(normal, hidden, hidden), [batch, -1, heads, hidden // heads]) for _ in range(3))
        y = g.op("Reshape", b.attend(q, k, v, (hidden // heads) ** -0.5), g.const([batch, -1, hidden]))
        x = g.op("Add", x, b.linear(y, hidden, hidden))
        wide, gate = g.ops("Split", b.linear(b.norm(x, hidden), hidden, 512), g.const([256, 256]), outputs=2, axis=-1)
        x = g.op("Add", x, b.linear(g.op("Mul", wide, g.op("Relu", gate)), 256, hidden))
    first = g.op("Gather", x, g.const(0), axis=1)
    y = b.linear(g.op("Relu", b.norm(first, hidden)), hidden, 1)
    g.output(y, "y", np.float32, [batch, 1])
    return g.model()


def basis_series(
    back: int = 96, ahead: int = 24, width: int = 512, blocks: int = 4, batch: int = 32, seed: int = 0
) -> onnx.ModelProto:
    """`series` [batch, back] -> `forecast`: N-BEATS (Oreshkin et al., 2020): each block explains what others left."""
    g, w = Graph("basis_series", 17), Weights(seed)
    x, total = g.input("series", np.float32, [batch, back]), None
    for _ in range(blocks):
        y = _dense(g, w, x, (back, width, width, width, width), "Relu")
        seen, more = (_dense(g, w, _dense(g, w, y, (width, 16)), (16, n)) for n in (back, ahead))
        x = g.op("Sub", x, g.op("Mul", seen, g.f32(0.3)))
        total = more if total is None else g.op("Add", total, more)
    g.output(total, "forecast", np.float32, [batch, ahead])
    return g.model()


def interest(history: int = 50, width: int = 32, rows: int = 20000, batch: int = 32, seed: int = 0) -> onnx.ModelProto:
    """`candidate`, `history` -> `click`: DIN (Zhou et al., 2018): a small net weighs each item of a history."""
    g, w = Graph("interest", 17), Weights(seed)
    table = g.weight(w.normal(rows, width, scale=0.5))
    item = g.op("Gather", table, g.input("candidate", np.int64, [batch, 1]))
    past_ids = g.input("history", np.int64, [batch, history])
    past = g.op("Gather", table, past_ids)
    wide = g.op("Expand", item, g.const([batch, history, width]))
    pair = g.op("Concat", wide, past, g.op("Sub", wide, past), g.op("Mul", wide, past), axis=2)
    y, inputs = pair, 4 * width
    for outputs in (80, 40, 1):
        y = g.op("Add", g.op("MatMul", y, g.weight(w.linear(outputs, inputs).T)), g.weight(w.normal(outputs)))
        y, inputs = (g.op("Sigmoid", y) if outputs > 1 else y), outputs
    given = g.op("Unsqueeze", g.op("Greater", past_ids, g.const(2)), g.const([2]))
    score = g.op("Softmax", g.op("Where", given, y, g.f32(-1e9)), axis=1)
    seen = g.op("ReduceSum", g.op("Mul", score, past), g.const([1]), keepdims=0)
    flat = g.op("Concat", seen, g.op("Reshape", item, g.const([batch, width])), axis=1)
    g.output(_dense(g, w, flat, (2 * width, 200, 80, 1), "Sigmoid"), "click", np.float32, [batch, 1])
    return g.model()

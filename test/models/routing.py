# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Nets whose data decides what is read and written: experts, bags of embeddings, a cache of fixed room."""

from __future__ import annotations

import numpy as np
import onnx

from ._graph import Graph
from ._weights import Weights
from .transformers import Blocks


def experts(
    count: int = 8, chosen: int = 2, hidden: int = 64, wide: int = 128, tokens: int = 16, seed: int = 0
) -> onnx.ModelProto:
    """`x` [tokens, hidden] -> `y`: a layer of experts (Shazeer et al., 2017), each token by the best of them.

    The gate's TopK names experts; their weights are gathered for each token, and a table of the gate's shares is
    filled by ScatterElements, as exports of mixtures do. `load` [count]: the tokens of each expert, by ScatterND.
    """
    b = Blocks("experts", seed)
    g, w, f32 = b.g, b.w, np.float32
    x = g.input("x", f32, [tokens, hidden])
    gate = g.op("Softmax", b.linear(x, hidden, count, False), axis=-1)
    share, which = g.ops("TopK", gate, g.const([chosen]), outputs=2, axis=-1)
    share = g.op("Div", share, g.op("ReduceSum", share, g.const([1]), keepdims=1))
    table = g.op("ScatterElements", g.weight(np.zeros((tokens, count), f32)), which, share, axis=1)
    up = g.op("Gather", g.weight(w.normal(count, hidden, wide, scale=hidden**-0.5), "up"), which)
    down = g.op("Gather", g.weight(w.normal(count, wide, hidden, scale=wide**-0.5), "down"), which)
    rows = g.op("Unsqueeze", g.op("Unsqueeze", x, g.const([1])), g.const([1]))
    inner = g.op("MatMul", rows, up)
    inner = g.op("Mul", inner, g.op("Sigmoid", inner))
    given = g.op("Squeeze", g.op("MatMul", inner, down), g.const([2]))
    picked = g.op("GatherElements", table, which, axis=1)
    y = g.op("ReduceSum", g.op("Mul", given, g.op("Unsqueeze", picked, g.const([2]))), g.const([1]), keepdims=0)
    flat = g.op("Reshape", which, g.const([-1, 1]))
    ones = g.weight(np.ones(tokens * chosen, np.int64))
    load = g.op("ScatterND", g.weight(np.zeros(count, np.int64)), flat, ones, reduction="add")
    g.output(g.op("Add", x, y), "y", f32, [tokens, hidden])
    g.output(load, "load", np.int64, [count])
    return g.model()


def dispatched_experts(
    count: int = 8, most: int = 2, hidden: int = 512, wide: int = 1024, rows: int = 64, layers: int = 2, seed: int = 0
) -> onnx.ModelProto:
    """`x` [rows, hidden] -> `y`: Mixtral as it is exported: each expert runs on the rows that NonZero finds for it."""
    b = Blocks("dispatched_experts", seed)
    g, f32 = b.g, np.float32
    x = g.input("x", f32, [rows, hidden])
    for _ in range(layers):
        normal = b.rms(x, hidden)
        best, which = g.ops("TopK", b.linear(normal, hidden, count, False), g.const([most]), outputs=2, axis=-1)
        share = g.op("Softmax", best, axis=-1)
        y = g.op("Mul", x, g.f32(0.0))
        for expert in range(count):
            found = g.op("NonZero", g.op("Equal", which, g.const(expert)))  # [2, n]
            row = g.op("Gather", found, g.const(0), axis=0)
            given = g.op("Gather", normal, row, axis=0)
            gate, up = (b.linear(given, hidden, wide, False) for _ in range(2))
            inner = g.op("Mul", g.op("Mul", gate, g.op("Sigmoid", gate)), up)
            weight = g.op("Unsqueeze", g.op("GatherND", share, g.op("Transpose", found, perm=[1, 0])), g.const([1]))
            part = g.op("Mul", b.linear(inner, wide, hidden, False), weight)
            y = g.op("ScatterND", y, g.op("Unsqueeze", row, g.const([1])), part, reduction="add")
        x = g.op("Add", x, y)
    g.output(x, "y", f32, [rows, hidden])
    return g.model()


def embedding_bag(rows: int = 1000, width: int = 32, bags: int = 8, tokens: int = 40, seed: int = 0) -> onnx.ModelProto:
    """`tokens`, `lengths` [bags] -> `y` [bags, width]: sums of embeddings, one bag after the other by Loop.

    As PyTorch's exporter writes EmbeddingBag: each iteration slices its tokens, and gathers and adds their rows.
    """
    g, w, f32 = Graph("embedding_bag", 17), Weights(seed), np.float32
    given, lengths = g.input("tokens", np.int64, [tokens]), g.input("lengths", np.int64, [bags])
    lengths = g.op("Mod", lengths, g.const(tokens // bags + 1))
    ends = g.op("CumSum", lengths, g.const(0))
    starts = g.op("Sub", ends, lengths)
    table = g.weight(w.normal(rows, width), "table")
    body = g.inner("bag")
    step = body.input("number", np.int64, [])
    going = body.input("going", np.bool_, [])
    at = body.op("Unsqueeze", step, g.const([0]))
    start, end = (body.op("Gather", x, at) for x in (starts, ends))
    own = body.op("Slice", given, start, end, g.const([0]))
    total = body.op("ReduceSum", body.op("Gather", table, own), g.const([0]), keepdims=0)
    body.output(going, "again", np.bool_, [])
    body.output(total, "sum", f32, [width])
    y = g.op("Loop", g.const(bags), g.const(True, np.bool_), body=body.as_attribute())
    g.output(_square(g, w, y, width), "y", f32, [bags, width])
    return g.model()


def _square(g: Graph, w: Weights, x: str, width: int) -> str:
    """A square dense layer."""
    return g.op("Gemm", x, g.weight(w.linear(width, width)), g.weight(w.normal(width, scale=0.1)), transB=1)


def fixed_cache(hidden: int = 64, heads: int = 4, room: int = 64, tokens: int = 2, seed: int = 0) -> onnx.ModelProto:
    """One attention layer over a cache [1, heads, room, head], which ScatterND writes at `place` [tokens]; masked."""
    b = Blocks("fixed_cache", seed)
    g, f32, head = b.g, np.float32, hidden // heads
    x = g.input("x", f32, [1, tokens, hidden])
    place = g.input("place", np.int64, [tokens])
    where = g.op("Reshape", place, g.const([tokens, 1]))
    normal = b.norm(x, hidden)
    q, *new = (b.heads(b.linear(normal, hidden, hidden), [1, tokens, heads, head]) for _ in range(3))
    caches = []
    for kind, value in zip(("key", "value"), new, strict=True):
        old = g.op("Transpose", g.input(f"past_{kind}", f32, [1, heads, room, head]), perm=[2, 0, 1, 3])
        filled = g.op("ScatterND", old, where, g.op("Transpose", value, perm=[2, 0, 1, 3]))
        caches.append(g.op("Transpose", filled, perm=[1, 2, 0, 3]))
    seen = g.op("LessOrEqual", g.const(np.arange(room)[None]), where)
    mask = g.op("Where", seen, g.f32(0.0), g.f32(-1e9))
    y = g.op("Reshape", b.attend(q, caches[0], caches[1], head**-0.5, mask), g.const([1, tokens, hidden]))
    g.output(g.op("Add", x, b.linear(y, hidden, hidden)), "y", f32, [1, tokens, hidden])
    for kind, value in zip(("key", "value"), caches, strict=True):
        g.output(value, f"present_{kind}", f32, [1, heads, room, head])
    return g.model()

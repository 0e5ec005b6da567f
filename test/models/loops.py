# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops of whole models, as exports of `for` and `while` in PyTorch: those of Cocktailer (Zhang et al., OSDI 2023)."""

from __future__ import annotations

import numpy as np
import onnx

from ._graph import Graph
from ._weights import Weights

END = 0  # the token that ends a sentence
F32 = np.float32


def nasrnn(hidden: int = 256, steps: int = 1000, batch: int = 1, seed: int = 0) -> onnx.ModelProto:
    """`x` [steps, batch, hidden] -> `h` [batch, hidden], the last state of the cell that a search found.

    The cell is Zoph and Le's (2017), figure 8, in the form that TensorFlow's NASCell has. A Loop takes one step of `x`
    in each iteration, as `for i in range(steps)` is exported; its products are batches of eight.
    """
    g, w = Graph("nasrnn", 20), Weights(seed)
    x = g.input("x", F32, [steps, batch, hidden])
    kernels = [g.weight(w.normal(8, hidden, hidden, scale=hidden**-0.5), name) for name in ("w", "u")]
    zero = g.weight(np.zeros((batch, hidden), F32), "zero")
    body = g.inner("cell")
    step = body.input("step", np.int64, [])
    going = body.input("going", np.bool_, [])
    old, cell = (body.input(name, F32, [batch, hidden]) for name in ("old", "cell"))
    now = body.op("Gather", x, step, axis=0)
    xs, hs = (_parts(body, body.op("MatMul", *pair)) for pair in ((now, kernels[0]), (old, kernels[1])))
    new_cell, new = _nas_cell(body, xs, hs, cell, [batch, hidden])
    body.output(going, "again", np.bool_, [])
    body.output(new, "new", F32, [batch, hidden])
    body.output(new_cell, "new_cell", F32, [batch, hidden])
    always = g.const(True, np.bool_)
    h, _ = g.ops("Loop", g.const(steps), always, zero, zero, outputs=2, body=body.as_attribute())
    g.output(h, "h", F32, [batch, hidden])
    return g.model()


def _parts(g: Graph, gates: str) -> list[str]:
    """The eight gates of [8, batch, hidden], each [1, batch, hidden]."""
    return g.ops("Split", gates, g.const([1] * 8), outputs=8, axis=0)


def _nas_cell(g: Graph, xs: list[str], hs: list[str], cell: str, shape: list[int]) -> tuple[str, str]:
    """The new cell and state."""
    kinds = ("Sigmoid", "Relu", "Sigmoid", "Relu", "Tanh", "Sigmoid", "Tanh", "Sigmoid")
    first = [g.op(kind, g.op("Mul" if i == 3 else "Add", xs[i], hs[i])) for i, kind in enumerate(kinds)]
    pairs = zip(("Mul", "Add", "Mul", "Add"), ("Tanh", "Tanh", "Tanh", "Sigmoid"), range(0, 8, 2), strict=True)
    second = [g.op(outer, g.op(inner, first[i], first[i + 1])) for inner, outer, i in pairs]
    second[0] = g.op("Tanh", g.op("Add", second[0], cell))
    new_cell = g.op("Mul", second[0], second[1])
    new = g.op("Tanh", g.op("Mul", new_cell, g.op("Tanh", g.op("Add", second[2], second[3]))))
    return g.op("Reshape", new_cell, g.const(shape)), g.op("Reshape", new, g.const(shape))


def generation(
    heads: int = 12, head: int = 64, start: int = 32, end: int = 64, batch: int = 1, seed: int = 0
) -> onnx.ModelProto:
    """Attention that feeds itself, for positions `start` to `end`: `x` [batch, heads, 1, head] -> `y` like it.

    `keys`, `values` [batch, heads, start, head] are of the positions before. Each iteration of the Loop writes its key
    and value at its position into caches [batch, heads, end, head], and attends to all written ones: what it sees of
    the caches grows. Each head has its own four matrices; what it gives is added and normalized, to be read next.
    """
    g, w = Graph("generation", 20), Weights(seed)
    x = g.input("x", F32, [batch, heads, 1, head])
    caches, room = [], g.weight(np.zeros((batch, heads, end - start, head), F32), "room")
    for name in ("keys", "values"):
        caches.append(g.op("Concat", g.input(name, F32, [batch, heads, start, head]), room, axis=2))
    matrices = [g.weight(w.normal(heads, head, head, scale=head**-0.5), name) for name in ("wq", "wk", "wv", "wo")]
    body = g.inner("token")
    step = body.input("step", np.int64, [])
    going = body.input("going", np.bool_, [])
    last = body.input("last", F32, [batch, heads, 1, head])
    old = [body.input(f"old_{name}", F32, [batch, heads, end, head]) for name in ("keys", "values")]
    query, *new = (body.op("MatMul", last, matrix) for matrix in matrices[:3])
    place = body.op("Add", step, g.const(start))
    where = body.op("Expand", body.op("Reshape", place, g.const([1, 1, 1, 1])), g.const([batch, heads, 1, head]))
    keys, values = (body.op("ScatterElements", *pair, axis=2) for pair in zip(old, [where] * 2, new, strict=True))
    scores = body.op("MatMul", query, body.op("Transpose", keys, perm=[0, 1, 3, 2]))
    scores = body.op("Mul", scores, g.f32(head**-0.5))
    seen = body.op("LessOrEqual", g.const(np.arange(end)), place)
    shares = body.op("Softmax", body.op("Where", seen, scores, g.f32(-1e9)), axis=-1)
    y = body.op("MatMul", body.op("MatMul", shares, values), matrices[3])
    body.output(going, "again", np.bool_, [])
    scale, shift = (g.weight(array, name) for name, array in (("scale", w.near_one(head)), ("shift", w.normal(head))))
    normal = body.op("LayerNormalization", body.op("Add", y, last), scale, shift, axis=-1)
    body.output(normal, "next", F32, [batch, heads, 1, head])
    for name, value in (("new_keys", keys), ("new_values", values)):
        body.output(value, name, F32, [batch, heads, end, head])
    trips, always = g.const(end - start), g.const(True, np.bool_)
    y, *_ = g.ops("Loop", trips, always, x, *caches, outputs=3, body=body.as_attribute())
    g.output(y, "y", F32, [batch, heads, 1, head])
    return g.model()


def seq2seq(
    hidden: int = 256,
    vocabulary: int = 3797,
    longest: int = 50,
    source: int = 10,
    batch: int = 1,
    eager_end: float = 0.6,
    seed: int = 0,
) -> onnx.ModelProto:
    """A sentence as another one, word by word: `words` [source, batch] -> `y` [longest, batch], and `steps`.

    An LSTM reads the words. From its last state a cell writes the likeliest next one, until all sentences of the batch
    have ended or `longest` words are written; rows behind stay `END`.

    Args:
        hidden: size of states and embeddings.
        vocabulary: words.
        longest: words that are written at most.
        source: words that are read.
        batch: sentences.
        eager_end: added to the score of the end, without which random weights hardly find it.
        seed: of the weights.
    """
    g, w = Graph("seq2seq", 20), Weights(seed)
    words = g.input("words", np.int64, [source, batch])
    read, written = (g.weight(w.normal(vocabulary, hidden), name) for name in ("read", "written"))
    gates = [w.linear(4 * hidden, hidden)[None], w.linear(4 * hidden, hidden)[None], w.normal(1, 8 * hidden, scale=0.1)]
    x = g.op("Gather", read, words)
    _, h, c = g.ops("LSTM", x, *map(g.weight, gates), outputs=3, hidden_size=hidden)
    h, c = (g.op("Squeeze", state, g.const([0])) for state in (h, c))
    cell = [g.weight(w.linear(4 * hidden, hidden).T.copy(), name) for name in ("decoder.w", "decoder.u")]
    bias = g.weight(w.normal(4 * hidden, scale=0.1), "decoder.b")
    scores = w.normal(vocabulary, scale=0.1)
    scores[END] += eager_end
    out = [
        g.weight(w.linear(hidden, vocabulary, gain=2.0).reshape(hidden, vocabulary), "out"),
        g.weight(scores, "ends"),
    ]

    body = g.inner("word")
    step = body.input("step", np.int64, [])
    body.input("going", np.bool_, [])
    token = body.input("token", np.int64, [batch])
    old_h, old_c = (body.input(name, F32, [batch, hidden]) for name in ("old_h", "old_c"))
    sentence = body.input("sentence", np.int64, [longest, batch])
    ended = body.input("ended", np.bool_, [batch])
    count = body.input("count", np.int64, [])
    inputs = body.op("MatMul", body.op("Gather", written, token), cell[0])
    sums = body.op("Add", body.op("Add", inputs, body.op("MatMul", old_h, cell[1])), bias)
    new_h, new_c = lstm_cell(body, sums, old_c, hidden)
    logits = body.op("Add", body.op("MatMul", new_h, out[0]), out[1])
    best = body.op("ArgMax", logits, axis=1, keepdims=0)
    best = body.op("Where", ended, g.const(END), best)
    row = body.op("Reshape", step, g.const([1, 1]))
    filled = body.op("ScatterND", sentence, row, body.op("Unsqueeze", best, g.const([0])))
    now_ended = body.op("Equal", best, g.const(END))
    left = body.op("ReduceSum", body.op("Cast", body.op("Not", now_ended), to=7), keepdims=0)
    body.output(body.op("Greater", left, g.const(0)), "again", np.bool_, [])
    body.output(best, "next", np.int64, [batch])
    body.output(new_h, "new_h", F32, [batch, hidden])
    body.output(new_c, "new_c", F32, [batch, hidden])
    body.output(filled, "filled", np.int64, [longest, batch])
    body.output(now_ended, "now_ended", np.bool_, [batch])
    body.output(body.op("Add", count, g.const(1)), "counted", np.int64, [])

    first = [g.const(np.ones(batch, np.int64)), h, c, g.const(np.full((longest, batch), END, np.int64))]
    first += [g.const(np.zeros(batch, np.bool_), np.bool_), g.const(0)]
    always = g.const(True, np.bool_)
    results = g.ops("Loop", g.const(longest), always, *first, outputs=6, body=body.as_attribute())
    g.output(results[3], "y", np.int64, [longest, batch])
    g.output(results[5], "steps", np.int64, [])
    return g.model()


def lstm_cell(g: Graph, gates: str, c: str, hidden: int) -> tuple[str, str]:
    """The new state and cell of sums [batch, 4 * hidden] in the order i, f, g, o, which is PyTorch's."""
    i, f, new, o = g.ops("Split", gates, g.const([hidden] * 4), outputs=4, axis=1)
    i, f, o = (g.op("Sigmoid", gate) for gate in (i, f, o))
    cell = g.op("Add", g.op("Mul", f, c), g.op("Mul", i, g.op("Tanh", new)))
    return g.op("Mul", o, g.op("Tanh", cell)), cell

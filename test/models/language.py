# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Further language models: ALBERT, CLIP's text tower, DeBERTa's disentangled attention, experts, linear attention."""

from __future__ import annotations

import numpy as np
import onnx

from .transformers import Blocks


class _Encoder(Blocks):
    """Attention and dense layers over [batch, rows, hidden]."""

    def gelu_tanh(self, x: str) -> str:
        """The approximate gelu, as exporters of `gelu_new` write it."""
        g = self.g
        cube = g.op("Mul", g.op("Pow", x, g.f32(3.0)), g.f32(0.044715))
        bent = g.op("Tanh", g.op("Mul", g.op("Add", x, cube), g.f32((2 / np.pi) ** 0.5)))
        return g.op("Mul", g.op("Mul", x, g.f32(0.5)), g.op("Add", bent, g.f32(1.0)))

    def quick_gelu(self, x: str) -> str:
        """x sigmoid(1.702 x)."""
        return self.g.op("Mul", x, self.g.op("Sigmoid", self.g.op("Mul", x, self.g.f32(1.702))))

    def attention(self, x: str, batch: int, hidden: int, heads: int, bias: str | None = None) -> str:
        """Self-attention with its last projection."""
        split = [batch, -1, heads, hidden // heads]
        q, k, v = (self.heads(self.linear(x, hidden, hidden), split) for _ in range(3))
        y = self.g.op(
            "Reshape", self.attend(q, k, v, (hidden // heads) ** -0.5, bias), self.g.const([batch, -1, hidden])
        )
        return self.linear(y, hidden, hidden)


def albert(
    layers: int = 6, hidden: int = 768, heads: int = 12, wide: int = 3072, narrow: int = 128, sequence: int = 128,
    seed: int = 0,
) -> onnx.ModelProto:  # fmt: skip
    """`tokens`, `mask` [1, sequence] -> `states`: ALBERT (Lan et al., 2020): all layers share one set of weights."""
    b = _Encoder("albert", seed)
    g, w = b.g, b.w
    x = g.op("Gather", g.weight(w.normal(30000, narrow)), g.input("tokens", np.int64, [1, sequence]))
    x = b.norm(g.op("Add", x, g.weight(w.normal(1, sequence, narrow))), narrow)
    seen = g.op("Cast", g.input("mask", np.int64, [1, sequence]), to=onnx.TensorProto.FLOAT)
    hidden_from = g.op("Mul", g.op("Sub", g.f32(1.0), g.op("Min", seen, g.f32(1.0))), g.f32(-1e4))
    bias = g.op("Reshape", hidden_from, g.const([1, 1, 1, sequence]))
    x = b.linear(x, narrow, hidden)
    shared: dict[tuple[str, int, int], tuple[str, str]] = {}

    def linear(x: str, inputs: int, outputs: int, name: str) -> str:
        if (name, inputs, outputs) not in shared:
            weight, shift = b.w.linear(outputs, inputs).T, b.w.normal(outputs, scale=0.1)
            shared[name, inputs, outputs] = g.weight(weight), g.weight(shift)
        weight, shift = shared[name, inputs, outputs]
        return g.op("Add", g.op("MatMul", x, weight), shift)

    norms = [[g.weight(w.near_one(hidden)), g.weight(w.normal(hidden, scale=0.1))] for _ in range(2)]
    for _ in range(layers):
        split = [1, -1, heads, hidden // heads]
        q, k, v = (b.heads(linear(x, hidden, hidden, n), split) for n in "qkv")
        y = g.op("Reshape", b.attend(q, k, v, (hidden // heads) ** -0.5, bias), g.const([1, -1, hidden]))
        x = g.op("LayerNormalization", g.op("Add", x, linear(y, hidden, hidden, "o")), *norms[0], axis=-1)
        y = linear(b.gelu_tanh(linear(x, hidden, wide, "up")), wide, hidden, "down")
        x = g.op("LayerNormalization", g.op("Add", x, y), *norms[1], axis=-1)
    g.output(x, "states", np.float32, [1, sequence, hidden])
    return g.model()


def clip_text(
    layers: int = 6, hidden: int = 512, heads: int = 8, batch: int = 2, sequence: int = 77, seed: int = 0
) -> onnx.ModelProto:
    """`tokens` [batch, sequence] -> `embedding`: CLIP's text tower (Radford et al., 2021): causal; the last token."""
    b = _Encoder("clip_text", seed)
    g, w = b.g, b.w
    tokens = g.input("tokens", np.int64, [batch, sequence])
    x = g.op("Add", g.op("Gather", g.weight(w.normal(49408, hidden)), tokens), g.weight(w.normal(sequence, hidden)))
    causal = g.weight(np.triu(np.full((sequence, sequence), -np.inf, np.float32), 1)[None, None])
    for _ in range(layers):
        x = g.op("Add", x, b.attention(b.norm(x, hidden), batch, hidden, heads, causal))
        wide = b.quick_gelu(b.linear(b.norm(x, hidden), hidden, 4 * hidden))
        x = g.op("Add", x, b.linear(wide, 4 * hidden, hidden))
    x = b.norm(x, hidden)
    last = g.op("ArgMax", tokens, axis=1, keepdims=0)
    at = g.op("Concat", *[g.op("Unsqueeze", i, g.const([1])) for i in (g.const(np.arange(batch)), last)], axis=1)
    chosen = g.op("MatMul", g.op("GatherND", x, at), g.weight(w.linear(hidden, hidden).T))
    norm = g.op("Sqrt", g.op("ReduceSum", g.op("Mul", chosen, chosen), g.const([1]), keepdims=1))
    g.output(g.op("Div", chosen, norm), "embedding", np.float32, [batch, hidden])
    return g.model()


def deberta(
    layers: int = 4, hidden: int = 768, heads: int = 12, sequence: int = 128, reach: int = 128, seed: int = 0
) -> onnx.ModelProto:
    """`tokens` -> `states`: DeBERTa (He et al., 2021): scores of contents and, gathered by distance, of positions."""
    b = _Encoder("deberta", seed)
    g, w, size = b.g, b.w, hidden // heads
    x = b.norm(g.op("Gather", g.weight(w.normal(30000, hidden)), g.input("tokens", np.int64, [1, sequence])), hidden)
    table = b.norm(g.weight(w.normal(2 * reach, hidden)), hidden)
    far = np.clip(np.arange(sequence)[:, None] - np.arange(sequence)[None] + reach, 0, 2 * reach - 1)
    there, back = (g.const(np.broadcast_to(i, (1, heads, sequence, sequence))) for i in (far, far.T))
    scale, split = g.f32((3 * size) ** -0.5), [1, -1, heads, size]
    for _ in range(layers):
        q, k, v = (b.heads(b.linear(x, hidden, hidden), split) for _ in range(3))
        near_q, near_k = (b.heads(b.linear(table, hidden, hidden), split) for _ in range(2))

        def product(a: str, c: str) -> str:
            return g.op("MatMul", a, g.op("Transpose", c, perm=[0, 1, 3, 2]))

        scores = g.op("Add", product(q, k), g.op("GatherElements", product(q, near_k), there, axis=3))
        gathered = g.op("GatherElements", product(k, near_q), back, axis=3)
        scores = g.op("Mul", g.op("Add", scores, g.op("Transpose", gathered, perm=[0, 1, 3, 2])), scale)
        y = g.op("Transpose", g.op("MatMul", g.op("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
        y = b.linear(g.op("Reshape", y, g.const([1, -1, hidden])), hidden, hidden)
        x = b.norm(g.op("Add", x, y), hidden)
        x = b.norm(g.op("Add", x, b.linear(b.gelu(b.linear(x, hidden, 4 * hidden)), 4 * hidden, hidden)), hidden)
    g.output(x, "states", np.float32, [1, sequence, hidden])
    return g.model()


def gated_experts(
    hidden: int = 512, wide: int = 1024, count: int = 8, most: int = 2, rows: int = 64, layers: int = 2, seed: int = 0
) -> onnx.ModelProto:
    """`x` [rows, hidden] -> `y`: mixtures of experts (Mixtral): every expert runs, all but `most` weights are zero."""
    b = _Encoder("gated_experts", seed)
    g, w = b.g, b.w
    x = g.input("x", np.float32, [rows, hidden])
    for _ in range(layers):
        normal = b.rms(x, hidden)
        best, which = g.ops("TopK", b.linear(normal, hidden, count, False), g.const([most]), outputs=2, axis=-1)
        zeros = g.weight(np.zeros((rows, count), np.float32))
        gates = g.op("ScatterElements", zeros, which, g.op("Softmax", best, axis=-1), axis=1)
        gates = g.op("Unsqueeze", g.op("Transpose", gates, perm=[1, 0]), g.const([2]))  # [count, rows, 1]

        def every(inputs: int, outputs: int) -> str:
            return g.weight(np.stack([w.linear(outputs, inputs).T for _ in range(count)]))

        each = g.op("Unsqueeze", normal, g.const([0]))
        gate, up = g.op("MatMul", each, every(hidden, wide)), g.op("MatMul", each, every(hidden, wide))
        inner = g.op("Mul", g.op("Mul", gate, g.op("Sigmoid", gate)), up)
        y = g.op("Mul", g.op("MatMul", inner, every(wide, hidden)), gates)
        x = g.op("Add", x, g.op("ReduceSum", y, g.const([0]), keepdims=0))
    g.output(x, "y", np.float32, [rows, hidden])
    return g.model()


def linear_encoder(
    layers: int = 4, hidden: int = 512, heads: int = 8, sequence: int = 512, seed: int = 0
) -> onnx.ModelProto:
    """`x` -> `y`: attention without softmax (Katharopoulos et al., 2020): elu(q) + 1 meets sums over keys."""
    b = _Encoder("linear_encoder", seed)
    g, size = b.g, hidden // heads
    x = g.input("x", np.float32, [1, sequence, hidden])
    for _ in range(layers):
        normal = b.norm(x, hidden)
        q, k, v = (b.heads(b.linear(normal, hidden, hidden), [1, -1, heads, size]) for _ in range(3))
        q, k = (g.op("Add", g.op("Elu", side), g.f32(1.0)) for side in (q, k))
        total = g.op("ReduceSum", k, g.const([2]), keepdims=1)
        below = g.op("ReduceSum", g.op("Mul", q, total), g.const([3]), keepdims=1)
        y = g.op("MatMul", q, g.op("MatMul", g.op("Transpose", k, perm=[0, 1, 3, 2]), v))
        y = g.op("Transpose", g.op("Div", y, g.op("Add", below, g.f32(1e-6))), perm=[0, 2, 1, 3])
        x = g.op("Add", x, b.linear(g.op("Reshape", y, g.const([1, -1, hidden])), hidden, hidden))
        x = g.op("Add", x, b.linear(b.gelu(b.linear(b.norm(x, hidden), hidden, 4 * hidden)), 4 * hidden, hidden))
    g.output(x, "y", np.float32, [1, sequence, hidden])
    return g.model()


def cross_encoder(
    layers: int = 3, hidden: int = 256, heads: int = 8, queries: int = 100, points: int = 400, seed: int = 0
) -> onnx.ModelProto:
    """`memory` [1, points, hidden] -> `classes`, `boxes`: DETR's decoder (Carion et al., 2020), learned queries."""
    b = _Encoder("cross_encoder", seed)
    g, w, size = b.g, b.w, hidden // heads
    memory = g.input("memory", np.float32, [1, points, hidden])
    keys = g.op("Add", memory, g.weight(w.normal(1, points, hidden, scale=0.5)))
    place, x = g.weight(w.normal(1, queries, hidden)), g.weight(np.zeros((1, queries, hidden), np.float32))

    def attention(q: str, k: str, v: str) -> str:
        q, k, v = (b.heads(b.linear(side, hidden, hidden), [1, -1, heads, size]) for side in (q, k, v))
        return b.linear(g.op("Reshape", b.attend(q, k, v, size**-0.5), g.const([1, -1, hidden])), hidden, hidden)

    for _ in range(layers):
        q = g.op("Add", x, place)
        x = b.norm(g.op("Add", x, attention(q, q, x)), hidden)
        x = b.norm(g.op("Add", x, attention(g.op("Add", x, place), keys, memory)), hidden)
        wide = g.op("Relu", b.linear(x, hidden, 2048))
        x = b.norm(g.op("Add", x, b.linear(wide, 2048, hidden)), hidden)
    g.output(b.linear(x, hidden, 92), "classes", np.float32, [1, queries, 92])
    y = g.op("Relu", b.linear(g.op("Relu", b.linear(x, hidden, hidden)), hidden, hidden))
    g.output(g.op("Sigmoid", b.linear(y, hidden, 4)), "boxes", np.float32, [1, queries, 4])
    return g.model()

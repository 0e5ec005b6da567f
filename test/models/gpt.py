# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""GPT-2: learned positions, pre-norm layers, causal attention, tanh gelu; keys and values of the past in and out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx

from tilewright.demo.graph import GraphBuilder

from ._weights import Weights


@dataclass(frozen=True)
class Sizes:
    """Of the model; the defaults are GPT-2 small. A `past` of 0 has no cache coming in (prefill)."""

    layers: int = 12
    hidden: int = 768
    heads: int = 12
    vocabulary: int = 50257
    positions: int = 1024
    batch: int = 1
    sequence: int = 128
    past: int = 0

    @property
    def head(self) -> int:
        """Columns of one head."""
        return self.hidden // self.heads


class _Gpt:
    """One model under construction."""

    def __init__(self, sizes: Sizes, seed: int) -> None:
        self.s, self.g, self.w = sizes, GraphBuilder("gpt"), Weights(seed)

    def norm(self, x: str) -> str:
        """Layer norm over the last dimension."""
        g, size = self.g, self.s.hidden
        scale, shift = g.weight(self.w.near_one(size), "norm"), g.weight(self.w.normal(size, scale=0.1), "shift")
        return g.op("LayerNormalization", x, scale, shift, axis=-1, epsilon=1e-5)

    def dense(self, x: str, inputs: int, outputs: int, gain: float = 1.0) -> str:
        """A linear layer over the last dimension."""
        product = self.g.op("MatMul", x, self.g.weight(self.w.linear(outputs, inputs, gain).T, "weight"))
        return self.g.op("Add", product, self.g.weight(self.w.normal(outputs, scale=0.1), "bias"))

    def heads(self, x: str) -> str:
        """[batch, sequence, hidden] to [batch, heads, sequence, head]."""
        shape = self.g.const([self.s.batch, self.s.sequence, self.s.heads, self.s.head])
        return self.g.op("Transpose", self.g.op("Reshape", x, shape), perm=[0, 2, 1, 3])

    def attention(self, x: str, past: tuple[str, str] | None) -> tuple[str, str, str]:
        """Causal attention; returns the result and the cache."""
        g, s = self.g, self.s
        columns = g.const([s.hidden] * 3)
        parts = g.ops("Split", self.dense(x, s.hidden, 3 * s.hidden), columns, outputs=3, axis=-1)
        q, k, v = map(self.heads, parts)
        if past is not None:
            k, v = (g.op("Concat", a, b, axis=2) for a, b in zip(past, (k, v), strict=True))
        scores = g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2]))
        scores = g.op("Mul", scores, g.f32(s.head**-0.5))
        if s.sequence > 1:
            scores = g.op("Where", self.mask, scores, g.f32(np.finfo(np.float32).min))
        y = g.op("Transpose", g.op("MatMul", g.op("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
        merged = g.op("Reshape", y, g.const([s.batch, s.sequence, s.hidden]))
        return self.dense(merged, s.hidden, s.hidden, gain=0.5), k, v

    def mlp(self, x: str) -> str:
        """Two layers with the tanh form of gelu between, as small operators."""
        g, size = self.g, self.s.hidden
        x = self.dense(x, size, 4 * size)
        cubic = g.op("Add", x, g.op("Mul", g.op("Pow", x, g.f32(3.0)), g.f32(0.044715)))
        bent = g.op("Add", g.op("Tanh", g.op("Mul", cubic, g.f32((2 / np.pi) ** 0.5))), g.f32(1.0))
        return self.dense(g.op("Mul", g.op("Mul", x, g.f32(0.5)), bent), 4 * size, size, gain=0.3)

    def embed(self, table: str) -> str:
        """Rows of tokens and of their positions; also makes the mask, which is the same for all layers."""
        g, s = self.g, self.s
        tokens = g.input("tokens", np.int64, [s.batch, s.sequence])
        rows = np.arange(s.past, s.past + s.sequence)[:, None]
        self.mask = g.const(rows >= np.arange(s.past + s.sequence), np.bool_)
        positions = g.op(
            "Gather", g.weight(self.w.normal(s.positions, s.hidden, scale=0.3), "positions"), g.const(rows[:, 0])
        )
        return g.op("Add", g.op("Gather", table, tokens), positions)

    def build(self) -> onnx.ModelProto:
        """The whole model."""
        g, s, f32 = self.g, self.s, np.float32
        values = self.w.normal(s.vocabulary, s.hidden)
        table = g.weight(values, "embedding")
        x, present = self.embed(table), []
        for i in range(s.layers):
            shape = [s.batch, s.heads, s.past, s.head]
            past = (g.input(f"past_key_{i}", f32, shape), g.input(f"past_value_{i}", f32, shape)) if s.past else None
            with g.scope(f"layer.{i}"):
                y, key, value = self.attention(self.norm(x), past)
                x = g.op("Add", x, y)
                x = g.op("Add", x, self.mlp(self.norm(x)))
            present.append((key, value))
        last = g.op("Gather", self.norm(x), g.const(-1), axis=1)  # the token that comes next is all that is asked
        scaled = g.op("Mul", last, g.f32(s.hidden**-0.5))
        g.output(g.op("Gemm", scaled, table, transB=1), "logits", f32, [s.batch, s.vocabulary])
        for i, (key, value) in enumerate(present):
            for kind, name in (("key", key), ("value", value)):
                g.output(name, f"present_{kind}_{i}", f32, [s.batch, s.heads, s.past + s.sequence, s.head])
        return g.model()


def gpt(seed: int = 0, **sizes: int) -> onnx.ModelProto:
    """`tokens` [batch, sequence] and the past cache -> `logits` of the last position and the present cache."""
    return _Gpt(Sizes(**sizes), seed).build()

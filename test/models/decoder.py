# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A decoder of the GPT kind with a cache of keys and values in and out: rotary positions, grouped queries, SwiGLU."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx

from ._graph import Graph
from ._weights import Weights

Size = int | str


@dataclass(frozen=True)
class Sizes:
    """Of the decoder; sequence and past may be symbolic."""

    layers: int = 2
    hidden: int = 48
    heads: int = 4
    kv_heads: int = 2
    intermediate: int = 100
    vocabulary: int = 71
    positions: int = 40
    batch: Size = 1
    sequence: Size = 3
    past: Size = 5

    @property
    def head(self) -> int:
        """Columns of one head."""
        return self.hidden // self.heads

    @property
    def total(self) -> Size:
        """Rows of the cache that comes out."""
        fixed = isinstance(self.past, int) and isinstance(self.sequence, int)
        return self.past + self.sequence if fixed else "total"  # type: ignore[operator]


class _Decoder:
    """One model under construction."""

    def __init__(self, sizes: Sizes, style: str, seed: int) -> None:
        self.sizes, self.export, self.padded = sizes, style in ("export", "padded"), style == "padded"
        self.g, self.w = Graph("decoder", 17 if self.export else 23), Weights(seed)

    def linear(self, x: str, outputs: int, inputs: int, name: str) -> str:
        """A product without bias."""
        return self.g.op("MatMul", x, self.g.weight(self.w.linear(outputs, inputs).T, name))

    def norm(self, x: str, name: str) -> str:
        """Division by the root of the mean square."""
        g, scale = self.g, self.g.weight(self.w.near_one(self.sizes.hidden), name)
        if not self.export:
            return g.op("RMSNormalization", x, scale, axis=-1, epsilon=1e-5)
        mean = g.op("ReduceMean", g.op("Pow", x, g.f32(2.0)), axes=[-1], keepdims=1)
        root = g.op("Sqrt", g.op("Add", mean, g.f32(1e-5)))
        return g.op("Mul", g.op("Div", x, root), scale)

    def split(self, x: str, heads: int) -> str:
        """[batch, sequence, columns] to [batch, heads, sequence, head]."""
        shape = self.g.const([0, 0, heads, self.sizes.head])
        return self.g.op("Transpose", self.g.op("Reshape", x, shape), perm=[0, 2, 1, 3])

    def rotate(self, x: str, caches: tuple[str, str], positions: str) -> str:
        """Turn halves of each head by the angle of the position."""
        g, half = self.g, self.sizes.head // 2
        if not self.export:
            return g.op("RotaryEmbedding", x, *caches, positions)
        cos, sin = (g.op("Unsqueeze", g.op("Gather", c, positions, axis=0), g.const([1])) for c in caches)
        first, second = g.ops("Split", x, g.const([half, half]), outputs=2, axis=-1)
        real = g.op("Sub", g.op("Mul", first, cos), g.op("Mul", second, sin))
        imaginary = g.op("Add", g.op("Mul", first, sin), g.op("Mul", second, cos))
        return g.op("Concat", real, imaginary, axis=-1)

    def attend(self, q: str, k: str, v: str, past: tuple[str, str]) -> tuple[str, str, str]:
        """The heads' results [batch, heads, sequence, head] and the caches."""
        if not self.export:
            y, key, value = self.g.ops("Attention", q, k, v, "", *past, outputs=3, is_causal=1)
            return y, key, value
        g, sizes = self.g, self.sizes
        key, value = g.op("Concat", past[0], k, axis=2), g.op("Concat", past[1], v, axis=2)
        keys, values = (self.repeated(x) for x in (key, value))
        scores = g.op("MatMul", q, g.op("Transpose", keys, perm=[0, 1, 3, 2]))
        scores = g.op("Add", g.op("Mul", scores, g.f32(sizes.head**-0.5)), self.mask(q, key))
        return g.op("MatMul", g.op("Softmax", scores, axis=-1), values), key, value

    def repeated(self, x: str) -> str:
        """Each key head as often as query heads read it."""
        g, groups = self.g, self.sizes.heads // self.sizes.kv_heads
        shape = g.op("Shape", x)
        batch, heads, rows, size = (g.op("Gather", shape, g.const([i])) for i in range(4))
        wide = g.op("Concat", batch, heads, g.const([groups]), rows, size, axis=0)
        merged = g.op("Concat", batch, g.const([self.sizes.heads]), rows, size, axis=0)
        return g.op("Reshape", g.op("Expand", g.op("Unsqueeze", x, g.const([2])), wide), merged)

    def mask(self, q: str, key: str) -> str:
        """-inf above the diagonal that ends at the last key."""
        g = self.g
        rows, columns = (g.op("Gather", g.op("Shape", x), g.const(2)) for x in (q, key))
        offset = g.op("Sub", columns, rows)
        row = g.op("Unsqueeze", g.op("Range", offset, columns, g.const(1)), g.const([1]))
        column = g.op("Range", g.const(0), columns, g.const(1))
        allowed = g.op("LessOrEqual", column, row)
        if self.padded:
            real = g.op("Unsqueeze", g.op("Cast", "attention_mask", to=onnx.TensorProto.BOOL), g.const([1, 2]))
            allowed = g.op("And", allowed, real)
        return g.op("Where", allowed, g.f32(0.0), g.f32(np.finfo(np.float32).min if self.padded else -np.inf))

    def layer(self, x: str, caches: tuple[str, str], positions: str, past: tuple[str, str]) -> tuple[str, str, str]:
        """Attention and a gated multi-layer perceptron, each beside a residual."""
        g, s = self.g, self.sizes
        normal = self.norm(x, "input_norm")
        widths = (s.hidden, s.kv_heads * s.head, s.kv_heads * s.head)
        q, k, v = (self.linear(normal, n, s.hidden, name) for n, name in zip(widths, "qkv", strict=True))
        q = self.rotate(self.split(q, s.heads), caches, positions)
        k = self.rotate(self.split(k, s.kv_heads), caches, positions)
        y, key, value = self.attend(q, k, self.split(v, s.kv_heads), past)
        y = g.op("Reshape", g.op("Transpose", y, perm=[0, 2, 1, 3]), g.const([0, 0, s.hidden]))
        x = g.op("Add", x, self.linear(y, s.hidden, s.hidden, "o"))
        normal = self.norm(x, "output_norm")
        gate, up = (self.linear(normal, s.intermediate, s.hidden, name) for name in ("gate", "up"))
        wide = g.op("Mul", g.op("Mul", gate, g.op("Sigmoid", gate)), up)
        return g.op("Add", x, self.linear(wide, s.hidden, s.intermediate, "down")), key, value

    def build(self) -> onnx.ModelProto:
        """The whole model."""
        g, s, f32 = self.g, self.sizes, np.float32
        tokens = g.input("tokens", np.int64, [s.batch, s.sequence])
        positions = g.input("positions", np.int64, [s.batch, s.sequence])
        if self.padded:
            g.input("attention_mask", np.int64, [s.batch, s.total])
        cache: list[Size] = [s.batch, s.kv_heads, s.past, s.head]
        names = [(f"past_key_{i}", f"past_value_{i}") for i in range(s.layers)]
        past = [(g.input(a, f32, cache), g.input(b, f32, cache)) for a, b in names]
        angles = np.outer(np.arange(s.positions), 10000.0 ** (-np.arange(s.head // 2) / (s.head // 2)))
        caches = (g.weight(np.cos(angles).astype(f32), "cos"), g.weight(np.sin(angles).astype(f32), "sin"))
        table = self.w.normal(s.vocabulary, s.hidden)
        x, present = g.op("Gather", g.weight(table, "embedding"), tokens), []
        for i in range(s.layers):
            with g.scope(f"layer.{i}"):
                x, key, value = self.layer(x, caches, positions, past[i])
            present.append((key, value))
        logits = g.op("MatMul", self.norm(x, "norm"), g.weight(table.T / np.sqrt(s.hidden, dtype=f32), "head"))
        g.output(logits, "logits", f32, [s.batch, s.sequence, s.vocabulary])
        out = [s.batch, s.kv_heads, s.total, s.head]
        for i, (key, value) in enumerate(present):
            g.output(key, f"present_key_{i}", f32, out)
            g.output(value, f"present_value_{i}", f32, out)
        return g.model()


def decoder(style: str = "operators", dynamic: bool = False, seed: int = 0, **sizes: int) -> onnx.ModelProto:
    """`tokens`, `positions` [batch, sequence] and the past cache -> `logits` and the present cache.

    Style `operators` has ONNX's own attention and rotary embedding (opset 23); `export` is made of small operators and
    shape arithmetic (opset 17); `padded` is that with an `attention_mask` [batch, past + sequence]. `dynamic` leaves
    batch, sequence and past symbolic.
    """
    symbolic: dict[str, Size] = {"batch": "batch", "sequence": "sequence", "past": "past"} if dynamic else {}
    return _Decoder(Sizes(**{**sizes, **symbolic}), style, seed).build()  # type: ignore[arg-type]

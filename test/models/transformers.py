# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Further transformers: T5's encoder and decoder step, Swin's shifted windows, Whisper's encoder, a translator."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx

from ._graph import Graph
from ._weights import Weights


class Blocks:
    """What the layers of these models have in common."""

    def __init__(self, name: str, seed: int) -> None:
        self.g, self.w = Graph(name, 17), Weights(seed)

    def linear(self, x: str, inputs: int, outputs: int, bias: bool = True, gain: float = 1.0) -> str:
        """A dense layer on the last dimension."""
        y = self.g.op("MatMul", x, self.g.weight(self.w.linear(outputs, inputs, gain).T))
        return self.g.op("Add", y, self.g.weight(self.w.normal(outputs, scale=0.1), "bias")) if bias else y

    def norm(self, x: str, size: int) -> str:
        """Layer norm over the last dimension."""
        scale, shift = self.g.weight(self.w.near_one(size)), self.g.weight(self.w.normal(size, scale=0.1))
        return self.g.op("LayerNormalization", x, scale, shift, axis=-1, epsilon=1e-5)

    def rms(self, x: str, size: int) -> str:
        """T5's norm: division by the root of the mean square."""
        mean = self.g.op("ReduceMean", self.g.op("Pow", x, self.g.f32(2.0)), axes=[-1], keepdims=1)
        root = self.g.op("Sqrt", self.g.op("Add", mean, self.g.f32(1e-6)))
        return self.g.op("Mul", self.g.weight(self.w.near_one(size)), self.g.op("Div", x, root))

    def gelu(self, x: str) -> str:
        """The exact gelu in five operators."""
        g = self.g
        bent = g.op("Add", g.op("Erf", g.op("Div", x, g.f32(2.0**0.5))), g.f32(1.0))
        return g.op("Mul", g.op("Mul", x, bent), g.f32(0.5))

    def heads(self, x: str, shape: Sequence[int]) -> str:
        """[batch, rows, columns] to [batch, heads, rows, head]."""
        return self.g.op("Transpose", self.g.op("Reshape", x, self.g.const(list(shape))), perm=[0, 2, 1, 3])

    def attend(self, q: str, k: str, v: str, scale: float = 1.0, bias: str | None = None) -> str:
        """softmax(q k^T scale + bias) v, heads merged again (batch and rows stay)."""
        g = self.g
        scores = g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2]))
        scores = g.op("Mul", scores, g.f32(scale)) if scale != 1.0 else scores
        scores = g.op("Add", scores, bias) if bias else scores
        y = g.op("Transpose", g.op("MatMul", g.op("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
        return y


def t5_encoder(
    layers: int = 4, hidden: int = 512, heads: int = 8, wide: int = 2048, sequence: int = 128, seed: int = 0
) -> onnx.ModelProto:
    """`tokens` [1, sequence] -> `states`: T5-small's encoder (Raffel et al., 2020), one table of relative positions."""
    b = Blocks("t5_encoder", seed)
    g, head = b.g, hidden // heads
    x = g.op("Gather", g.weight(b.w.normal(32128, hidden)), g.input("tokens", np.int64, [1, sequence]))
    far = np.clip(np.arange(sequence)[None] - np.arange(sequence)[:, None], -15, 15) + 16
    bias = g.op("Gather", g.weight(b.w.normal(32, heads)), g.const(far))
    bias = g.op("Unsqueeze", g.op("Transpose", bias, perm=[2, 0, 1]), g.const([0]))
    for _ in range(layers):
        normal = b.rms(x, hidden)
        q, k, v = (b.heads(b.linear(normal, hidden, hidden, False), [1, -1, heads, head]) for _ in range(3))
        y = g.op("Reshape", b.attend(q, k, v, 1.0, bias), g.const([1, -1, hidden]))
        x = g.op("Add", x, b.linear(y, hidden, hidden, False))
        y = g.op("Relu", b.linear(b.rms(x, hidden), hidden, wide, False))
        x = g.op("Add", x, b.linear(y, wide, hidden, False, 0.5))
    g.output(b.rms(x, hidden), "states", np.float32, [1, sequence, hidden])
    return g.model()


def t5_decoder(
    layers: int = 4,
    hidden: int = 512,
    heads: int = 8,
    wide: int = 2048,
    past: int = 32,
    sequence: int = 128,
    seed: int = 0,
) -> onnx.ModelProto:
    """One token, caches of `past` tokens and of the encoder's keys and values -> `logits` and the new caches."""
    b = Blocks("t5_decoder", seed)
    g, head, f32 = b.g, hidden // heads, np.float32
    table = b.w.normal(32128, hidden)
    x = g.op("Gather", g.weight(table), g.input("tokens", np.int64, [1, 1]))
    bias = g.weight(b.w.normal(1, heads, 1, past + 1))

    def attention(x: str, caches: list[str], own: bool) -> str:
        normal = b.rms(x, hidden)
        q, *new = (
            b.heads(b.linear(normal, hidden, hidden, False), [1, 1, heads, head]) for _ in range(3 if own else 1)
        )
        if own:
            caches[:] = [g.op("Concat", c, n, axis=2) for c, n in zip(caches, new, strict=True)]
        y = g.op("Reshape", b.attend(q, *caches, 1.0, bias if own else None), g.const([1, 1, hidden]))
        return g.op("Add", x, b.linear(y, hidden, hidden, False))

    for i in range(layers):
        caches = [g.input(f"past_{kind}_{i}", f32, [1, heads, past, head]) for kind in ("key", "value")]
        given = [g.input(f"encoder_{kind}_{i}", f32, [1, heads, sequence, head]) for kind in ("key", "value")]
        x = attention(attention(x, caches, True), given, False)
        y = g.op("Relu", b.linear(b.rms(x, hidden), hidden, wide, False))
        x = g.op("Add", x, b.linear(y, wide, hidden, False, 0.5))
        for kind, value in zip(("key", "value"), caches, strict=True):
            g.output(value, f"present_{kind}_{i}", f32, [1, heads, past + 1, head])
    scaled = g.op("Mul", b.rms(x, hidden), g.f32(hidden**-0.5))
    g.output(g.op("MatMul", scaled, g.weight(table.T)), "logits", f32, [1, 1, 32128])
    return g.model()


def swin(
    depths: Sequence[int] = (2, 2, 2, 2),
    width: int = 96,
    window: int = 7,
    classes: int = 1000,
    size: int = 224,
    seed: int = 0,
) -> onnx.ModelProto:
    """`image` -> `logits`: Swin-T (Liu et al., 2021), its third stage shortened; shifted windows."""
    b = Blocks("swin", seed)
    g = b.g
    x = g.op(
        "Conv", g.input("image", np.float32, [1, 3, size, size]), g.weight(b.w.conv(width, 3, 4, 4)), strides=[4, 4]
    )
    side = size // 4
    x = g.op("Transpose", g.op("Reshape", x, g.const([1, width, side * side])), perm=[0, 2, 1])
    x = b.norm(x, width)
    for stage, depth in enumerate(depths):
        for i in range(depth):
            x = _swin_block(b, x, width, side, window, window // 2 if i % 2 and side > window else 0)
        if stage + 1 < len(depths):
            x = g.op("Reshape", x, g.const([1, side, side, width]))
            parts = [_slice(g, _slice(g, x, 1, r, side, 2), 2, c, side, 2) for c in (0, 1) for r in (0, 1)]
            side, width = side // 2, 2 * width
            x = g.op("Reshape", g.op("Concat", *parts, axis=-1), g.const([1, side * side, 2 * width]))
            x = b.linear(b.norm(x, 2 * width), 2 * width, width, False)
    g.output(
        b.linear(g.op("ReduceMean", b.norm(x, width), axes=[1], keepdims=0), width, classes),
        "logits",
        np.float32,
        [1, classes],
    )
    return g.model()


def _slice(g: Graph, x: str, axis: int, start: int, end: int, step: int = 1) -> str:
    return g.op("Slice", x, g.const([start]), g.const([end]), g.const([axis]), g.const([step]))


def _roll(g: Graph, x: str, by: int, side: int) -> str:
    for axis in (1, 2):
        x = g.op("Concat", _slice(g, x, axis, by, side), _slice(g, x, axis, 0, by), axis=axis)
    return x


def _swin_block(b: Blocks, x: str, width: int, side: int, window: int, shift: int) -> str:
    g, n, heads = b.g, side // window, width // 32
    points, cells = window * window, (side // window) ** 2
    y = g.op("Reshape", b.norm(x, width), g.const([1, side, side, width]))
    y = _roll(g, y, shift, side) if shift else y
    y = g.op("Transpose", g.op("Reshape", y, g.const([1, n, window, n, window, width])), perm=[0, 1, 3, 2, 4, 5])
    y = b.linear(g.op("Reshape", y, g.const([cells, points, width])), width, 3 * width)
    y = g.op("Transpose", g.op("Reshape", y, g.const([cells, points, 3, heads, 32])), perm=[2, 0, 3, 1, 4])
    q, k, v = (g.op("Gather", y, g.const(i), axis=0) for i in range(3))
    bias = b.w.normal(1, heads, points, points, scale=0.2)
    if shift:
        region = np.zeros((side, side), int)
        for i, rows in enumerate((slice(0, -window), slice(-window, -shift), slice(-shift, None))):
            for j, columns in enumerate((slice(0, -window), slice(-window, -shift), slice(-shift, None))):
                region[rows, columns] = 3 * i + j
        region = region.reshape(n, window, n, window).swapaxes(1, 2).reshape(cells, points)
        bias = bias + np.where(region[:, None, :, None] == region[:, None, None, :], 0, -100).astype(np.float32)
    y = g.op("Reshape", b.attend(q, k, v, 32**-0.5, g.weight(bias)), g.const([1, n, n, window, window, width]))
    y = b.linear(y, width, width, gain=0.5)
    y = g.op("Reshape", g.op("Transpose", y, perm=[0, 1, 3, 2, 4, 5]), g.const([1, side, side, width]))
    y = _roll(g, y, side - shift, side) if shift else y
    x = g.op("Add", x, g.op("Reshape", y, g.const([1, side * side, width])))
    y = b.linear(b.gelu(b.linear(b.norm(x, width), width, 4 * width)), 4 * width, width, gain=0.5)
    return g.op("Add", x, y)


def whisper(
    layers: int = 4, hidden: int = 384, heads: int = 6, frames: int = 1500, mels: int = 80, seed: int = 0
) -> onnx.ModelProto:
    """`mel` [1, mels, 2 frames] -> `states`: Whisper-tiny's encoder (Radford et al., 2023)."""
    b = Blocks("whisper", seed)
    g, head = b.g, hidden // heads
    x = g.input("mel", np.float32, [1, mels, 2 * frames])
    for inputs, stride in ((mels, 1), (hidden, 2)):
        kernel, bias = g.weight(b.w.conv(hidden, inputs, 3)), g.weight(b.w.normal(hidden, scale=0.1))
        x = b.gelu(g.op("Conv", x, kernel, bias, kernel_shape=[3], pads=[1, 1], strides=[stride]))
    x = g.op("Add", g.op("Transpose", x, perm=[0, 2, 1]), g.weight(b.w.normal(frames, hidden)))
    for _ in range(layers):
        normal = b.norm(x, hidden)
        q, k, v = (b.heads(b.linear(normal, hidden, hidden), [1, frames, heads, head]) for _ in range(3))
        y = g.op("Reshape", b.attend(q, k, v, head**-0.5), g.const([1, frames, hidden]))
        x = g.op("Add", x, b.linear(y, hidden, hidden))
        y = b.linear(b.gelu(b.linear(b.norm(x, hidden), hidden, 4 * hidden)), 4 * hidden, hidden, gain=0.5)
        x = g.op("Add", x, y)
    g.output(b.norm(x, hidden), "states", np.float32, [1, frames, hidden])
    return g.model()


def translator(
    layers: int = 1, hidden: int = 64, heads: int = 4, frames: int = 24, mels: int = 16, tokens: int = 7, seed: int = 0
) -> onnx.ModelProto:
    """`mel` [1, mels, 2 frames], `tokens` [1, tokens] -> `logits`: Whisper's encoder and decoder in one graph.

    Convolutions along time, attention of the frames, causal attention of the tokens and theirs to the frames.
    """
    b = Blocks("translator", seed)
    g, head, words = b.g, hidden // heads, 97

    def attention(x: str, rows: int, source: str | None = None, count: int = 0, mask: str | None = None) -> str:
        normal = b.norm(x, hidden)
        q = b.heads(b.linear(normal, hidden, hidden), [1, rows, heads, head])
        given, count = (normal, rows) if source is None else (source, count)
        k, v = (b.heads(b.linear(given, hidden, hidden), [1, count, heads, head]) for _ in range(2))
        y = g.op("Reshape", b.attend(q, k, v, head**-0.5, mask), g.const([1, rows, hidden]))
        return g.op("Add", x, b.linear(y, hidden, hidden))

    def wide(x: str) -> str:
        y = b.linear(b.gelu(b.linear(b.norm(x, hidden), hidden, 4 * hidden)), 4 * hidden, hidden, gain=0.5)
        return g.op("Add", x, y)

    x, inputs = g.input("mel", np.float32, [1, mels, 2 * frames]), mels
    for stride in (1, 2):
        kernel, bias = g.weight(b.w.conv(hidden, inputs, 3)), g.weight(b.w.normal(hidden, scale=0.1))
        x, inputs = b.gelu(g.op("Conv", x, kernel, bias, kernel_shape=[3], pads=[1, 1], strides=[stride])), hidden
    x = g.op("Add", g.op("Transpose", x, perm=[0, 2, 1]), g.weight(b.w.normal(frames, hidden)))
    for _ in range(layers):
        x = wide(attention(x, frames))
    states = b.norm(x, hidden)
    table = b.w.normal(words, hidden)
    y = g.op("Gather", g.weight(table), g.input("tokens", np.int64, [1, tokens]))
    y = g.op("Add", y, g.weight(b.w.normal(tokens, hidden)))
    mask = g.weight(np.triu(np.full((tokens, tokens), -np.inf, np.float32), 1))
    for _ in range(layers):
        y = wide(attention(attention(y, tokens, mask=mask), tokens, states, frames))
    scaled = g.op("Mul", b.norm(y, hidden), g.f32(hidden**-0.5))
    g.output(g.op("MatMul", scaled, g.weight(table.T)), "logits", np.float32, [1, tokens, words])
    return g.model()

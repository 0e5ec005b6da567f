# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention over part of what there is: neighbours in long texts, windows of pictures, keys that windows make fewer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx

from ._image_net import ImageNet
from .language import _Encoder


def sliding_window(
    layers: int = 2, hidden: int = 512, heads: int = 8, sequence: int = 1024, window: int = 128, seed: int = 0
) -> onnx.ModelProto:
    """`x` [1, sequence, hidden] -> `y`: Longformer's windows (Beltagy et al., 2020): blocks see their neighbours."""
    b = _Encoder("sliding_window", seed)
    g, size, blocks = b.g, hidden // heads, sequence // window
    x = g.input("x", np.float32, [1, sequence, hidden])
    rows, columns = np.arange(window)[:, None], np.arange(3 * window)[None] - window
    position = np.arange(blocks)[:, None, None] * window + columns
    seen = (np.abs(columns - rows) <= window) & (position >= 0) & (position < sequence)
    mask = g.weight(np.where(seen, 0, -1e9).astype(np.float32)[None, None])

    def around(x: str) -> str:
        """[1, heads, sequence, size] to [1, heads, blocks, 3 window, size]."""
        padded = g.op("Pad", x, g.const([0, 0, window, 0, 0, 0, window, 0]))
        parts = []
        for shift in range(3):
            piece = g.op("Slice", padded, g.const([shift * window]), g.const([shift * window + sequence]), g.const([2]))
            parts.append(g.op("Reshape", piece, g.const([1, heads, blocks, window, size])))
        return g.op("Concat", *parts, axis=3)

    for _ in range(layers):
        normal = b.norm(x, hidden)
        q, k, v = (b.heads(b.linear(normal, hidden, hidden), [1, -1, heads, size]) for _ in range(3))
        q = g.op("Reshape", q, g.const([1, heads, blocks, window, size]))
        scores = g.op("MatMul", q, g.op("Transpose", around(k), perm=[0, 1, 2, 4, 3]))
        scores = g.op("Add", g.op("Mul", scores, g.f32(size**-0.5)), mask)
        y = g.op("MatMul", g.op("Softmax", scores, axis=-1), around(v))
        y = g.op("Transpose", g.op("Reshape", y, g.const([1, heads, sequence, size])), perm=[0, 2, 1, 3])
        x = g.op("Add", x, b.linear(g.op("Reshape", y, g.const([1, -1, hidden])), hidden, hidden))
        wide = b.gelu(b.linear(b.norm(x, hidden), hidden, 4 * hidden))
        x = g.op("Add", x, b.linear(wide, 4 * hidden, hidden))
    g.output(x, "y", np.float32, [1, sequence, hidden])
    return g.model()


def anything(
    windows: Sequence[int] = (7, 7, 0),
    hidden: int = 384,
    heads: int = 6,
    cells: int = 32,
    patch: int = 16,
    seed: int = 0,
) -> onnx.ModelProto:
    """`image` -> `embedding`: Segment Anything's encoder (Kirillov et al., 2023): windows; rows and columns."""
    b = _Encoder("anything", seed)
    g, w, size = b.g, b.w, hidden // heads
    image = g.input("image", np.float32, [1, 3, cells * patch, cells * patch])
    x = g.op("Conv", image, g.weight(w.conv(hidden, 3, patch, patch)), strides=[patch] * 2)
    x = g.op("Add", g.op("Transpose", x, perm=[0, 2, 3, 1]), g.weight(w.normal(1, cells, cells, hidden, scale=0.3)))

    def attention(x: str, count: int, side: int) -> str:
        """x [count, side, side, hidden]; scores get sums of a row's and a column's part."""
        q, k, v = g.ops("Split", b.linear(x, hidden, 3 * hidden), g.const([hidden] * 3), outputs=3, axis=3)
        q, k, v = (b.heads(part, [count, side * side, heads, size]) for part in (q, k, v))
        scores = g.op("MatMul", g.op("Mul", q, g.f32(size**-0.5)), g.op("Transpose", k, perm=[0, 1, 3, 2]))
        places = g.op("Reshape", q, g.const([count * heads, side, side, size]))
        far = g.const(np.arange(side)[:, None] - np.arange(side)[None] + side - 1)
        high, wide = (g.op("Gather", g.weight(w.normal(2 * side - 1, size, scale=0.1)), far) for _ in range(2))
        above = g.op("Unsqueeze", g.op("Einsum", places, high, equation="bhwc,hkc->bhwk"), g.const([4]))
        beside = g.op("Unsqueeze", g.op("Einsum", places, wide, equation="bhwc,wkc->bhwk"), g.const([3]))
        scores = g.op("Reshape", scores, g.const([count * heads, side, side, side, side]))
        scores = g.op("Add", g.op("Add", scores, above), beside)
        scores = g.op("Reshape", scores, g.const([count, heads, side * side, side * side]))
        y = g.op("Transpose", g.op("MatMul", g.op("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
        return b.linear(g.op("Reshape", y, g.const([count, side, side, hidden])), hidden, hidden)

    for window in windows:
        y = b.norm(x, hidden)
        if window:
            blocks = -(-cells // window)
            room = blocks * window
            y = g.op("Pad", y, g.const([0, 0, 0, 0, 0, room - cells, room - cells, 0]))
            y = g.op("Reshape", y, g.const([blocks, window, blocks, window, hidden]))
            y = g.op("Reshape", g.op("Transpose", y, perm=[0, 2, 1, 3, 4]), g.const([-1, window, window, hidden]))
            y = g.op("Reshape", attention(y, blocks**2, window), g.const([blocks, blocks, window, window, hidden]))
            y = g.op("Reshape", g.op("Transpose", y, perm=[0, 2, 1, 3, 4]), g.const([1, room, room, hidden]))
            y = g.op("Slice", y, g.const([0, 0]), g.const([cells, cells]), g.const([1, 2]))
        else:
            y = attention(y, 1, cells)
        x = g.op("Add", x, y)
        x = g.op("Add", x, b.linear(b.gelu(b.linear(b.norm(x, hidden), hidden, 4 * hidden)), 4 * hidden, hidden))
    y = g.op("Conv", g.op("Transpose", x, perm=[0, 3, 1, 2]), g.weight(w.conv(256, hidden, 1, 1)))
    g.output(y, "embedding", np.float32, [1, 256, cells, cells])
    return g.model()


def segformer(
    widths: Sequence[int] = (32, 64, 160, 256), heads: Sequence[int] = (1, 2, 5, 8),
    fewer: Sequence[int] = (8, 4, 2, 1), depth: int = 2, size: int = 256, head: int = 256, classes: int = 150,
    seed: int = 0,
) -> onnx.ModelProto:  # fmt: skip
    """`image` -> `logits`: SegFormer-B0 (Xie et al., 2021): strided windows make keys fewer; four scales."""
    n, b = ImageNet("segformer", seed), _Encoder("segformer", seed)
    b.g, b.w = n.g, n.w
    g, w = n.g, n.w

    def tokens(x: str, width: int) -> str:
        return g.op("Transpose", g.op("Reshape", x, g.const([1, width, -1])), perm=[0, 2, 1])

    def picture(x: str, width: int, side: int) -> str:
        return n.known(g.op("Reshape", g.op("Transpose", x, perm=[0, 2, 1]), g.const([1, width, side, side])), width)

    def attention(x: str, width: int, count: int, rate: int, side: int) -> str:
        keys = x
        if rate > 1:
            kernel, shift = g.weight(w.conv(width, width, rate, rate, gain=1.0)), g.weight(w.normal(width, scale=0.1))
            y = g.op("Conv", picture(x, width, side), kernel, shift, strides=[rate] * 2)
            keys = b.norm(tokens(y, width), width)
        split = [1, -1, count, width // count]
        q, k, v = (b.heads(b.linear(part, width, width), split) for part in (x, keys, keys))
        y = g.op("Reshape", b.attend(q, k, v, (width // count) ** -0.5), g.const([1, -1, width]))
        return b.linear(y, width, width)

    x, side, levels = n.input("image", [1, 3, size, size]), size, []
    for stage, (width, count, rate) in enumerate(zip(widths, heads, fewer, strict=True)):
        x, side = n.conv(x, width, 3 if stage else 7, None, 2 if stage else 4), side // (2 if stage else 4)
        y = b.norm(tokens(x, width), width)
        for _ in range(depth):
            y = g.op("Add", y, attention(b.norm(y, width), width, count, rate, side))
            wide = picture(b.linear(b.norm(y, width), width, 4 * width), 4 * width, side)
            wide = tokens(n.conv(wide, 4 * width, 3, None, groups=4 * width), 4 * width)
            y = g.op("Add", y, b.linear(b.gelu(wide), 4 * width, width))
        y = b.norm(y, width)
        x = picture(y, width, side)
        level = picture(b.linear(y, width, head), head, side)
        levels.append(n.resize(level, 2**stage, "linear") if stage else level)
    x = n.conv(n.concat(*levels[::-1]), head, 1)
    g.output(n.conv(x, classes, 1, None), "logits", np.float32, [1, classes, size // 4, size // 4])
    return g.model()

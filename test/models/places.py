# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Points, rays and places in pictures: neighbours in space, radiance fields, matching, attention at moved points."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx

from ._image_net import ImageNet
from .language import _Encoder


def edge_conv(
    widths: Sequence[int] = (64, 64, 128), points: int = 1024, near: int = 20, classes: int = 40, seed: int = 0
) -> onnx.ModelProto:
    """`points` [1, 3, points] -> `logits`: DGCNN (Wang et al., 2019): windows over the nearest points of each layer."""
    n = ImageNet("edge_conv", seed)
    g = n.g
    x, kept = n.input("points", [1, 3, points]), list[str]()
    for width in widths:
        inputs = n.channels[x]
        rows = g.op("Transpose", x, perm=[0, 2, 1])
        squares = g.op("ReduceSum", g.op("Mul", x, x), g.const([1]), keepdims=1)
        product = g.op("Mul", g.op("MatMul", rows, x), g.f32(2.0))
        close = g.op("Sub", g.op("Sub", product, squares), g.op("Transpose", squares, perm=[0, 2, 1]))
        which = g.ops("TopK", close, g.const([near]), outputs=2, axis=-1)[1]
        flat = g.op("Reshape", rows, g.const([points, inputs]))
        there = g.op("Gather", flat, g.op("Reshape", which, g.const([-1])))
        there = g.op("Reshape", there, g.const([1, points, near, inputs]))
        here = g.op("Expand", g.op("Unsqueeze", rows, g.const([2])), g.const([1, points, near, inputs]))
        pairs = g.op("Concat", g.op("Sub", there, here), here, axis=3)
        pairs = n.known(g.op("Transpose", pairs, perm=[0, 3, 1, 2]), 2 * inputs)
        y = g.op("LeakyRelu", n.conv(pairs, width, 1, None), alpha=0.2)
        x = n.known(g.op("ReduceMax", y, axes=[3], keepdims=0), width)
        kept.append(x)
    x = n.known(g.op("Unsqueeze", n.concat(*kept), g.const([3])), sum(widths))
    x = n.conv(x, 512, 1)
    most = n.known(g.op("ReduceMax", x, axes=[2, 3], keepdims=0), 512)
    g.output(n.linear(n.linear(most, 256, "Relu"), classes), "logits", np.float32, [1, classes])
    return g.model()


def radiance(
    rays: int = 64, samples: int = 64, width: int = 256, depth: int = 8, waves: int = 10, seed: int = 0
) -> onnx.ModelProto:
    """`start`, `way` [rays, 3] -> `colours`: a neural radiance field (Mildenhall et al., 2020), samples along rays."""
    b = _Encoder("radiance", seed)
    g, f32 = b.g, np.float32
    start, way = (g.op("Unsqueeze", g.input(name, f32, [rays, 3]), g.const([1])) for name in ("start", "way"))
    steps = g.weight(np.linspace(0.1, 1.0, samples, dtype=f32).reshape(1, samples, 1))
    places = g.op("Add", start, g.op("Mul", way, steps))

    def waved(x: str, count: int) -> str:
        parts = [x]
        for i in range(count):
            angle = g.op("Mul", x, g.f32(2.0**i * 0.1))
            parts += [g.op("Sin", angle), g.op("Cos", angle)]
        return g.op("Concat", *parts, axis=-1)

    given, inputs = waved(places, waves), 3 + 6 * waves
    x, wide = given, inputs
    for layer in range(depth):
        x, wide = (g.op("Concat", given, x, axis=-1), wide + inputs) if layer == depth // 2 else (x, wide)
        x, wide = g.op("Relu", b.linear(x, wide, width, gain=1.4)), width
    dense = g.op("Softplus", b.linear(x, width, 1, gain=3.0))
    seen = g.op("Expand", waved(way, 4), g.const([rays, samples, 27]))
    x = g.op("Concat", b.linear(x, width, width), seen, axis=-1)
    x = g.op("Relu", b.linear(x, width + 27, width // 2))
    colours = g.op("Sigmoid", b.linear(x, width // 2, 3, gain=2.0))
    held = g.op("Mul", dense, g.f32(4 / samples))
    through = g.op("Exp", g.op("Neg", g.op("CumSum", held, g.const(1), exclusive=1)))
    share = g.op("Mul", through, g.op("Sub", g.f32(1.0), g.op("Exp", g.op("Neg", held))))
    g.output(g.op("ReduceSum", g.op("Mul", share, colours), g.const([1]), keepdims=0), "colours", f32, [rays, 3])
    return g.model()


def matcher(
    hidden: int = 256, heads: int = 4, points: int = 256, layers: int = 2, rounds: int = 20, seed: int = 0
) -> onnx.ModelProto:
    """`a`, `b` [1, points, hidden] -> `pairs`: SuperGlue (Sarlin et al., 2020): attention, then Sinkhorn's rounds."""
    b = _Encoder("matcher", seed)
    g, size, f32 = b.g, hidden // heads, np.float32
    sides = [g.input(name, f32, [1, points, hidden]) for name in "ab"]

    def attended(x: str, other: str) -> str:
        split = [1, -1, heads, size]
        q, k, v = (b.heads(b.linear(side, hidden, hidden), split) for side in (x, other, other))
        y = b.linear(g.op("Reshape", b.attend(q, k, v, size**-0.5), g.const([1, -1, hidden])), hidden, hidden)
        y = g.op("Relu", b.linear(g.op("Concat", x, y, axis=2), 2 * hidden, 2 * hidden))
        return g.op("Add", x, b.linear(y, 2 * hidden, hidden, gain=0.5))

    for cross in (False, True) * layers:
        sides = [attended(x, sides[1 - i] if cross else x) for i, x in enumerate(sides)]
    left, right = (b.linear(x, hidden, hidden) for x in sides)
    scores = g.op("MatMul", left, g.op("Transpose", right, perm=[0, 2, 1]))
    scores = g.op("Mul", scores, g.f32(1 / hidden**0.5))
    nobody = g.weight(np.full((1, 1, 1), 0.5, f32))
    scores = g.op("Concat", scores, g.op("Expand", nobody, g.const([1, points, 1])), axis=2)
    scores = g.op("Concat", scores, g.op("Expand", nobody, g.const([1, 1, points + 1])), axis=1)
    share = np.full(points + 1, -np.log(2 * points), f32)
    share[-1] += np.log(points)
    rows, columns = g.weight(share.reshape(1, -1, 1)), g.weight(share.reshape(1, 1, -1))
    u, v = g.weight(np.zeros((1, points + 1, 1), f32)), g.weight(np.zeros((1, 1, points + 1), f32))
    for _ in range(rounds):
        u = g.op("Sub", rows, g.op("ReduceLogSumExp", g.op("Add", scores, v), axes=[2], keepdims=1))
        v = g.op("Sub", columns, g.op("ReduceLogSumExp", g.op("Add", scores, u), axes=[1], keepdims=1))
    total = g.op("Add", g.op("Add", g.op("Add", scores, u), v), g.f32(np.log(2 * points)))
    g.output(g.op("Exp", total), "pairs", f32, [1, points + 1, points + 1])
    return g.model()


def deformable(
    hidden: int = 256, heads: int = 8, cells: Sequence[int] = (32, 16, 8), points: int = 4, layers: int = 2,
    seed: int = 0,
) -> onnx.ModelProto:  # fmt: skip
    """`x` [1, cells, hidden] -> `y`: Deformable DETR's encoder (Zhu et al., 2021): GridSample where offsets point."""
    b = _Encoder("deformable", seed)
    g, size, levels = b.g, hidden // heads, len(cells)
    counts = [n * n for n in cells]
    total = sum(counts)
    x = g.input("x", np.float32, [1, total, hidden])
    place = [np.stack(np.meshgrid(*[(np.arange(n) + 0.5) / n] * 2), -1).reshape(-1, 2) for n in cells]
    own = g.weight(np.concatenate(place).reshape(1, total, 1, 1, 1, 2).astype(np.float32))
    scale = g.weight((2 / np.array(cells, np.float32)).reshape(1, 1, 1, levels, 1, 1))
    position = g.weight(b.w.normal(1, total, hidden, scale=0.5))
    for _ in range(layers):
        query = g.op("Add", x, position)
        value = g.op("Reshape", b.linear(x, hidden, hidden), g.const([total, heads, size]))
        value = g.op("Transpose", value, perm=[1, 2, 0])  # [heads, size, total]
        offsets = b.linear(query, hidden, heads * levels * points * 2)
        offsets = g.op("Reshape", offsets, g.const([1, total, heads, levels, points, 2]))
        grid = g.op("Sub", g.op("Mul", own, g.f32(2.0)), g.f32(1.0))
        grid = g.op("Add", grid, g.op("Mul", offsets, scale))
        weights = g.op("Reshape", b.linear(query, hidden, heads * levels * points), g.const([total, heads, -1]))
        weights = g.op("Transpose", g.op("Softmax", weights, axis=-1), perm=[1, 0, 2])
        weights = g.op("Reshape", weights, g.const([heads, 1, total, levels * points]))
        parts = g.ops("Split", value, g.const(counts), outputs=levels, axis=2)
        grids = g.ops("Split", grid, g.const([1] * levels), outputs=levels, axis=3)
        seen = []
        for part, at, n in zip(parts, grids, cells, strict=True):
            picture = g.op("Reshape", part, g.const([heads, size, n, n]))
            at = g.op("Transpose", g.op("Reshape", at, g.const([total, heads, points, 2])), perm=[1, 0, 2, 3])
            seen.append(g.op("GridSample", picture, at, mode="bilinear", padding_mode="zeros", align_corners=0))
        y = g.op("Mul", g.op("Concat", *seen, axis=3), weights)
        y = g.op("ReduceSum", y, g.const([3]), keepdims=0)  # [heads, size, total]
        y = g.op("Reshape", g.op("Transpose", y, perm=[2, 0, 1]), g.const([1, total, hidden]))
        x = b.norm(g.op("Add", x, b.linear(y, hidden, hidden)), hidden)
        wide = g.op("Relu", b.linear(x, hidden, 4 * hidden))
        x = b.norm(g.op("Add", x, b.linear(wide, 4 * hidden, hidden)), hidden)
    g.output(x, "y", np.float32, [1, total, hidden])
    return g.model()

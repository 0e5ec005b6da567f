# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A detection head: convolutions give boxes and scores at each cell, non-max suppression selects some of them."""

from __future__ import annotations

import numpy as np
import onnx

from ._graph import Graph
from ._weights import Weights


def detection(
    channels: int = 6, classes: int = 3, cells: int = 8, most: int = 5, overlap: float = 0.4, seed: int = 0
) -> onnx.ModelProto:
    """`features` [1, channels, cells, cells] -> `boxes` [n, 4], `scores` [n], `labels` [n]; n depends on the data."""
    g, w, count = Graph("detection"), Weights(seed), cells * cells
    x = g.input("features", np.float32, [1, channels, cells, cells])
    for i in range(2):
        kernel = g.weight(w.conv(channels, channels, 3, 3), f"stem.{i}")
        x = g.op("Relu", g.op("Conv", x, kernel, pads=[1, 1, 1, 1]))
    raw = g.op("Conv", x, g.weight(w.conv(4 + classes, channels, 1, 1), "head"))
    flat = g.op("Transpose", g.op("Reshape", raw, g.const([1, 4 + classes, count])), perm=[0, 2, 1])
    place, size, logits = g.ops("Split", flat, g.const([2, 2, classes]), outputs=3, axis=2)
    rows, columns = np.divmod(np.arange(count), cells)
    centres = g.weight(np.stack([columns, rows], 1)[None].astype(np.float32) + 0.5, "centres")
    middle = g.op("Add", centres, g.op("Tanh", place))
    half = g.op("Mul", g.op("Exp", g.op("Clip", size, g.f32(-2.0), g.f32(1.0))), g.f32(0.7))
    boxes = g.op("Concat", g.op("Sub", middle, half), g.op("Add", middle, half), axis=2)
    scores = g.op("Transpose", g.op("Sigmoid", logits), perm=[0, 2, 1])
    limits = (g.const([most]), g.const([overlap], np.float32), g.const([0.3], np.float32))
    chosen = g.op("NonMaxSuppression", boxes, scores, *limits)
    label, cell = (g.op("Squeeze", g.op("Gather", chosen, g.const([i]), axis=1), g.const([1])) for i in (1, 2))
    g.output(g.op("Gather", g.op("Squeeze", boxes, g.const([0])), cell), "boxes", np.float32, ["n", 4])
    pairs = g.op("Slice", chosen, g.const([1]), g.const([3]), g.const([1]))
    g.output(g.op("GatherND", g.op("Squeeze", scores, g.const([0])), pairs), "scores", np.float32, ["n"])
    g.output(label, "labels", np.int64, ["n"])
    return g.model()

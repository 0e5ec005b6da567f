# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Detectors: convolutions give boxes and scores at each cell, non-max suppression or TopK selects some of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx

from ._graph import Graph
from ._image_net import ImageNet
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


def ssd(
    widths: Sequence[int] = (32, 64, 128),
    classes: int = 20,
    size: int = 128,
    before: int = 200,
    most: int = 100,
    seed: int = 0,
) -> onnx.ModelProto:
    """`image` -> `boxes` [n, 4], `scores`, `labels` [n]: SSD (Liu et al., 2016) with the best cells chosen by TopK.

    Anchors at each cell of three maps, of which the coarser ones are resized and added to the finer (FPN, Lin et al.,
    2017). Boxes that ScatterND puts beyond the image's corner, as exporters write slices, are clipped.
    """
    n = ImageNet("ssd", seed)
    g = n.g
    x, maps = n.conv(n.input("image", [1, 3, size, size]), widths[0], stride=2), list[str]()
    for width in widths:
        x = n.conv(x, width, stride=2)
        maps.append(x)
    for i in reversed(range(len(maps) - 1)):
        maps[i] = n.add(n.resize(n.conv(maps[i + 1], n.channels[maps[i]], 1, None)), maps[i])
    flat, anchors = list[str](), list[np.ndarray]()
    for level, x in enumerate(maps):
        cells = size >> (level + 2)
        raw = n.conv(x, 2 * (4 + classes + 1), 3, None, gain=0.15)
        shaped = g.op("Reshape", raw, g.const([1, 2, 5 + classes, cells * cells]))
        flat.append(g.op("Reshape", g.op("Transpose", shaped, perm=[0, 3, 1, 2]), g.const([1, -1, 5 + classes])))
        at = (np.indices((cells, cells)).reshape(2, -1, 1) + 0.5) / cells
        sides = np.broadcast_to(np.array([1.5, 2.5]) / cells, (cells * cells, 2))
        anchors.append(np.stack([*np.broadcast_to(at, (2, cells * cells, 2)), sides, sides], -1).reshape(-1, 4))
    place, logits = g.ops("Split", g.op("Concat", *flat, axis=1), g.const([4, classes + 1]), outputs=2, axis=2)
    anchor = g.weight(np.concatenate(anchors)[None].astype(np.float32), "anchors")
    middle, extent = g.ops("Split", anchor, g.const([2, 2]), outputs=2, axis=2)
    shift, growth = g.ops("Split", place, g.const([2, 2]), outputs=2, axis=2)
    centre = g.op("Add", middle, g.op("Mul", g.op("Mul", shift, g.f32(0.1)), extent))
    half = g.op("Mul", g.op("Mul", extent, g.op("Exp", g.op("Mul", growth, g.f32(0.2)))), g.f32(0.5))
    boxes = g.op("Concat", g.op("Sub", centre, half), g.op("Add", centre, half), axis=2)
    count = sum(len(a) for a in anchors)
    chances = _part(g, g.op("Softmax", logits, axis=2), 2, 1, classes + 1)
    best = g.op("Squeeze", g.op("ReduceMax", chances, axes=[2], keepdims=0), g.const([0]))
    _, cells = g.ops("TopK", best, g.const([before]), outputs=2, axis=0)
    boxes, chances = (g.op("Gather", x, cells, axis=1) for x in (boxes, chances))
    # x[:, :, :2] = clip(x[:, :, :2]) by ScatterND, as PyTorch's exporter writes it.
    corner = g.op("Clip", _part(g, boxes, 2, 0, 2), g.f32(0.0), g.f32(1.0))
    index = np.stack(np.meshgrid([0], np.arange(before), np.arange(2), indexing="ij"), -1)
    boxes = g.op("ScatterND", boxes, g.const(index), corner)
    limits = (g.const([most]), g.const([0.45], np.float32), g.const([0.05], np.float32))
    chosen = g.op("NonMaxSuppression", boxes, g.op("Transpose", chances, perm=[0, 2, 1]), *limits)
    label, cell = (g.op("Squeeze", g.op("Gather", chosen, g.const([i]), axis=1), g.const([1])) for i in (1, 2))
    g.output(g.op("Gather", g.op("Squeeze", boxes, g.const([0])), cell), "boxes", np.float32, ["n", 4])
    pairs = g.op("Concat", *(g.op("Unsqueeze", x, g.const([1])) for x in (cell, label)), axis=1)
    g.output(g.op("GatherND", g.op("Squeeze", chances, g.const([0])), pairs), "scores", np.float32, ["n"])
    g.output(label, "labels", np.int64, ["n"])
    assert count >= before
    return g.model()


def _part(g: Graph, x: str, axis: int, start: int, end: int) -> str:
    return g.op("Slice", x, g.const([start]), g.const([end]), g.const([axis]))


def two_stage(width: int = 32, classes: int = 10, cells: int = 16, regions: int = 20, seed: int = 0) -> onnx.ModelProto:
    """`features` -> `logits` [regions, classes]: Faster R-CNN's second stage (Ren et al., 2015).

    Regions by objectness (TopK over cells above their mean, found by NonZero), features by RoiAlign, a dense head.
    """
    n = ImageNet("two_stage", seed)
    g, count = n.g, cells * cells
    x = n.conv(n.input("features", [1, width, cells, cells]), width)
    score = g.op("Reshape", n.conv(x, 1, 1, "Sigmoid"), g.const([count]))
    likely = g.op("NonZero", g.op("Greater", score, g.op("ReduceMean", score, axes=[0], keepdims=1)))
    likely = g.op("Squeeze", likely, g.const([0]))
    number = g.op(
        "Add", g.op("CumSum", g.op("Cast", g.op("Greater", score, g.f32(-1.0)), to=7), g.const(0)), g.const(-1)
    )
    masked = g.op("ScatterElements", g.weight(np.zeros(count, np.float32)), likely, g.op("Gather", score, likely))
    _, best = g.ops("TopK", masked, g.const([regions]), outputs=2, axis=0)
    best = g.op("Gather", number, best)
    rows, columns = g.op("Div", best, g.const(cells)), g.op("Mod", best, g.const(cells))
    y, x0 = (g.op("Cast", v, to=1) for v in (rows, columns))
    sides = [g.op("Unsqueeze", v, g.const([1])) for v in (x0, y)]
    corners = [g.op("Add", side, g.f32(by)) for by in (-1.5, 2.5) for side in sides]
    boxes = g.op("Concat", *corners, axis=1)
    batch = g.weight(np.zeros(regions, np.int64))
    pooled = g.op("RoiAlign", x, boxes, batch, output_height=3, output_width=3, sampling_ratio=2, spatial_scale=1.0)
    flat = n.known(g.op("Reshape", pooled, g.const([regions, 9 * width])), 9 * width)
    g.output(n.linear(n.linear(flat, 4 * width, "Relu"), classes), "logits", np.float32, [regions, classes])
    return g.model()

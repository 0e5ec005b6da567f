# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ResNet-50 (v1.5: the stride sits in the 3x3 convolution) with BatchNormalization nodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx

from tilewright.demo.graph import GraphBuilder

from ._weights import Weights


def conv_norm(
    g: GraphBuilder,
    w: Weights,
    x: str,
    channels: tuple[int, int],
    window: int,
    stride: int = 1,
    groups: int = 1,
    gain: float = 1.0,
) -> str:
    """Convolution without bias, then BatchNormalization whose scale is near `gain`."""
    inputs, outputs = channels
    pad = window // 2
    kernel = g.weight(w.conv(outputs, inputs // groups, window, window), "conv")
    y = g.op(
        "Conv",
        x,
        kernel,
        kernel_shape=[window, window],
        strides=[stride, stride],
        pads=[pad, pad, pad, pad],
        group=groups,
        dilations=[1, 1],
    )
    scale = g.weight(w.near_one(outputs) * np.float32(gain), "scale")
    shift, mean = (g.weight(w.normal(outputs, scale=0.1), n) for n in ("shift", "mean"))
    return g.op("BatchNormalization", y, scale, shift, mean, g.weight(w.positive(outputs), "variance"), epsilon=1e-5)


def _bottleneck(g: GraphBuilder, w: Weights, x: str, inputs: int, width: int, stride: int) -> str:
    y = g.op("Relu", conv_norm(g, w, x, (inputs, width), 1))
    y = g.op("Relu", conv_norm(g, w, y, (width, width), 3, stride))
    y = conv_norm(g, w, y, (width, 4 * width), 1, gain=0.4)
    if stride != 1 or inputs != 4 * width:
        x = conv_norm(g, w, x, (inputs, 4 * width), 1, stride, gain=0.9)
    return g.op("Relu", g.op("Add", y, x))


def resnet(
    blocks: Sequence[int] = (3, 4, 6, 3),
    width: int = 64,
    classes: int = 1000,
    batch: int = 1,
    size: int = 224,
    seed: int = 0,
) -> onnx.ModelProto:
    """`image` [batch, 3, size, size] -> `logits` [batch, classes]; the defaults are ResNet-50."""
    g, w = GraphBuilder("resnet"), Weights(seed)
    x = g.input("image", np.float32, [batch, 3, size, size])
    with g.scope("stem"):
        x = g.op("Relu", conv_norm(g, w, x, (3, width), 7, 2))
        x = g.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    channels = width
    for stage, count in enumerate(blocks):
        for block in range(count):
            with g.scope(f"layer{stage + 1}.{block}"):
                stride = 2 if stage > 0 and block == 0 else 1
                x = _bottleneck(g, w, x, channels, width << stage, stride)
                channels = 4 * (width << stage)
    with g.scope("head"):
        x = g.op("Flatten", g.op("GlobalAveragePool", x), axis=1)
        weight = g.weight(w.linear(classes, channels, gain=0.1), "fc.weight")
        x = g.op("Gemm", x, weight, g.weight(w.normal(classes, scale=0.1), "fc.bias"), transB=1)
    g.output(x, "logits", np.float32, [batch, classes])
    return g.model()

# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""MobileNets: depthwise convolutions and ones of one by one, plain (V1) or as inverted residuals with ReLU6 (V2)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx

from tilewright.demo.graph import GraphBuilder

from ._weights import Weights
from .resnet import conv_norm

# expansion, channels, repeats, stride of the first repeat
STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))

# channels and stride after each pair of a depthwise convolution and one of one by one
PAIRS = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *((512, 1),) * 5, (1024, 2), (1024, 1))


def mobilenet_v1(
    pairs: Sequence[tuple[int, int]] = PAIRS,
    stem: int = 32,
    classes: int = 120,
    batch: int = 1,
    size: int = 224,
    seed: int = 0,
) -> onnx.ModelProto:
    """`image` [batch, 3, size, size] -> `logits` [batch, classes]; as in SparTA (OSDI 2022), with 120 classes."""
    g, w = GraphBuilder("mobilenet_v1"), Weights(seed)
    x = g.input("image", np.float32, [batch, 3, size, size])
    with g.scope("features.0"):
        x = g.op("Relu", conv_norm(g, w, x, (3, stem), 3, 2))
    channels = stem
    for index, (outputs, stride) in enumerate(pairs, 1):
        with g.scope(f"features.{index}"):
            x = g.op("Relu", conv_norm(g, w, x, (channels, channels), 3, stride, groups=channels))
            x = g.op("Relu", conv_norm(g, w, x, (channels, outputs), 1))
        channels = outputs
    with g.scope("head"):
        x = g.op("Flatten", g.op("GlobalAveragePool", x), axis=1)
        weight = g.weight(w.linear(classes, channels), "fc.weight")
        x = g.op("Gemm", x, weight, g.weight(w.normal(classes, scale=0.1), "fc.bias"), transB=1)
    g.output(x, "logits", np.float32, [batch, classes])
    return g.model()


def _relu6(g: GraphBuilder, x: str) -> str:
    return g.op("Clip", x, g.f32(0.0), g.f32(6.0))


def _inverted_residual(g: GraphBuilder, w: Weights, x: str, channels: tuple[int, int], grow: int, stride: int) -> str:
    inputs, outputs = channels
    y, wide = x, inputs * grow
    if grow != 1:
        y = _relu6(g, conv_norm(g, w, y, (inputs, wide), 1))
    y = _relu6(g, conv_norm(g, w, y, (wide, wide), 3, stride, groups=wide))
    y = conv_norm(g, w, y, (wide, outputs), 1, gain=0.7)
    return g.op("Add", x, y) if stride == 1 and inputs == outputs else y


def mobilenet_v2(
    stages: Sequence[tuple[int, int, int, int]] = STAGES,
    stem: int = 32,
    last: int = 1280,
    classes: int = 1000,
    batch: int = 1,
    size: int = 224,
    seed: int = 0,
) -> onnx.ModelProto:
    """`image` [batch, 3, size, size] -> `logits` [batch, classes]."""
    g, w = GraphBuilder("mobilenet_v2"), Weights(seed)
    x = g.input("image", np.float32, [batch, 3, size, size])
    with g.scope("features.0"):
        x = _relu6(g, conv_norm(g, w, x, (3, stem), 3, 2))
    channels, index = stem, 0
    for grow, outputs, repeats, stride in stages:
        for repeat in range(repeats):
            index += 1
            with g.scope(f"features.{index}"):
                x = _inverted_residual(g, w, x, (channels, outputs), grow, stride if repeat == 0 else 1)
            channels = outputs
    with g.scope("head"):
        x = _relu6(g, conv_norm(g, w, x, (channels, last), 1))
        x = g.op("Flatten", g.op("GlobalAveragePool", x), axis=1)
        weight = g.weight(w.linear(classes, last), "fc.weight")
        x = g.op("Gemm", x, weight, g.weight(w.normal(classes, scale=0.1), "fc.bias"), transB=1)
    g.output(x, "logits", np.float32, [batch, classes])
    return g.model()

# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Classifiers of the first years: VGG-16, SqueezeNet, DenseNet-121, Inception-v3's block of asymmetric windows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx

from ._image_net import ImageNet


def vgg(
    stages: Sequence[tuple[int, int]] = ((2, 64), (2, 128), (3, 256), (3, 512), (3, 512)),
    hidden: int = 4096,
    classes: int = 1000,
    size: int = 224,
    seed: int = 0,
) -> onnx.ModelProto:
    """`image` -> `logits`: VGG-16 (Simonyan and Zisserman, 2015)."""
    n = ImageNet("vgg", seed)
    x = n.input("image", [1, 3, size, size])
    for repeats, width in stages:
        for _ in range(repeats):
            x = n.conv(x, width)
        x, size = n.pool(x), size // 2
    x = n.known(n.g.op("Flatten", x, axis=1), n.channels[x] * size * size)
    x = n.linear(n.linear(n.linear(x, hidden, "Relu"), hidden, "Relu"), classes)
    n.g.output(x, "logits", np.float32, [1, classes])
    return n.g.model()


def squeezenet(width: int = 16, classes: int = 1000, size: int = 224, seed: int = 0) -> onnx.ModelProto:
    """`image` -> `logits`: SqueezeNet 1.1 (Iandola et al., 2016)."""
    n = ImageNet("squeezenet", seed)

    def fire(x: str, squeezed: int) -> str:
        x = n.conv(x, squeezed, 1)
        return n.concat(n.conv(x, 4 * squeezed, 1), n.conv(x, 4 * squeezed, 3))

    x = n.pool(n.conv(n.input("image", [1, 3, size, size]), 4 * width, 3, stride=2), window=3, ceil_mode=1)
    for widths in ((1, 1), (2, 2), (3, 3, 4, 4)):
        for factor in widths:
            x = fire(x, factor * width)
        x = n.pool(x, window=3, ceil_mode=1) if len(widths) == 2 else x
    x = n.g.op("Flatten", n.g.op("GlobalAveragePool", n.conv(x, classes, 1)), axis=1)
    n.g.output(x, "logits", np.float32, [1, classes])
    return n.g.model()


def densenet(
    blocks: Sequence[int] = (6, 12, 24, 16), growth: int = 32, classes: int = 1000, size: int = 224, seed: int = 0
) -> onnx.ModelProto:
    """`image` -> `logits`: DenseNet-121 (Huang et al., 2017); a norm stands before each convolution."""
    n = ImageNet("densenet", seed)
    x = n.pool(n.conv(n.input("image", [1, 3, size, size]), 2 * growth, 7, stride=2), window=3, pad=1)

    def norm(x: str) -> str:
        g, w, width = n.g, n.w, n.channels[x]
        vectors = [w.near_one(width), w.normal(width, scale=0.1), w.normal(width, scale=0.1), w.positive(width)]
        y = g.op("BatchNormalization", x, *map(g.weight, vectors), epsilon=1e-5)
        return n.act(n.known(y, width), "Relu")

    for i, count in enumerate(blocks):
        for _ in range(count):
            x = n.concat(x, n.conv(n.conv(norm(x), 4 * growth, 1), growth, 3, None))
        if i + 1 < len(blocks):
            x = n.pool(n.conv(norm(x), n.channels[x] // 2, 1, None), "AveragePool")
    return n.classify(norm(x), classes)


def inception(
    repeats: int = 4, width: int = 768, classes: int = 1000, size: int = 17, seed: int = 0
) -> onnx.ModelProto:
    """`features` -> `logits`: the blocks C of Inception-v3 (Szegedy et al., 2016) with 1x7 and 7x1 windows."""
    n = ImageNet("inception", seed)
    x = n.input("features", [1, width, size, size])
    for _ in range(repeats):
        a = n.conv(x, width // 4, 1)
        b = n.conv(n.conv(n.conv(x, width // 6, 1), width // 6, (1, 7)), width // 4, (7, 1))
        c = n.conv(x, width // 6, 1)
        for window in ((7, 1), (1, 7), (7, 1)):
            c = n.conv(c, width // 6, window)
        c = n.conv(c, width // 4, (1, 7))
        d = n.conv(n.pool(x, "AveragePool", 3, 1, 1, count_include_pad=1), width // 4, 1)
        x = n.concat(a, b, c, d)
    return n.classify(x, classes)

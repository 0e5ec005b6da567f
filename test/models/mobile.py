# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Classifiers for phones and servers: EfficientNet, MobileNetV3, RegNetY, ResNeXt, ShuffleNetV2."""

from __future__ import annotations

from collections.abc import Sequence

import onnx

from ._image_net import ImageNet

B0 = (
    (1, 16, 1, 1, 3),
    (6, 24, 2, 2, 3),
    (6, 40, 2, 2, 5),
    (6, 80, 3, 2, 3),
    (6, 112, 3, 1, 5),
    (6, 192, 4, 2, 5),
    (6, 320, 1, 1, 3),
)
# window, wide, outputs, excited, activation, stride
V3 = (
    (3, 16, 16, False, "Relu", 1), (3, 64, 24, False, "Relu", 2), (3, 72, 24, False, "Relu", 1),
    (5, 72, 40, True, "Relu", 2), (5, 120, 40, True, "Relu", 1), (5, 120, 40, True, "Relu", 1),
    (3, 240, 80, False, "HardSwish", 2), (3, 200, 80, False, "HardSwish", 1), (3, 184, 80, False, "HardSwish", 1),
    (3, 184, 80, False, "HardSwish", 1), (3, 480, 112, True, "HardSwish", 1), (3, 672, 112, True, "HardSwish", 1),
    (5, 672, 160, True, "HardSwish", 2), (5, 960, 160, True, "HardSwish", 1), (5, 960, 160, True, "HardSwish", 1),
)  # fmt: skip


def efficientnet(
    stages: Sequence[tuple[int, int, int, int, int]] = B0,
    stem: int = 32,
    last: int = 1280,
    classes: int = 1000,
    size: int = 224,
    seed: int = 0,
) -> onnx.ModelProto:
    """`image` -> `logits`: EfficientNet-B0 (Tan and Le, 2019); a stage: (growth, outputs, repeats, stride, window)."""
    n = ImageNet("efficientnet", seed)
    x = n.conv(n.input("image", [1, 3, size, size]), stem, 3, "silu", stride=2)
    for growth, outputs, repeats, stride, window in stages:
        for repeat in range(repeats):
            inputs, step = n.channels[x], stride if repeat == 0 else 1
            y = n.conv(x, inputs * growth, 1, "silu") if growth > 1 else x
            y = n.conv(y, inputs * growth, window, "silu", step, groups=inputs * growth)
            y = n.conv(n.excite(y, max(inputs // 4, 1), act="silu"), outputs, 1, None, gain=0.7)
            x = n.add(y, x) if step == 1 and inputs == outputs else y
    return n.classify(n.conv(x, last, 1, "silu"), classes)


def mobilenet_v3(
    blocks: Sequence[tuple[int, int, int, bool, str, int]] = V3,
    last: int = 960,
    hidden: int = 1280,
    classes: int = 1000,
    size: int = 224,
    seed: int = 0,
) -> onnx.ModelProto:
    """`image` -> `logits`: MobileNetV3-Large (Howard et al., 2019) with hard sigmoids and hard swishes."""
    n = ImageNet("mobilenet_v3", seed)
    x = n.conv(n.input("image", [1, 3, size, size]), 16, 3, "HardSwish", stride=2)
    for window, wide, outputs, excited, act, stride in blocks:
        y = n.conv(x, wide, 1, act) if wide != n.channels[x] else x
        y = n.conv(y, wide, window, act, stride, groups=wide)
        y = n.excite(y, wide // 4, "HardSigmoid") if excited else y
        y = n.conv(y, outputs, 1, None, gain=0.7)
        x = n.add(x, y) if stride == 1 and n.channels[x] == outputs else y
    x = n.conv(x, last, 1, "HardSwish")
    flat = n.known(n.g.op("GlobalAveragePool", x), last)
    return n.classify(n.conv(flat, hidden, 1, "HardSwish"), classes)


def _residual(n: ImageNet, x: str, wide: int, outputs: int, stride: int, groups: int, excited: bool) -> str:
    inputs = n.channels[x]
    y = n.conv(n.conv(x, wide, 1), wide, 3, "Relu", stride, groups=groups)
    y = n.excite(y, inputs // 4) if excited else y
    y = n.conv(y, outputs, 1, None, gain=0.4)
    if stride != 1 or inputs != outputs:
        x = n.conv(x, outputs, 1, None, stride, gain=0.7)
    return n.act(n.add(y, x), "Relu")


def regnet(
    depths: Sequence[int] = (1, 3, 6, 2), widths: Sequence[int] = (48, 120, 336, 888), each: int = 24,
    classes: int = 1000, size: int = 224, seed: int = 0,
) -> onnx.ModelProto:  # fmt: skip
    """`image` -> `logits`: a RegNetY (Radosavovic et al., 2020): groups of `each` channels, squeeze and excitation."""
    n = ImageNet("regnet", seed)
    x = n.conv(n.input("image", [1, 3, size, size]), 32, 3, stride=2)
    for depth, width in zip(depths, widths, strict=True):
        for i in range(depth):
            x = _residual(n, x, width, width, 1 if i else 2, width // each, True)
    return n.classify(x, classes)


def resnext(
    depths: Sequence[int] = (3, 4, 6, 3), groups: int = 32, width: int = 128, classes: int = 1000, size: int = 224,
    seed: int = 0,
) -> onnx.ModelProto:  # fmt: skip
    """`image` -> `logits`: ResNeXt-50 32x4d (Xie et al., 2017)."""
    n = ImageNet("resnext", seed)
    x = n.pool(n.conv(n.input("image", [1, 3, size, size]), width // 2, 7, stride=2), window=3, pad=1)
    for stage, depth in enumerate(depths):
        for i in range(depth):
            stride = 2 if stage and not i else 1
            x = _residual(n, x, width << stage, 2 * width << stage, stride, groups, False)
    return n.classify(x, classes)


def shufflenet(
    stages: Sequence[tuple[int, int]] = ((4, 116), (8, 232), (4, 464)), last: int = 1024, classes: int = 1000,
    size: int = 224, seed: int = 0,
) -> onnx.ModelProto:  # fmt: skip
    """`image` -> `logits`: ShuffleNetV2 1x (Ma et al., 2018), whose halves swap channels after each block."""
    n = ImageNet("shufflenet", seed)
    x = n.pool(n.conv(n.input("image", [1, 3, size, size]), 24, 3, stride=2), window=3, pad=1)
    size //= 4

    def branch(x: str, outputs: int, stride: int) -> str:
        y = n.conv(x, outputs, 1)
        return n.conv(n.conv(y, outputs, 3, None, stride, groups=outputs), outputs, 1)

    def shuffle(x: str) -> str:
        g, width = n.g, n.channels[x]
        apart = g.op("Reshape", x, g.const([1, 2, width // 2, size, size]))
        mixed = g.op("Transpose", apart, perm=[0, 2, 1, 3, 4])
        return n.known(g.op("Reshape", mixed, g.const([1, width, size, size])), width)

    for repeats, outputs in stages:
        first = n.conv(x, n.channels[x], 3, None, 2, groups=n.channels[x])
        x, size = n.concat(n.conv(first, outputs // 2, 1), branch(x, outputs // 2, 2)), size // 2
        x = shuffle(x)
        for _ in range(repeats - 1):
            kept, changed = n.split(x)
            x = shuffle(n.concat(kept, branch(changed, outputs // 2, 1)))
    return n.classify(n.conv(x, last, 1), classes)

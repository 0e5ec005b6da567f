# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Further classifiers: ResNet-18, RepVGG, GhostNet, MobileViT, PoolFormer, 3D convolutions of videos, PointNet."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx

from ._image_net import ImageNet
from .transformers import Blocks


def basic_resnet(
    depths: Sequence[int] = (2, 2, 2, 2), width: int = 64, classes: int = 1000, batch: int = 1, size: int = 224,
    seed: int = 0,
) -> onnx.ModelProto:  # fmt: skip
    """`image` -> `logits`: ResNet-18 (He et al., 2016), norms folded into the convolutions."""
    n = ImageNet("basic_resnet", seed)
    x = n.pool(n.conv(n.input("image", [batch, 3, size, size]), width, 7, stride=2), window=3, pad=1)
    for stage, depth in enumerate(depths):
        for i in range(depth):
            wide, stride = width << stage, 2 if stage and not i else 1
            y = n.conv(n.conv(x, wide, stride=stride), wide, act=None, gain=0.5)
            x = x if stride == 1 else n.conv(x, wide, 1, None, stride, gain=0.7)
            x = n.act(n.add(y, x), "Relu")
    return n.classify(x, classes, batch)


def repvgg(
    depths: Sequence[int] = (2, 4, 6, 1), widths: Sequence[int] = (48, 96, 192, 1280), classes: int = 1000,
    size: int = 224, seed: int = 0,
) -> onnx.ModelProto:  # fmt: skip
    """`image` -> `logits`: RepVGG-A0 with its branches merged (Ding et al., 2021): 3x3 windows and nothing else."""
    n = ImageNet("repvgg", seed)
    x = n.conv(n.input("image", [1, 3, size, size]), widths[0], stride=2)
    for depth, width in zip(depths, widths, strict=True):
        for i in range(depth):
            x = n.conv(x, width, stride=1 if i else 2)
    return n.classify(x, classes)


def ghostnet(
    stages: Sequence[tuple[int, int, int, int]] = (
        (16, 16, 3, 1), (48, 24, 3, 2), (72, 24, 3, 1), (72, 40, 5, 2), (120, 40, 5, 1), (240, 80, 3, 2),
        (200, 80, 3, 1), (184, 80, 3, 1), (480, 112, 3, 1), (672, 160, 5, 2), (960, 160, 5, 1),
    ),
    classes: int = 1000,
    size: int = 224,
    seed: int = 0,
) -> onnx.ModelProto:  # fmt: skip
    """`image` -> `logits`: GhostNet (Han et al., 2020): half of the channels by a cheap depthwise window; a stage:
    (wide, outputs, window, stride)."""
    n = ImageNet("ghostnet", seed)

    def ghost(x: str, outputs: int, act: str | None) -> str:
        own = n.conv(x, outputs // 2, 1, act)
        return n.concat(own, n.conv(own, outputs // 2, 3, act, groups=outputs // 2))

    x = n.conv(n.input("image", [1, 3, size, size]), 16, stride=2)
    for wide, outputs, window, stride in stages:
        y = ghost(x, wide, "Relu")
        if stride == 2:
            y = n.conv(y, wide, window, None, 2, groups=wide)
        if window == 5:
            y = n.excite(y, wide // 4, "HardSigmoid")
        y = ghost(y, outputs, None)
        if stride == 2 or n.channels[x] != outputs:
            x = n.conv(n.conv(x, n.channels[x], window, None, stride, groups=n.channels[x]), outputs, 1, None)
        x = n.add(x, y)
    return n.classify(n.conv(x, 960, 1), classes)


def mobile_vit(
    widths: Sequence[int] = (16, 32, 48, 64, 80), hidden: Sequence[int] = (96, 120), layers: int = 2, heads: int = 4,
    classes: int = 1000, size: int = 256, seed: int = 0,
) -> onnx.ModelProto:  # fmt: skip
    """`image` -> `logits`: MobileViT-XS (Mehta and Rastegari, 2022), two of its stages, patches by transposes."""
    n = ImageNet("mobile_vit", seed)
    b = Blocks("mobile_vit", seed + 1)
    b.g, g = n.g, n.g

    def inverted(x: str, outputs: int, stride: int) -> str:
        wide = 4 * n.channels[x]
        y = n.conv(n.conv(x, wide, 1, "silu"), wide, 3, "silu", stride, groups=wide)
        y = n.conv(y, outputs, 1, None, gain=0.7)
        return n.add(x, y) if stride == 1 and n.channels[x] == outputs else y

    def attend(x: str, inner: int, cells: int) -> str:
        width = n.channels[x]
        y = n.conv(n.conv(x, width, 3, "silu"), inner, 1, None)
        half = cells // 2
        y = g.op("Transpose", g.op("Reshape", y, g.const([inner * half, 2, half, 2])), perm=[0, 2, 1, 3])
        y = g.op("Transpose", g.op("Reshape", y, g.const([1, inner, half * half, 4])), perm=[0, 3, 2, 1])
        y = g.op("Reshape", y, g.const([4, half * half, inner]))
        for _ in range(layers):
            normal = b.norm(y, inner)
            q, k, v = (b.heads(b.linear(normal, inner, inner), [4, -1, heads, inner // heads]) for _ in range(3))
            z = g.op("Reshape", b.attend(q, k, v, (inner // heads) ** -0.5), g.const([4, -1, inner]))
            y = g.op("Add", y, b.linear(z, inner, inner))
            wide = b.linear(b.norm(y, inner), inner, 2 * inner)
            y = g.op("Add", y, b.linear(g.op("Mul", wide, g.op("Sigmoid", wide)), 2 * inner, inner))
        y = g.op("Reshape", b.norm(y, inner), g.const([1, 4, half * half, inner]))
        y = g.op("Reshape", g.op("Transpose", y, perm=[0, 3, 2, 1]), g.const([inner * half, half, 2, 2]))
        y = g.op("Reshape", g.op("Transpose", y, perm=[0, 2, 1, 3]), g.const([1, inner, cells, cells]))
        y = n.conv(n.known(y, inner), width, 1, "silu")
        return n.conv(n.concat(x, y), width, 3, "silu")

    x = n.conv(n.input("image", [1, 3, size, size]), widths[0], 3, "silu", stride=2)
    x = inverted(x, widths[1], 1)
    x = inverted(inverted(x, widths[2], 2), widths[2], 1)
    cells = size // 4
    for width, inner in zip(widths[3:], hidden, strict=True):
        x, cells = inverted(x, width, 2), cells // 2
        x = attend(x, inner, cells)
    return n.classify(n.conv(x, 4 * widths[-1], 1, "silu"), classes)


def poolformer(
    depths: Sequence[int] = (2, 2, 4, 2), widths: Sequence[int] = (64, 128, 320, 512), classes: int = 1000,
    size: int = 224, seed: int = 0,
) -> onnx.ModelProto:  # fmt: skip
    """`image` -> `logits`: PoolFormer (Yu et al., 2022): averages in the place of attention."""
    n = ImageNet("poolformer", seed)
    g, w = n.g, n.w

    def norm(x: str) -> str:
        width = n.channels[x]
        flat = g.op("Reshape", x, g.const([0, 1, -1]))
        one, zero = g.weight(np.ones(1, np.float32)), g.weight(np.zeros(1, np.float32))
        y = g.op("Reshape", g.op("InstanceNormalization", flat, one, zero), g.op("Shape", x))
        scale, shift = (g.weight(a.reshape(width, 1, 1)) for a in (w.near_one(width), w.normal(width, scale=0.1)))
        return n.known(g.op("Add", g.op("Mul", y, scale), shift), width)

    def scaled(x: str, y: str) -> str:
        width = n.channels[x]
        return n.add(x, g.op("Mul", y, g.weight(w.normal(width, 1, 1, scale=0.3))))

    def gelu(x: str) -> str:
        bent = g.op("Add", g.op("Erf", g.op("Div", x, g.f32(2.0**0.5))), g.f32(1.0))
        return n.known(g.op("Mul", g.op("Mul", x, bent), g.f32(0.5)), n.channels[x])

    x = n.input("image", [1, 3, size, size])
    for stage, (depth, width) in enumerate(zip(depths, widths, strict=True)):
        window, stride = (3, 2) if stage else (7, 4)
        kernel = g.weight(w.conv(width, n.channels[x], window, window, gain=1.0))
        pads = [window // 2 if stage else 2] * 4
        x = n.known(g.op("Conv", x, kernel, g.weight(w.normal(width)), strides=[stride] * 2, pads=pads), width)
        for _ in range(depth):
            y = norm(x)
            x = scaled(x, g.op("Sub", n.pool(y, "AveragePool", 3, 1, 1), y))
            x = scaled(x, n.conv(gelu(n.conv(norm(x), 4 * width, 1, None)), width, 1, None))
    return n.classify(norm(x), classes)


def video(
    widths: Sequence[int] = (32, 64, 128), frames: int = 8, classes: int = 101, size: int = 112, seed: int = 0
) -> onnx.ModelProto:
    """`clip` [1, 3, frames, size, size] -> `logits`: a 3D ResNet (Tran et al., 2018), one block per stage."""
    n = ImageNet("video", seed)
    g, w = n.g, n.w

    def conv(x: str, outputs: int, window: Sequence[int], stride: Sequence[int], act: bool = True) -> str:
        kernel = g.weight(w.conv(outputs, n.channels[x], *window))
        pads = [k // 2 for k in window] * 2
        y = g.op("Conv", x, kernel, g.weight(w.normal(outputs, scale=0.1)), strides=list(stride), pads=pads)
        return n.known(g.op("Relu", y) if act else y, outputs)

    x = conv(n.input("clip", [1, 3, frames, size, size]), widths[0], (3, 7, 7), (1, 2, 2))
    for i, width in enumerate(widths):
        stride = (2, 2, 2) if i else (1, 1, 1)
        y = conv(conv(x, width, (3, 3, 3), stride), width, (3, 3, 3), (1, 1, 1), False)
        x = conv(x, width, (1, 1, 1), stride, False) if i else x
        x = n.act(n.add(y, x), "Relu")
    return n.classify(x, classes)


def pointnet(points: int = 1024, classes: int = 40, batch: int = 1, seed: int = 0) -> onnx.ModelProto:
    """`points` [batch, 3, points] -> `logits`: PointNet (Qi et al., 2017) with its first transform net."""
    n = ImageNet("pointnet", seed)
    g, w = n.g, n.w

    def shared(x: str, outputs: int, act: str | None = "Relu") -> str:
        kernel = g.weight(w.conv(outputs, n.channels[x], 1))
        return n.act(n.known(g.op("Conv", x, kernel, g.weight(w.normal(outputs, scale=0.1))), outputs), act)

    def largest(x: str) -> str:
        return n.known(g.op("ReduceMax", x, axes=[2], keepdims=0), n.channels[x])

    x = n.input("points", [batch, 3, points])
    y = largest(shared(shared(shared(x, 64), 128), 1024))
    turn = n.linear(n.linear(n.linear(y, 512, "Relu"), 256, "Relu"), 9)
    turn = g.op("Add", g.op("Mul", turn, g.f32(0.1)), g.weight(np.eye(3, dtype=np.float32).reshape(1, 9)))
    turned = g.op("MatMul", g.op("Transpose", x, perm=[0, 2, 1]), g.op("Reshape", turn, g.const([-1, 3, 3])))
    x = n.known(g.op("Transpose", turned, perm=[0, 2, 1]), 3)
    x = largest(shared(shared(shared(x, 64), 128), 1024, None))
    logits = n.linear(n.linear(n.linear(x, 512, "Relu"), 256, "Relu"), classes)
    g.output(g.op("LogSoftmax", logits, axis=1), "logits", np.float32, [batch, classes])
    return g.model()

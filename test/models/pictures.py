# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Nets whose result is an image or boxes: U-Net, YOLO, segmentation, super-resolution, a style-based generator."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx

from ._image_net import ImageNet


def unet(
    widths: Sequence[int] = (32, 64, 128, 256), size: int = 256, up: str = "transposed", classes: int = 2, seed: int = 0
) -> onnx.ModelProto:
    """`image` -> `masks`: U-Net (Ronneberger et al., 2015); the way up by `transposed` convolutions or by `linear`."""
    n = ImageNet("unet", seed)
    x, kept = n.input("image", [1, 3, size, size]), list[str]()
    for i, width in enumerate(widths):
        x = n.conv(n.conv(n.pool(x) if i else x, width), width)
        kept.append(x)
    for width, beside in zip(widths[-2::-1], kept[-2::-1], strict=True):
        if up == "transposed":
            kernel = n.g.weight(n.w.normal(n.channels[x], width, 2, 2, scale=n.channels[x] ** -0.5))
            bias = n.g.weight(n.w.normal(width, scale=0.1))
            x = n.known(n.g.op("ConvTranspose", x, kernel, bias, kernel_shape=[2, 2], strides=[2, 2]), width)
        else:
            x = n.conv(n.resize(x, 2, "linear"), width, 1)
        x = n.conv(n.conv(n.concat(beside, x), width), width)
    n.g.output(n.conv(x, classes, 1, "Sigmoid"), "masks", np.float32, [1, classes, size, size])
    return n.g.model()


def yolo(
    widths: Sequence[int] = (16, 32, 64, 128, 256), classes: int = 80, size: int = 320, seed: int = 0
) -> onnx.ModelProto:
    """`image` -> `boxes` [1, 4 + classes, cells]: YOLOv8n: split and concat blocks, pyramids up and down, heads."""
    n = ImageNet("yolo", seed)

    def c2f(x: str, outputs: int, repeats: int, residual: bool = True) -> str:
        parts = n.split(n.conv(x, outputs, 1, "silu"))
        for _ in range(repeats):
            y = n.conv(n.conv(parts[-1], outputs // 2, 3, "silu"), outputs // 2, 3, "silu")
            parts.append(n.add(parts[-1], y) if residual else y)
        return n.conv(n.concat(*parts), outputs, 1, "silu")

    x, levels = n.conv(n.input("image", [1, 3, size, size]), widths[0], 3, "silu", 2), list[str]()
    for i, width in enumerate(widths[1:]):
        x = c2f(n.conv(x, width, 3, "silu", 2), width, 2 if i in (1, 2) else 1)
        levels.append(x)
    pools = [n.conv(x, widths[-1] // 2, 1, "silu")]
    for _ in range(3):
        pools.append(n.pool(pools[-1], window=5, stride=1, pad=2))
    deep = n.conv(n.concat(*pools), widths[-1], 1, "silu")
    middle = c2f(n.concat(n.resize(deep), levels[-2]), widths[-2], 1, False)
    fine = c2f(n.concat(n.resize(middle), levels[-3]), widths[-3], 1, False)
    middle = c2f(n.concat(n.conv(fine, widths[-3], 3, "silu", 2), middle), widths[-2], 1, False)
    deep = c2f(n.concat(n.conv(middle, widths[-2], 3, "silu", 2), deep), widths[-1], 1, False)
    flat, cells = list[str](), 0
    for x, stride in ((fine, 8), (middle, 16), (deep, 32)):
        place = n.conv(n.conv(n.conv(x, 64, 3, "silu"), 64, 3, "silu"), 64, 1, None)
        kind = n.conv(n.conv(n.conv(x, 80, 3, "silu"), 80, 3, "silu"), classes, 1, None)
        flat.append(n.g.op("Reshape", n.concat(place, kind), n.g.const([1, 64 + classes, -1])))
        cells += (size // stride) ** 2
    g = n.g
    place, kind = g.ops("Split", g.op("Concat", *flat, axis=2), g.const([64, classes]), outputs=2, axis=1)
    bins = g.op("Transpose", g.op("Reshape", place, g.const([1, 4, 16, cells])), perm=[0, 2, 1, 3])
    steps = g.weight(np.arange(16, dtype=np.float32).reshape(1, 16, 1, 1))
    sides = g.op("Reshape", g.op("Conv", g.op("Softmax", bins, axis=1), steps), g.const([1, 4, cells]))
    low, high = g.ops("Split", sides, g.const([2, 2]), outputs=2, axis=1)
    centres = g.weight(n.w.normal(1, 2, cells, scale=10.0))
    near, far = g.op("Sub", centres, low), g.op("Add", centres, high)
    boxes = g.op("Concat", g.op("Mul", g.op("Add", near, far), g.f32(0.5)), g.op("Sub", far, near), axis=1)
    g.output(g.op("Concat", boxes, g.op("Sigmoid", kind), axis=1), "boxes", np.float32, [1, 4 + classes, cells])
    return g.model()


def segmenter(
    channels: int = 256, classes: int = 21, cells: int = 33, factor: int = 8, seed: int = 0
) -> onnx.ModelProto:
    """`features` -> `labels`: DeepLab's dilated pyramid (Chen et al., 2017), resized, the best class of each pixel."""
    n = ImageNet("segmenter", seed)
    x = n.input("features", [1, channels, cells, cells])
    parts = [n.conv(x, channels, 1), *(n.conv(x, channels, 3, dilation=d) for d in (6, 12, 18))]
    mean = n.conv(n.known(n.g.op("GlobalAveragePool", x), channels), channels, 1)
    wide = n.g.op("Expand", mean, n.g.const([1, channels, cells, cells]))
    x = n.conv(n.conv(n.concat(*parts, n.known(wide, channels)), channels, 1), classes, 1, None)
    x = n.resize(x, factor, "linear")
    labels = n.g.op("ArgMax", x, axis=1, keepdims=0)
    n.g.output(labels, "labels", np.int64, [1, cells * factor, cells * factor])
    return n.g.model()


def super_resolution(
    width: int = 64, blocks: int = 4, size: int = 96, factor: int = 2, seed: int = 0
) -> onnx.ModelProto:
    """`image` -> `larger`: residual blocks and a sub-pixel convolution (EDSR, Lim et al., 2017)."""
    n = ImageNet("super_resolution", seed)
    first = x = n.conv(n.input("image", [1, 3, size, size]), width, 3, None)
    for _ in range(blocks):
        x = n.add(x, n.conv(n.conv(x, width), width, 3, None, gain=0.3))
    x = n.conv(n.add(first, n.conv(x, width, 3, None)), width * factor**2, 3, None)
    x = n.known(n.g.op("DepthToSpace", x, blocksize=factor, mode="CRD"), width)
    n.g.output(n.conv(x, 3, 3, None), "larger", np.float32, [1, 3, size * factor, size * factor])
    return n.g.model()


def generator(
    widths: Sequence[int] = (256, 256, 128, 64), latent: int = 256, size: int = 8, seed: int = 0
) -> onnx.ModelProto:
    """`z` -> `image`: a style-based generator (StyleGAN2, Karras et al., 2020), modulated convolutions."""
    n = ImageNet("generator", seed)
    g, w = n.g, n.w
    style = n.input("z", [1, latent])
    for _ in range(4):
        style = n.linear(style, latent, "LeakyRelu")
    x = n.known(g.weight(w.normal(1, widths[0], size, size)), widths[0])
    image = None
    for i, width in enumerate(widths):
        inputs = n.channels[x]
        x, size = (n.resize(x, 2, "linear"), size * 2) if i else (x, size)
        scale = g.op("Reshape", n.linear(style, inputs), g.const([1, inputs, 1, 1]))
        kernel = g.op("Mul", g.weight(w.conv(width, inputs, 3, 3)), scale)  # weights differ from run to run
        norm = g.op("ReduceSum", g.op("Mul", kernel, kernel), g.const([1, 2, 3]), keepdims=1)
        kernel = g.op("Div", kernel, g.op("Sqrt", g.op("Add", norm, g.f32(1e-8))))
        x = g.op("Conv", x, kernel, kernel_shape=[3, 3], pads=[1] * 4)
        x = g.op("Add", x, g.weight(w.normal(1, 1, size, size, scale=0.1)))
        x = n.known(g.op("LeakyRelu", x, alpha=0.2), width)
        colours = n.conv(x, 3, 1, None)
        image = n.add(n.resize(image, 2, "linear"), colours) if image else colours
    g.output(n.act(image, "Tanh"), "image", np.float32, [1, 3, size, size])
    return g.model()

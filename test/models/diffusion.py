# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Generators of images and readers of films: a diffusion model's U-Net, convolutions over time and space."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx

from ._image_net import ImageNet
from .transformers import Blocks


class _Denoiser(ImageNet):
    """Blocks of Stable Diffusion's U-Net (Rombach et al., 2022)."""

    def group_norm(self, x: str, groups: int = 4, act: str | None = "silu") -> str:
        """GroupNormalization of opset 21: a scale for each channel."""
        width = self.channels[x]
        scale, shift = self.g.weight(self.w.near_one(width)), self.g.weight(self.w.normal(width, scale=0.1))
        y = self.g.op("GroupNormalization", x, scale, shift, num_groups=groups, epsilon=1e-5)
        return self.act(self.known(y, width), act)

    def residual(self, x: str, outputs: int, time: str) -> str:
        """Two convolutions, the time's embedding between them."""
        y = self.conv(self.group_norm(x), outputs, 3, None)
        added = self.linear(self.act(time, "silu"), outputs)
        y = self.known(self.g.op("Add", y, self.g.op("Unsqueeze", added, self.g.const([2, 3]))), outputs)
        y = self.conv(self.group_norm(y), outputs, 3, None, gain=0.5)
        return self.add(y, x if self.channels[x] == outputs else self.conv(x, outputs, 1, None))

    def attention(self, x: str, text: str, size: int, heads: int, words: int, context: int) -> str:
        """Attention of the pixels to themselves, then to the words of a text."""
        g, width = self.g, self.channels[x]
        b = Blocks("inner", 1)
        b.g, b.w = g, self.w
        flat = g.op("Reshape", self.group_norm(x, act=None), g.const([1, width, size * size]))
        y = g.op("Transpose", flat, perm=[0, 2, 1])
        for keys, inputs, count in ((None, width, size * size), (text, context, words)):
            normal = b.norm(y, width)
            source = normal if keys is None else keys
            q = b.heads(b.linear(normal, width, width, False), [1, size * size, heads, width // heads])
            k, v = (
                b.heads(b.linear(source, inputs, width, False), [1, count, heads, width // heads]) for _ in range(2)
            )
            seen = g.op("Reshape", b.attend(q, k, v, (width // heads) ** -0.5), g.const([1, size * size, width]))
            y = g.op("Add", y, b.linear(seen, width, width))
        y = g.op("Add", y, b.linear(b.gelu(b.linear(b.norm(y, width), width, 2 * width)), 2 * width, width))
        image = g.op("Reshape", g.op("Transpose", y, perm=[0, 2, 1]), g.const([1, width, size, size]))
        return self.add(self.known(image, width), x)


def diffusion(
    widths: Sequence[int] = (32, 64), size: int = 32, words: int = 16, context: int = 48, heads: int = 4, seed: int = 0
) -> onnx.ModelProto:
    """`latent` [1, 4, size, size], `time`, `text` [1, words, context] -> `noise`: a small latent-diffusion U-Net."""
    n = _Denoiser("diffusion", seed, 21)
    g, first = n.g, widths[0]
    x = n.conv(n.input("latent", [1, 4, size, size]), first, 3, None)
    rates = g.weight(np.exp(-np.log(10000.0) * np.arange(first // 2) / (first // 2)).astype(np.float32)[None])
    angles = g.op("Mul", g.op("Unsqueeze", g.input("time", np.float32, [1]), g.const([1])), rates)
    time = n.known(g.op("Concat", g.op("Cos", angles), g.op("Sin", angles), axis=1), first)
    time = n.linear(n.act(n.linear(time, 4 * first), "silu"), 4 * first)
    text, kept = g.input("text", np.float32, [1, words, context]), [x]
    for i, width in enumerate(widths):
        x = n.residual(x, width, time)
        x = n.attention(x, text, size, heads, words, context) if i else x
        kept.append(x)
        if i + 1 < len(widths):
            x, size = n.conv(x, width, 3, None, 2), size // 2
    x = n.residual(n.attention(n.residual(x, widths[-1], time), text, size, heads, words, context), widths[-1], time)
    for i, width in enumerate(reversed(widths)):
        x = n.residual(n.concat(x, kept.pop()), width, time)
        if i + 1 < len(widths):
            x, size = n.conv(n.resize(x), width, 3, None), size * 2
    g.output(n.conv(n.group_norm(x), 4, 3, None), "noise", np.float32, [1, 4, size, size])
    return g.model()


def film(
    widths: Sequence[int] = (16, 32), frames: int = 8, size: int = 32, classes: int = 11, seed: int = 0
) -> onnx.ModelProto:
    """`film` [1, 3, frames, size, size] -> `logits`: convolutions over time and space (C3D, Tran et al., 2015)."""
    n = ImageNet("film", seed)
    g, w, inputs = n.g, n.w, 3
    x = g.input("film", np.float32, [1, 3, frames, size, size])
    for i, width in enumerate(widths):
        kernel, bias = g.weight(w.conv(width, inputs, 3, 3, 3)), g.weight(w.normal(width, scale=0.1))
        x = g.op("Relu", g.op("Conv", x, kernel, bias, pads=[1] * 6, kernel_shape=[3, 3, 3]))
        depth = 2 if i else 1
        x = g.op("MaxPool", x, kernel_shape=[depth, 2, 2], strides=[depth, 2, 2])
        inputs = width
    scale, shift, mean = w.near_one(inputs), w.normal(inputs, scale=0.1), w.normal(inputs, scale=0.1)
    x = g.op("BatchNormalization", x, *map(g.weight, (scale, shift, mean, w.positive(inputs))))
    up = g.op("ConvTranspose", x, g.weight(w.conv(inputs, inputs, 2, 2, 2)), strides=[2, 2, 2], kernel_shape=[2, 2, 2])
    x = n.known(g.op("Flatten", g.op("GlobalAveragePool", up), axis=1), inputs)
    g.output(n.linear(x, classes), "logits", np.float32, [1, classes])
    return g.model()

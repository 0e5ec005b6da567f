# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Images to images and boxes: a diffusion U-Net, style transfer, dense residual super-resolution, SSD, HRNet."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx

from ._image_net import ImageNet


class _Diffusion(ImageNet):
    """Blocks of a latent diffusion model (Rombach et al., 2022), group norms as exporters write them."""

    def group_norm(self, x: str, groups: int = 32, act: bool = True) -> str:
        g, w, width = self.g, self.w, self.channels[x]
        flat = g.op("Reshape", x, g.const([0, groups, -1]))
        ones, zeros = g.weight(np.ones(groups, np.float32)), g.weight(np.zeros(groups, np.float32))
        flat = g.op("InstanceNormalization", flat, ones, zeros, epsilon=1e-5)
        y = g.op("Reshape", flat, g.op("Shape", x))
        scale, shift = (g.weight(a.reshape(width, 1, 1)) for a in (w.near_one(width), w.normal(width, scale=0.1)))
        y = self.known(g.op("Add", g.op("Mul", y, scale), shift), width)
        return self.act(y, "silu") if act else y

    def residual(self, x: str, time: str, outputs: int) -> str:
        g = self.g
        y = self.conv(self.group_norm(x), outputs, act=None)
        shift = self.linear(self.act(time, "silu"), outputs)
        shift = g.op("Unsqueeze", g.op("Unsqueeze", shift, g.const([2])), g.const([3]))
        y = self.known(g.op("Add", y, shift), outputs)
        y = self.conv(self.group_norm(y), outputs, act=None, gain=0.5)
        return self.add(y, x if self.channels[x] == outputs else self.conv(x, outputs, 1, None))

    def norm(self, x: str, width: int) -> str:
        scale, shift = self.g.weight(self.w.near_one(width)), self.g.weight(self.w.normal(width, scale=0.1))
        return self.g.op("LayerNormalization", x, scale, shift, axis=-1)

    def product(self, x: str, inputs: int, outputs: int, bias: bool = True) -> str:
        y = self.g.op("MatMul", x, self.g.weight(self.w.linear(outputs, inputs).T))
        return self.g.op("Add", y, self.g.weight(self.w.normal(outputs, scale=0.1))) if bias else y

    def attend(self, x: str, seen: str, width: int, inputs: int, heads: int) -> str:
        g, split = self.g, self.g.const([0, 0, heads, width // heads])
        q, k, v = (
            g.op("Transpose", g.op("Reshape", self.product(s, n, width, False), split), perm=[0, 2, *perm])
            for s, n, perm in ((x, width, (1, 3)), (seen, inputs, (3, 1)), (seen, inputs, (1, 3)))
        )
        scores = g.op("Mul", g.op("MatMul", q, k), g.f32((width // heads) ** -0.5))
        y = g.op("Transpose", g.op("MatMul", g.op("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
        return g.op("Add", x, self.product(g.op("Reshape", y, g.const([0, 0, width])), width, width))

    def transformer(self, x: str, text: str, inputs: int, size: int, heads: int = 8) -> str:
        g, width = self.g, self.channels[x]
        y = self.conv(self.group_norm(x, act=False), width, 1, None)
        y = g.op("Transpose", g.op("Reshape", y, g.const([0, width, -1])), perm=[0, 2, 1])
        normal = self.norm(y, width)
        y = self.attend(y, normal, width, width, heads)
        y = self.attend(y, text, width, inputs, heads)
        wide, gate = g.ops(
            "Split", self.product(self.norm(y, width), width, 8 * width), g.const([4 * width] * 2), outputs=2, axis=-1
        )
        bent = g.op("Add", g.op("Erf", g.op("Div", gate, g.f32(2.0**0.5))), g.f32(1.0))
        wide = g.op("Mul", wide, g.op("Mul", g.op("Mul", gate, bent), g.f32(0.5)))
        y = g.op("Add", y, self.product(wide, 4 * width, width))
        y = g.op("Reshape", g.op("Transpose", y, perm=[0, 2, 1]), g.const([0, width, size, size]))
        return self.add(x, self.conv(self.known(y, width), width, 1, None, gain=0.5))


def latent_diffusion(
    widths: Sequence[int] = (128, 256), size: int = 32, tokens: int = 77, text: int = 512, seed: int = 0
) -> onnx.ModelProto:
    """`latent`, `time` [1], `text` [1, tokens, text] -> `noise`: two levels of Stable Diffusion's U-Net, narrowed."""
    n = _Diffusion("latent_diffusion", seed)
    g, deep = n.g, 4 * widths[0]
    x, seen = n.input("latent", [1, 4, size, size]), g.input("text", np.float32, [1, tokens, text])
    speeds = np.exp(np.arange(widths[0] // 2) * -(np.log(1e4) / (widths[0] // 2))).astype(np.float32)
    angle = g.op("Mul", g.op("Unsqueeze", g.input("time", np.float32, [1]), g.const([1])), g.weight(speeds[None]))
    time = n.known(g.op("Concat", g.op("Cos", angle), g.op("Sin", angle), axis=1), widths[0])
    time = n.linear(n.act(n.linear(time, deep), "silu"), deep)
    x = n.conv(x, widths[0], act=None)
    kept = [x]
    for i, width in enumerate(widths):
        x = n.transformer(n.residual(x, time, width), seen, text, size)
        kept.append(x)
        if i + 1 < len(widths):
            x, size = n.conv(x, width, act=None, stride=2), size // 2
            kept.append(x)
    x = n.residual(n.transformer(n.residual(x, time, widths[-1]), seen, text, size), time, widths[-1])
    for i, width in reversed(list(enumerate(widths))):
        for _ in range(2):
            x = n.transformer(n.residual(n.concat(x, kept.pop()), time, width), seen, text, size)
        if i:
            x, size = n.conv(n.resize(x), width, act=None), 2 * size
    g.output(n.conv(n.group_norm(x), 4, act=None), "noise", np.float32, [1, 4, size, size])
    return g.model()


def style_transfer(width: int = 32, blocks: int = 5, size: int = 224, seed: int = 0) -> onnx.ModelProto:
    """`image` -> `styled`: Johnson et al., 2016: reflected borders, instance norms, residuals, resizes."""
    n = ImageNet("style_transfer", seed)
    g, w = n.g, n.w

    def conv(x: str, outputs: int, window: int, stride: int = 1, act: str | None = "Relu", norm: bool = True) -> str:
        pad = window // 2
        y = g.op("Pad", x, g.const([0, 0, pad, pad] * 2), mode="reflect")
        kernel = g.weight(w.conv(outputs, n.channels[x], window, window))
        y = g.op("Conv", y, kernel, g.weight(w.normal(outputs, scale=0.1)), strides=[stride] * 2)
        if norm:
            scale, shift = g.weight(w.near_one(outputs)), g.weight(w.normal(outputs, scale=0.1))
            y = g.op("InstanceNormalization", y, scale, shift)
        return n.act(n.known(y, outputs), act)

    x = conv(n.input("image", [1, 3, size, size]), width, 9)
    x = conv(conv(x, 2 * width, 3, 2), 4 * width, 3, 2)
    for _ in range(blocks):
        x = n.add(x, conv(conv(x, 4 * width, 3), 4 * width, 3, act=None))
    x = conv(n.resize(conv(n.resize(x), 2 * width, 3)), width, 3)
    g.output(conv(x, 3, 9, act=None, norm=False), "styled", np.float32, [1, 3, size, size])
    return g.model()


def dense_residual(
    width: int = 64, growth: int = 32, blocks: int = 2, size: int = 64, seed: int = 0
) -> onnx.ModelProto:
    """`image` -> `larger`, four times: ESRGAN (Wang et al., 2018), dense blocks of five convolutions."""
    n = ImageNet("dense_residual", seed)

    def dense(x: str) -> str:
        parts = [x]
        for _ in range(4):
            seen = n.concat(*parts) if len(parts) > 1 else x
            parts.append(n.conv(seen, growth, act="LeakyRelu"))
        y = n.conv(n.concat(*parts), width, act=None, gain=0.5)
        return n.add(x, n.known(n.g.op("Mul", y, n.g.f32(0.2)), width))

    first = x = n.conv(n.input("image", [1, 3, size, size]), width, act=None)
    for _ in range(blocks):
        y = dense(dense(dense(x)))
        x = n.add(x, n.known(n.g.op("Mul", y, n.g.f32(0.2)), width))
    x = n.add(first, n.conv(x, width, act=None))
    for _ in range(2):
        x = n.conv(n.resize(x), width, act="LeakyRelu")
    x = n.conv(n.conv(x, width, act="LeakyRelu"), 3, act=None)
    n.g.output(x, "larger", np.float32, [1, 3, 4 * size, 4 * size])
    return n.g.model()


def single_shot(
    widths: Sequence[int] = (32, 64, 128, 256, 512), anchors: int = 6, classes: int = 21, size: int = 304, seed: int = 0
) -> onnx.ModelProto:
    """`image` -> `scores`, `boxes`: SSD (Liu et al., 2016) on depthwise-separable layers; softmax over classes."""
    n = ImageNet("single_shot", seed)
    g = n.g
    x = n.conv(n.input("image", [1, 3, size, size]), widths[0], stride=2)
    found: list[tuple[str, str]] = []
    cells = 0
    size = (size + 1) // 2
    for level, width in enumerate(widths):
        for i in range(2):
            x = n.conv(x, n.channels[x], 3, "Relu", 1 if i or not level else 2, groups=n.channels[x])
            x = n.conv(x, width, 1)
        size = (size + 1) // 2 if level else size
        if level < 2:
            continue
        pair = []
        for each in (classes, 4):
            y = n.conv(n.conv(x, n.channels[x], 3, groups=n.channels[x]), anchors * each, 1, None)
            pair.append(g.op("Reshape", g.op("Transpose", y, perm=[0, 2, 3, 1]), g.const([1, -1, each])))
        found.append((pair[0], pair[1]))
        cells += anchors * size * size
    scores = g.op("Softmax", g.op("Concat", *[a for a, _ in found], axis=1), axis=-1)
    g.output(scores, "scores", np.float32, [1, cells, classes])
    near = g.op("Concat", *[b for _, b in found], axis=1)
    prior = np.abs(n.w.normal(1, cells, 4, scale=0.3)) + np.float32(0.1)
    place, wide = g.ops("Split", near, g.const([2, 2]), outputs=2, axis=-1)
    centre = g.op("Add", g.op("Mul", place, g.weight(prior[..., 2:] * np.float32(0.1))), g.weight(prior[..., :2]))
    half = g.op("Mul", g.op("Exp", g.op("Mul", wide, g.f32(0.2))), g.weight(prior[..., 2:] * np.float32(0.5)))
    corners = g.op("Concat", g.op("Sub", centre, half), g.op("Add", centre, half), axis=-1)
    g.output(corners, "boxes", np.float32, [1, cells, 4])
    return g.model()


def exchange(
    widths: Sequence[int] = (18, 36, 72), repeats: int = 2, joints: int = 17, size: int = 192, seed: int = 0
) -> onnx.ModelProto:
    """`image` -> `heat` maps: HRNet (Sun et al., 2019): branches of three resolutions that add each other's results."""
    n = ImageNet("exchange", seed)
    x = n.conv(n.conv(n.input("image", [1, 3, size, size]), 64, stride=2), widths[0], stride=2)
    branches = [x]
    for width in widths[1:]:
        branches.append(n.conv(branches[-1], width, stride=2))

    def to(x: str, i: int, j: int) -> str:
        if i > j:
            return n.resize(n.conv(x, widths[j], 1, None, gain=0.5), 2 ** (i - j))
        for step in range(i, j):
            x = n.conv(x, widths[j] if step + 1 == j else widths[i], 3, None if step + 1 == j else "Relu", 2, gain=0.5)
        return x

    for _ in range(repeats):
        for i, x in enumerate(branches):
            for _ in range(2):
                x = n.act(n.add(x, n.conv(n.conv(x, widths[i]), widths[i], act=None, gain=0.5)), "Relu")
            branches[i] = x
        mixed = []
        for j in range(len(branches)):
            total = to(branches[0], 0, j)
            for i in range(1, len(branches)):
                total = n.add(total, to(branches[i], i, j))
            mixed.append(n.act(total, "Relu"))
        branches = mixed
    heat = n.conv(branches[0], joints, 1, None)
    n.g.output(heat, "heat", np.float32, [1, joints, size // 4, size // 4])
    return n.g.model()

# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ConvNeXt: 7x7 depthwise convolutions, layer norm over channels, inverted bottlenecks with a scale per channel."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx

from tilewright.demo.graph import GraphBuilder

from ._weights import Weights

_LAST, _FIRST = [0, 2, 3, 1], [0, 3, 1, 2]  # channels last, channels first


class _Convnext:
    """One model under construction."""

    def __init__(self, seed: int) -> None:
        self.g, self.w = GraphBuilder("convnext"), Weights(seed)

    def conv(self, x: str, inputs: int, outputs: int, window: int, stride: int, groups: int = 1) -> str:
        """Convolution with bias; a stride of 1 keeps the size."""
        g, w = self.g, self.w
        kernel = g.weight(w.conv(outputs, inputs // groups, window, window, gain=1.0), "conv")
        bias, pad = g.weight(w.normal(outputs, scale=0.1), "bias"), window // 2 if stride == 1 else 0
        return g.op(
            "Conv", x, kernel, bias, kernel_shape=[window] * 2, strides=[stride] * 2, pads=[pad] * 4, group=groups
        )

    def norm(self, x: str, size: int) -> str:
        """Layer norm over the last dimension."""
        g, w = self.g, self.w
        scale, shift = g.weight(w.near_one(size), "norm"), g.weight(w.normal(size, scale=0.1), "shift")
        return g.op("LayerNormalization", x, scale, shift, axis=-1, epsilon=1e-6)

    def norm_channels(self, x: str, size: int) -> str:
        """Layer norm over the channels of an image [batch, channels, height, width]."""
        g = self.g
        return g.op("Transpose", self.norm(g.op("Transpose", x, perm=_LAST), size), perm=_FIRST)

    def dense(self, x: str, inputs: int, outputs: int) -> str:
        """A linear layer over the last dimension."""
        product = self.g.op("MatMul", x, self.g.weight(self.w.linear(outputs, inputs).T, "weight"))
        return self.g.op("Add", product, self.g.weight(self.w.normal(outputs, scale=0.1), "bias"))

    def block(self, x: str, size: int) -> str:
        """Depthwise convolution, norm, 4x wide gelu layer, scale, beside a residual."""
        g = self.g
        y = g.op("Transpose", self.conv(x, size, size, 7, 1, groups=size), perm=_LAST)
        y = self.dense(self.norm(y, size), size, 4 * size)
        bent = g.op("Add", g.op("Erf", g.op("Div", y, g.f32(2.0**0.5))), g.f32(1.0))
        y = self.dense(g.op("Mul", g.op("Mul", y, bent), g.f32(0.5)), 4 * size, size)
        y = g.op("Mul", g.weight(self.w.near_one(size) * np.float32(0.4), "scale"), y)
        return g.op("Add", x, g.op("Transpose", y, perm=_FIRST))


def convnext(
    depths: Sequence[int] = (3, 3, 9, 3),
    width: int = 96,
    classes: int = 1000,
    batch: int = 1,
    size: int = 224,
    seed: int = 0,
) -> onnx.ModelProto:
    """`image` [batch, 3, size, size] -> `logits` [batch, classes]; the defaults are ConvNeXt-T."""
    m = _Convnext(seed)
    g = m.g
    x, channels = g.input("image", np.float32, [batch, 3, size, size]), 3
    for stage, depth in enumerate(depths):
        outputs = width << stage
        with g.scope(f"stage.{stage}"):
            x = x if stage == 0 else m.norm_channels(x, channels)
            window = 4 if stage == 0 else 2
            x = m.conv(x, channels, outputs, window, window)
            x = m.norm_channels(x, outputs) if stage == 0 else x
            for block in range(depth):
                with g.scope(f"block.{block}"):
                    x = m.block(x, outputs)
        channels = outputs
    with g.scope("head"):
        x = m.norm(g.op("Flatten", g.op("GlobalAveragePool", x), axis=1), channels)
        weight, bias = m.w.linear(classes, channels), m.w.normal(classes, scale=0.1)
        x = g.op("Gemm", x, g.weight(weight, "fc.weight"), g.weight(bias, "fc.bias"), transB=1)
    g.output(x, "logits", np.float32, [batch, classes])
    return g.model()

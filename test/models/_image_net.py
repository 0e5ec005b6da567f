# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutional nets as an exporter writes them: norms folded into the convolutions, activations as small operators."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx

from ._graph import Graph
from ._weights import Weights

Window = int | tuple[int, int]


class ImageNet:
    """One net under construction; remembers how many channels each value has."""

    def __init__(self, name: str, seed: int, opset: int = 17) -> None:
        self.g, self.w = Graph(name, opset), Weights(seed)
        self.channels: dict[str, int] = {}

    def input(self, name: str, shape: Sequence[int]) -> str:
        """A float input [batch, channels, ...]."""
        return self.known(self.g.input(name, np.float32, shape), shape[1])

    def known(self, x: str, channels: int) -> str:
        """Remember the channels of a value."""
        self.channels[x] = channels
        return x

    def conv(
        self,
        x: str,
        outputs: int,
        window: Window = 3,
        act: str | None = "Relu",
        stride: int = 1,
        groups: int = 1,
        dilation: int = 1,
        gain: float = 1.0,
    ) -> str:
        """Convolution with bias and 'same' padding, and an activation."""
        g, inputs = self.g, self.channels[x]
        high, wide = (window, window) if isinstance(window, int) else window
        kernel = g.weight(self.w.conv(outputs, inputs // groups, high, wide, gain=gain * 2**0.5), "conv")
        pads = [high // 2 * dilation, wide // 2 * dilation] * 2
        sizes = dict(kernel_shape=[high, wide], pads=pads, strides=[stride] * 2, dilations=[dilation] * 2, group=groups)
        y = g.op("Conv", x, kernel, g.weight(self.w.normal(outputs, scale=0.1), "bias"), **sizes)
        return self.act(self.known(y, outputs), act)

    def act(self, x: str, kind: str | None) -> str:
        """An activation: an operator's name, or `silu`."""
        if kind is None:
            return x
        y = self.g.op("Mul", x, self.g.op("Sigmoid", x)) if kind == "silu" else self.g.op(kind, x)
        return self.known(y, self.channels[x])

    def add(self, x: str, y: str) -> str:
        """A residual."""
        return self.known(self.g.op("Add", x, y), self.channels[x])

    def concat(self, *xs: str) -> str:
        """Channels one after the other."""
        return self.known(self.g.op("Concat", *xs, axis=1), sum(self.channels[x] for x in xs))

    def split(self, x: str, parts: int = 2) -> list[str]:
        """Channels in equal parts."""
        each = self.channels[x] // parts
        return [
            self.known(y, each) for y in self.g.ops("Split", x, self.g.const([each] * parts), outputs=parts, axis=1)
        ]

    def pool(self, x: str, kind: str = "MaxPool", window: int = 2, stride: int = 2, pad: int = 0, **more: int) -> str:
        """A pooling window."""
        y = self.g.op(kind, x, kernel_shape=[window] * 2, strides=[stride] * 2, pads=[pad] * 4, **more)
        return self.known(y, self.channels[x])

    def resize(self, x: str, factor: int = 2, mode: str = "nearest") -> str:
        """Larger by a factor."""
        where = dict(coordinate_transformation_mode="asymmetric", nearest_mode="floor") if mode == "nearest" else {}
        scales = self.g.const([1, 1, factor, factor], np.float32)
        return self.known(self.g.op("Resize", x, "", scales, mode=mode, **where), self.channels[x])

    def excite(self, x: str, squeezed: int, gate: str = "Sigmoid", act: str = "Relu") -> str:
        """Squeeze and excitation (Hu et al., 2018): channels scaled by a function of their means."""
        mean = self.known(self.g.op("ReduceMean", x, axes=[2, 3], keepdims=1), self.channels[x])
        scale = self.conv(self.conv(mean, squeezed, 1, act), self.channels[x], 1, gate)
        return self.known(self.g.op("Mul", x, scale), self.channels[x])

    def linear(self, x: str, outputs: int, act: str | None = None) -> str:
        """A dense layer on [batch, channels]."""
        weight = self.g.weight(self.w.linear(outputs, self.channels[x]), "weight")
        y = self.g.op("Gemm", x, weight, self.g.weight(self.w.normal(outputs, scale=0.1), "bias"), transB=1)
        return self.act(self.known(y, outputs), act)

    def classify(self, x: str, classes: int, batch: int = 1) -> onnx.ModelProto:
        """The mean over the image, a dense layer, and the finished model."""
        flat = self.g.op("Flatten", self.g.op("GlobalAveragePool", x), axis=1)
        logits = self.linear(self.known(flat, self.channels[x]), classes)
        self.g.output(logits, "logits", np.float32, [batch, classes])
        return self.g.model()

# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""MLP-Mixer: layers over patches and layers over channels, with a transpose around the former."""

from __future__ import annotations

import numpy as np
import onnx

from tilewright.demo.graph import GraphBuilder

from ._weights import Weights


class _Mixer:
    """One model under construction."""

    def __init__(self, seed: int) -> None:
        self.g, self.w = GraphBuilder("mlp_mixer"), Weights(seed)

    def norm(self, x: str, size: int) -> str:
        """Layer norm over the last dimension."""
        g, w = self.g, self.w
        scale, shift = g.weight(w.near_one(size), "norm"), g.weight(w.normal(size, scale=0.1), "shift")
        return g.op("LayerNormalization", x, scale, shift, axis=-1, epsilon=1e-6)

    def dense(self, x: str, inputs: int, outputs: int, gain: float = 1.0) -> str:
        """A linear layer over the last dimension."""
        product = self.g.op("MatMul", x, self.g.weight(self.w.linear(outputs, inputs, gain).T, "weight"))
        return self.g.op("Add", product, self.g.weight(self.w.normal(outputs, scale=0.1), "bias"))

    def mlp(self, x: str, size: int, wide: int) -> str:
        """Two layers with a gelu between."""
        g, x = self.g, self.dense(x, size, wide)
        bent = g.op("Add", g.op("Erf", g.op("Div", x, g.f32(2.0**0.5))), g.f32(1.0))
        return self.dense(g.op("Mul", g.op("Mul", x, bent), g.f32(0.5)), wide, size, gain=0.5)


def mlp_mixer(
    layers: int = 8,
    hidden: int = 512,
    over_patches: int = 256,
    over_channels: int = 2048,
    patch: int = 16,
    classes: int = 1000,
    batch: int = 1,
    size: int = 224,
    seed: int = 0,
) -> onnx.ModelProto:
    """`image` [batch, 3, size, size] -> `logits` [batch, classes]; the defaults are Mixer-S/16."""
    m = _Mixer(seed)
    g, w, patches = m.g, m.w, (size // patch) ** 2
    image = g.input("image", np.float32, [batch, 3, size, size])
    with g.scope("stem"):
        kernel = g.weight(w.conv(hidden, 3, patch, patch, gain=1.0), "projection")
        bias, window = g.weight(w.normal(hidden, scale=0.1), "bias"), [patch, patch]
        x = g.op("Conv", image, kernel, bias, kernel_shape=window, strides=window)
        x = g.op("Transpose", g.op("Reshape", x, g.const([batch, hidden, patches])), perm=[0, 2, 1])
    for i in range(layers):
        with g.scope(f"layer.{i}/patches"):
            y = g.op("Transpose", m.norm(x, hidden), perm=[0, 2, 1])
            y = g.op("Transpose", m.mlp(y, patches, over_patches), perm=[0, 2, 1])
            x = g.op("Add", x, y)
        with g.scope(f"layer.{i}/channels"):
            x = g.op("Add", x, m.mlp(m.norm(x, hidden), hidden, over_channels))
    with g.scope("head"):
        x = g.op("ReduceMean", m.norm(x, hidden), axes=[1], keepdims=0)
        weight, bias = m.w.linear(classes, hidden), m.w.normal(classes, scale=0.1)
        x = g.op("Gemm", x, g.weight(weight, "fc.weight"), g.weight(bias, "fc.bias"), transB=1)
    g.output(x, "logits", np.float32, [batch, classes])
    return g.model()

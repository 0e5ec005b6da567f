# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ViT: convolution as patch embedding, class token by Concat, pre-norm encoder, classifier on the class token."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx

from tilewright.demo.graph import GraphBuilder

from ._weights import Weights


@dataclass(frozen=True)
class VitConfig:
    """Sizes; the defaults are ViT-B/16 at 224 (197 tokens)."""

    layers: int = 12
    hidden: int = 768
    heads: int = 12
    intermediate: int = 3072
    patch: int = 16
    size: int = 224
    classes: int = 1000
    batch: int = 1

    @property
    def patches(self) -> int:
        """Patches per image."""
        return (self.size // self.patch) ** 2


class _Vit:
    def __init__(self, config: VitConfig, seed: int) -> None:
        self.c = config
        self.g = GraphBuilder("vit")
        self.w = Weights(seed)

    def build(self) -> onnx.ModelProto:
        g, c = self.g, self.c
        x = self.embed(g.input("image", np.float32, [c.batch, 3, c.size, c.size]))
        for i in range(c.layers):
            with g.scope(f"encoder/layer.{i}"):
                x = self.layer(x)
        with g.scope("head"):
            first = g.op("Gather", self.norm(x), g.const(0), axis=1)
            weight = g.weight(self.w.linear(c.classes, c.hidden), "classifier.weight")
            bias = g.weight(self.w.normal(c.classes, scale=0.1), "classifier.bias")
            g.output(g.op("Gemm", first, weight, bias, transB=1), "logits", np.float32, [c.batch, c.classes])
        return g.model()

    def embed(self, image: str) -> str:
        g, c, w = self.g, self.c, self.w
        with g.scope("embeddings"):
            kernel = g.weight(w.conv(c.hidden, 3, c.patch, c.patch, gain=1.0), "projection")
            bias = g.weight(w.normal(c.hidden, scale=0.1), "projection.bias")
            window = [c.patch, c.patch]
            x = g.op("Conv", image, kernel, bias, kernel_shape=window, strides=window)
            x = g.op("Reshape", x, g.const([c.batch, c.hidden, -1]))
            x = g.op("Transpose", x, perm=[0, 2, 1])
            token = g.op("Expand", g.weight(w.normal(1, 1, c.hidden), "cls_token"), g.const([c.batch, 1, c.hidden]))
            x = g.op("Concat", token, x, axis=1)
            return g.op("Add", x, g.weight(w.normal(1, c.patches + 1, c.hidden, scale=0.5), "position_embeddings"))

    def layer(self, x: str) -> str:
        g, c = self.g, self.c
        with g.scope("attention"):
            x = g.op("Add", self.attention(self.norm(x)), x)
        with g.scope("mlp"):
            wide = self.gelu(self.dense(self.norm(x), c.intermediate, c.hidden))
            return g.op("Add", self.dense(wide, c.hidden, c.intermediate, gain=0.3), x)

    def attention(self, x: str) -> str:
        g, c = self.g, self.c
        shape = g.const([c.batch, c.patches + 1, c.heads, c.hidden // c.heads])
        q, k, v = (
            g.op("Transpose", g.op("Reshape", self.dense(x, c.hidden, c.hidden), shape), perm=perm)
            for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])
        )
        scores = g.op("Mul", g.op("MatMul", q, k), g.f32((c.hidden // c.heads) ** -0.5))
        context = g.op("Transpose", g.op("MatMul", g.op("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
        merged = g.op("Reshape", context, g.const([c.batch, c.patches + 1, c.hidden]))
        return self.dense(merged, c.hidden, c.hidden, gain=0.5)

    def dense(self, x: str, outputs: int, inputs: int, gain: float = 1.0) -> str:
        g = self.g
        product = g.op("MatMul", x, g.weight(self.w.linear(outputs, inputs, gain).T, "weight"))
        return g.op("Add", g.weight(self.w.normal(outputs, scale=0.1), "bias"), product)

    def norm(self, x: str) -> str:
        g, w = self.g, self.w
        scale, shift = (
            g.weight(w.near_one(self.c.hidden), "norm"),
            g.weight(w.normal(self.c.hidden, scale=0.1), "shift"),
        )
        return g.op("LayerNormalization", x, scale, shift, axis=-1, epsilon=1e-12)

    def gelu(self, x: str) -> str:
        g = self.g
        bent = g.op("Add", g.op("Erf", g.op("Div", x, g.f32(2.0**0.5))), g.f32(1.0))
        return g.op("Mul", g.op("Mul", x, bent), g.f32(0.5))


def vit(seed: int = 0, **sizes: int) -> onnx.ModelProto:
    """`image` [batch, 3, size, size] -> `logits` [batch, classes]; `sizes` are the fields of VitConfig."""
    return _Vit(VitConfig(**sizes), seed).build()

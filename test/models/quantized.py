# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Quantized nets: a classifier and an encoder with QuantizeLinear and DequantizeLinear, layers quantized by the run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx

from ._graph import Graph
from ._weights import Weights
from .transformers import Blocks

LOGIT_STEP = 0.05  # of the quantized output


class _Quantizer:
    """Adds nodes with QuantizeLinear and DequantizeLinear around them to a graph."""

    def __init__(self, g: Graph, seed: int) -> None:
        self.g, self.w = g, Weights(seed)

    def activation(self, x: str, scale: float, zero: int, name: str) -> str:
        """A tensor as uint8 and back."""
        g = self.g
        parameters = g.weight(np.float32(scale), name + ".scale"), g.weight(np.uint8(zero), name + ".zero")
        return g.op("DequantizeLinear", g.op("QuantizeLinear", x, *parameters), *parameters)

    def weight(self, array: np.ndarray, name: str) -> str:
        """A weight as int8 with a scale for each row."""
        g = self.g
        scale = np.abs(array).reshape(len(array), -1).max(1) / np.float32(127)
        levels = np.rint(array / scale.reshape(-1, *[1] * (array.ndim - 1))).astype(np.int8)
        zero = g.weight(np.zeros(len(array), np.int8), name + ".zero")
        return g.op("DequantizeLinear", g.weight(levels, name), g.weight(scale, name + ".scale"), zero, axis=0)

    def conv(self, x: str, channels: tuple[int, int], window: int, stride: int = 1, gain: float = 2**0.5) -> str:
        """A convolution with a bias in f32."""
        inputs, outputs = channels
        kernel = self.weight(self.w.conv(outputs, inputs, window, window, gain=gain), "kernel")
        bias = self.g.weight(self.w.normal(outputs, scale=0.1), "bias")
        return self.g.op("Conv", x, kernel, bias, pads=[window // 2] * 4, strides=[stride] * 2)


def resnet(
    blocks: Sequence[int] = (3, 4, 6, 3),
    width: int = 64,
    classes: int = 1000,
    batch: int = 1,
    size: int = 224,
    seed: int = 0,
) -> onnx.ModelProto:
    """`image` [batch, 3, size, size] -> `logits` [batch, classes]: ResNet-50, its norms folded into the convolutions.

    Activations are uint8, behind a Relu from zero on, weights int8 with a scale for each channel.
    """
    g = Graph("quantized_resnet")
    q = _Quantizer(g, seed)

    def relu(x: str) -> str:
        return q.activation(g.op("Relu", x), 0.03, 0, "relu")

    x = q.activation(g.input("image", np.float32, [batch, 3, size, size]), 0.04, 128, "image")
    x = relu(q.conv(x, (3, width), 7, 2))
    x = q.activation(g.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]), 0.03, 0, "pool")
    channels = width
    for stage, count in enumerate(blocks):
        for block in range(count):
            inner, stride = width << stage, 2 if stage > 0 and block == 0 else 1
            with g.scope(f"layer{stage + 1}.{block}"):
                y = relu(q.conv(x, (channels, inner), 1))
                y = relu(q.conv(y, (inner, inner), 3, stride))
                y = q.activation(q.conv(y, (inner, 4 * inner), 1, gain=0.6), 0.04, 128, "end")
                if block == 0:
                    x = q.activation(q.conv(x, (channels, 4 * inner), 1, stride, gain=0.9), 0.04, 128, "short")
                x, channels = relu(g.op("Add", y, x)), 4 * inner
    pooled = q.activation(g.op("Flatten", g.op("GlobalAveragePool", x)), 0.02, 0, "pooled")
    y = g.op("Gemm", pooled, q.weight(q.w.linear(classes, channels, gain=1.0), "classes"), transB=1)
    g.output(q.activation(y, LOGIT_STEP, 128, "logits"), "logits", np.float32, [batch, classes])
    return g.model()


def quantized(
    widths: Sequence[int] = (3, 8, 12, 16), size: int = 16, classes: int = 5, batch: int = 1, seed: int = 0
) -> onnx.ModelProto:
    """`x` [batch, widths[0], size, size] -> `y` [batch, classes], a multiple of LOGIT_STEP.

    Activations are uint8, weights int8 with a scale for each channel.
    """
    g = Graph("quantized")
    q = _Quantizer(g, seed)
    x = q.activation(g.input("x", np.float32, [batch, widths[0], size, size]), 0.04, 128, "input")
    for i, (inputs, outputs) in enumerate(zip(widths, widths[1:], strict=False)):
        with g.scope(f"block.{i}"):
            y = g.op("Relu", q.conv(x, (inputs, outputs), 3, 1 + i % 2))
            x = q.activation(y, 0.03, 0, "output")
    pooled = q.activation(g.op("Flatten", g.op("GlobalAveragePool", x)), 0.01, 0, "pooled")
    y = g.op("Gemm", pooled, q.weight(q.w.linear(classes, widths[-1], gain=4.0), "classes"), transB=1)
    g.output(q.activation(y, LOGIT_STEP, 128, "logits"), "y", np.float32, [batch, classes])
    return g.model()


def quantized_transformer(
    layers: int = 2, hidden: int = 64, heads: int = 4, wide: int = 256, sequence: int = 32, seed: int = 0
) -> onnx.ModelProto:
    """`x` [1, sequence, hidden] -> `y`: an encoder with QuantizeLinear and DequantizeLinear around its products.

    Activations are uint8 with one scale, weights int8 with a scale for each output; norms and softmax stay floats.
    """
    b = Blocks("quantized_transformer", seed)
    g, w, head = b.g, b.w, hidden // heads

    def activation(x: str, scale: float, zero: int = 128) -> str:
        parameters = g.weight(np.float32(scale), "scale"), g.weight(np.uint8(zero), "zero")
        return g.op("DequantizeLinear", g.op("QuantizeLinear", x, *parameters), *parameters)

    def linear(x: str, inputs: int, outputs: int, gain: float = 1.0) -> str:
        array = w.linear(outputs, inputs, gain).T
        scale = np.abs(array).max(0) / np.float32(127)
        levels = g.weight(np.rint(array / scale).astype(np.int8), "levels")
        zero = g.weight(np.zeros(outputs, np.int8), "zero")
        y = g.op("MatMul", activation(x, 0.04), g.op("DequantizeLinear", levels, g.weight(scale), zero, axis=1))
        return g.op("Add", y, g.weight(w.normal(outputs, scale=0.1), "bias"))

    x = g.input("x", np.float32, [1, sequence, hidden])
    for _ in range(layers):
        normal = b.norm(x, hidden)
        q, k, v = (b.heads(linear(normal, hidden, hidden), [1, sequence, heads, head]) for _ in range(3))
        scores = g.op("MatMul", activation(q, 0.04), g.op("Transpose", activation(k, 0.04), perm=[0, 1, 3, 2]))
        chances = g.op("Softmax", g.op("Mul", scores, g.f32(head**-0.5)), axis=-1)
        y = g.op("MatMul", activation(chances, 1 / 255, 0), activation(v, 0.04))
        y = g.op("Reshape", g.op("Transpose", y, perm=[0, 2, 1, 3]), g.const([1, sequence, hidden]))
        x = g.op("Add", x, linear(y, hidden, hidden))
        x = g.op("Add", x, linear(b.gelu(linear(b.norm(x, hidden), hidden, wide)), wide, hidden, 0.5))
    g.output(b.norm(x, hidden), "y", np.float32, [1, sequence, hidden])
    return g.model()


def dynamic_bytes(widths: Sequence[int] = (64, 256, 128, 16), rows: int = 8, seed: int = 0) -> onnx.ModelProto:
    """`x` [rows, widths[0]] -> `y`: dense layers that quantize what they get, as ONNX Runtime's tools write."""
    g, w = Graph("dynamic_bytes"), Weights(seed)
    x = g.input("x", np.float32, [rows, widths[0]])
    for i, (inputs, outputs) in enumerate(zip(widths, widths[1:], strict=False)):
        array = w.linear(outputs, inputs, 1.4).T
        scale = np.abs(array).max() / np.float32(127)
        levels, zero = g.weight(np.rint(array / scale).astype(np.int8), "levels"), g.weight(np.int8(0), "zero")
        given, step, middle = g.ops("DynamicQuantizeLinear", x, outputs=3)
        product = g.op("Cast", g.op("MatMulInteger", given, levels, middle, zero), to=onnx.TensorProto.FLOAT)
        y = g.op("Mul", product, g.op("Mul", step, g.f32(float(scale))))
        y = g.op("Add", y, g.weight(w.normal(outputs, scale=0.1), "bias"))
        x = g.op("Relu", y) if i + 2 < len(widths) else y
    g.output(x, "y", np.float32, [rows, widths[-1]])
    return g.model()

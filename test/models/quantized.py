# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A small convolutional classifier with QuantizeLinear and DequantizeLinear around everything, as exporters do."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx

from ._graph import Graph
from ._weights import Weights

LOGIT_STEP = 0.05  # of the quantized output


def quantized(
    widths: Sequence[int] = (3, 8, 12, 16), size: int = 16, classes: int = 5, batch: int = 1, seed: int = 0
) -> onnx.ModelProto:
    """`x` [batch, widths[0], size, size] -> `y` [batch, classes], a multiple of LOGIT_STEP.

    Activations are uint8, weights int8 with a scale for each channel.
    """
    g, w = Graph("quantized"), Weights(seed)

    def activation(x: str, scale: float, zero: int, name: str) -> str:
        parameters = g.weight(np.float32(scale), name + ".scale"), g.weight(np.uint8(zero), name + ".zero")
        return g.op("DequantizeLinear", g.op("QuantizeLinear", x, *parameters), *parameters)

    def weight(array: np.ndarray, name: str) -> str:
        scale = np.abs(array).reshape(len(array), -1).max(1) / np.float32(127)
        levels = np.rint(array / scale.reshape(-1, *[1] * (array.ndim - 1))).astype(np.int8)
        zero = g.weight(np.zeros(len(array), np.int8), name + ".zero")
        return g.op("DequantizeLinear", g.weight(levels, name), g.weight(scale, name + ".scale"), zero, axis=0)

    x = activation(g.input("x", np.float32, [batch, widths[0], size, size]), 0.04, 128, "input")
    for i, (inputs, outputs) in enumerate(zip(widths, widths[1:], strict=False)):
        with g.scope(f"block.{i}"):
            kernel, bias = (
                weight(w.conv(outputs, inputs, 3, 3), "kernel"),
                g.weight(w.normal(outputs, scale=0.1), "bias"),
            )
            y = g.op("Relu", g.op("Conv", x, kernel, bias, pads=[1, 1, 1, 1], strides=[1 + i % 2] * 2))
            x = activation(y, 0.03, 0, "output")
    pooled = activation(g.op("Flatten", g.op("GlobalAveragePool", x)), 0.01, 0, "pooled")
    y = g.op("Gemm", pooled, weight(w.linear(classes, widths[-1], gain=4.0), "classes"), transB=1)
    g.output(activation(y, LOGIT_STEP, 128, "logits"), "y", np.float32, [batch, classes])
    return g.model()

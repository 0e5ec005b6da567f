# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A plain multi-layer perceptron of Gemm and Relu."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx

from tilewright.demo.graph import GraphBuilder

from ._weights import Weights


def mlp(widths: Sequence[int] = (784, 512, 256, 10), batch: int = 1, seed: int = 0) -> onnx.ModelProto:
    """`x` [batch, widths[0]] -> `y` [batch, widths[-1]]; Softmax at the end."""
    g, w = GraphBuilder("mlp"), Weights(seed)
    x = g.input("x", np.float32, [batch, widths[0]])
    for i, (inputs, outputs) in enumerate(zip(widths, widths[1:], strict=False)):
        with g.scope(f"layer.{i}"):
            weight = g.weight(w.linear(outputs, inputs, gain=2.0**0.5), "weight")
            x = g.op("Gemm", x, weight, g.weight(w.normal(outputs, scale=0.1), "bias"), transB=1)
            if i + 2 < len(widths):
                x = g.op("Relu", x)
    g.output(g.op("Softmax", x, axis=-1), "y", np.float32, [batch, widths[-1]])
    return g.model()

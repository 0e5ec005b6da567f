# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A transformer encoder whose weights and activations are all of a 16-bit float type."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx

from ._graph import Graph
from ._weights import Weights


def transformer16(
    dtype: np.typing.DTypeLike = ml_dtypes.bfloat16,
    layers: int = 2,
    hidden: int = 32,
    heads: int = 4,
    sequence: int = 9,
    batch: int = 2,
    seed: int = 0,
) -> onnx.ModelProto:
    """`x` [batch, sequence, hidden] -> `y` of the same shape and type."""
    g, w, size = Graph("transformer16", 20), Weights(seed), hidden // heads

    def weight(array: np.ndarray, name: str) -> str:
        return g.weight(array.astype(dtype), name)

    def linear(x: str, inputs: int, outputs: int, name: str) -> str:
        y = g.op("MatMul", x, weight(w.linear(outputs, inputs).T, name + ".weight"))
        return g.op("Add", y, weight(w.normal(outputs, scale=0.1), name + ".bias"))

    def norm(x: str, name: str) -> str:
        scale, shift = weight(w.near_one(hidden), name + ".weight"), weight(w.normal(hidden, scale=0.1), name + ".bias")
        return g.op("LayerNormalization", x, scale, shift, axis=-1)

    def split(x: str, perm: list[int]) -> str:
        return g.op("Transpose", g.op("Reshape", x, g.const([0, 0, heads, size])), perm=perm)

    x = g.input("x", dtype, [batch, sequence, hidden])
    for i in range(layers):
        with g.scope(f"layer.{i}"):
            q = split(linear(x, hidden, hidden, "q"), [0, 2, 1, 3])
            k = split(linear(x, hidden, hidden, "k"), [0, 2, 3, 1])
            v = split(linear(x, hidden, hidden, "v"), [0, 2, 1, 3])
            scores = g.op("Mul", g.op("MatMul", q, k), weight(np.float32(size**-0.5), "scale"))
            y = g.op("MatMul", g.op("Softmax", scores, axis=-1), v)
            y = g.op("Reshape", g.op("Transpose", y, perm=[0, 2, 1, 3]), g.const([0, 0, hidden]))
            x = norm(g.op("Add", x, linear(y, hidden, hidden, "o")), "first")
            y = linear(
                g.op("Gelu", linear(x, hidden, 4 * hidden, "up"), approximate="tanh"), 4 * hidden, hidden, "down"
            )
            x = norm(g.op("Add", x, y), "second")
    g.output(x, "y", dtype, [batch, sequence, hidden])
    return g.model()

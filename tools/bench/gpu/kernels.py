# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels as ONNX graphs of one operator or a short chain, in the element types of GPUs."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import onnx

from models._graph import Graph
from models._weights import Weights


def _kind(dtype: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, dtype, dtype))


def _constant(g: Graph, array: np.ndarray, kind: np.dtype, name: str) -> str:
    return g.weight(array.astype(kind), name)


def attention(
    batch: int = 4,
    heads: int = 16,
    groups: int = 16,
    queries: int = 4096,
    keys: int = 4096,
    depth: int = 128,
    causal: bool = False,
    dtype: str = "bfloat16",
) -> onnx.ModelProto:
    """`q` [batch, heads, queries, depth], `k`, `v` [batch, groups, keys, depth] -> `y`: the operator Attention."""
    g, kind = Graph("attention", 23), _kind(dtype)
    shapes = {"q": [batch, heads, queries, depth]} | dict.fromkeys("kv", [batch, groups, keys, depth])
    values = [g.input(name, kind, shape) for name, shape in shapes.items()]
    g.output(g.op("Attention", *values, is_causal=int(causal)), "y", kind, shapes["q"])
    return g.model()


def feed_forward(m: int = 4096, n: int = 11008, k: int = 4096, dtype: str = "bfloat16") -> onnx.ModelProto:
    """`x` [m, k] -> `y` [m, n]: a product, its bias and the tanh form of gelu, to be one kernel."""
    g, w, kind = Graph("feed_forward", 20), Weights(), _kind(dtype)
    product = g.op("MatMul", g.input("x", kind, [m, k]), _constant(g, w.linear(n, k).T, kind, "weight"))
    biased = g.op("Add", product, _constant(g, w.normal(n, scale=0.1), kind, "bias"))
    g.output(g.op("Gelu", biased, approximate="tanh"), "y", kind, [m, n])
    return g.model()


def batched(batch: int = 64, m: int = 512, n: int = 512, k: int = 64, dtype: str = "bfloat16") -> onnx.ModelProto:
    """`a` [batch, m, k], `b` [batch, k, n] -> `c` [batch, m, n]."""
    g, kind = Graph("batched", 17), _kind(dtype)
    c = g.op("MatMul", g.input("a", kind, [batch, m, k]), g.input("b", kind, [batch, k, n]))
    g.output(c, "c", kind, [batch, m, n])
    return g.model()


def float8(m: int = 8192, n: int = 8192, k: int = 8192, dtype: str = "float8_e4m3fn") -> onnx.ModelProto:
    """`x` [m, k], `w` [n, k] of float8, each with a scale -> `y` [m, n] = x w^T in f32."""
    g, kind = Graph("float8", 21), _kind(dtype)
    values = [
        g.op("DequantizeLinear", g.input(name, kind, shape), g.const(np.float32(scale), np.float32))
        for name, shape, scale in (("x", [m, k], 0.5), ("w", [n, k], 0.25))
    ]
    product = g.op("MatMul", values[0], g.op("Transpose", values[1], perm=[1, 0]))
    g.output(product, "y", np.dtype(np.float32), [m, n])
    return g.model()


def add(rows: int = 16384, columns: int = 4096, dtype: str = "bfloat16") -> onnx.ModelProto:
    """`x`, `y` [rows, columns] -> their sum."""
    g, kind = Graph("add", 17), _kind(dtype)
    z = g.op("Add", g.input("x", kind, [rows, columns]), g.input("y", kind, [rows, columns]))
    g.output(z, "z", kind, [rows, columns])
    return g.model()


def rows_of(operator: str) -> Callable[..., onnx.ModelProto]:
    """A builder: `x` [rows, columns] -> `y`, an operator over the last dimension with its scale (and shift)."""

    def build(rows: int = 16384, columns: int = 4096, dtype: str = "bfloat16") -> onnx.ModelProto:
        g, w, kind = Graph(operator.lower(), 23), Weights(), _kind(dtype)
        values = [g.input("x", kind, [rows, columns])]
        if operator != "Softmax":
            values.append(_constant(g, w.near_one(columns), kind, "scale"))
        if operator == "LayerNormalization":
            values.append(_constant(g, w.normal(columns, scale=0.1), kind, "shift"))
        g.output(g.op(operator, *values, axis=-1), "y", kind, [rows, columns])
        return g.model()

    return build


def column_sums(rows: int = 16384, columns: int = 4096, dtype: str = "float32") -> onnx.ModelProto:
    """`x` [rows, columns] -> `y` [1, columns]: sums over the rows."""
    g, kind = Graph("column_sums", 17), _kind(dtype)
    y = g.op("ReduceSum", g.input("x", kind, [rows, columns]), g.const([0]), keepdims=1)
    g.output(y, "y", kind, [1, columns])
    return g.model()


def convolution(
    batch: int = 32,
    inputs: int = 64,
    outputs: int = 64,
    size: int = 56,
    window: int = 3,
    stride: int = 1,
    dtype: str = "float16",
) -> onnx.ModelProto:
    """`x` [batch, inputs, size, size] -> `y`: convolution with bias and 'same' padding, then Relu."""
    g, w, kind = Graph("convolution", 17), Weights(), _kind(dtype)
    pad, out = window // 2, (size + 2 * (window // 2) - window) // stride + 1
    x = g.input("x", kind, [batch, inputs, size, size])
    kernel = _constant(g, w.conv(outputs, inputs, window, window), kind, "kernel")
    bias = _constant(g, w.normal(outputs, scale=0.1), kind, "bias")
    y = g.op("Conv", x, kernel, bias, kernel_shape=[window] * 2, pads=[pad] * 4, strides=[stride] * 2)
    g.output(g.op("Relu", y), "y", kind, [batch, outputs, out, out])
    return g.model()


BUILDERS: dict[str, Callable[..., onnx.ModelProto]] = {
    "attention": attention,
    "feed_forward": feed_forward,
    "batched": batched,
    "float8": float8,
    "add": add,
    "softmax": rows_of("Softmax"),
    "layernorm": rows_of("LayerNormalization"),
    "rmsnorm": rows_of("RMSNormalization"),
    "column_sums": column_sums,
    "convolution": convolution,
}

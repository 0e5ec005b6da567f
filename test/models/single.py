# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models of one operator (or one short chain), for benchmarks of kernels."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx

from tilewright.demo.graph import GraphBuilder

from ._graph import Graph
from ._weights import Weights


def matmul(m: int = 1024, n: int = 1024, k: int = 1024, dtype: str = "float32") -> onnx.ModelProto:
    """`a` [m, k], `b` [k, n] -> `c` [m, n]; neither operand is constant. The type may also be a 16-bit float."""
    g, kind = Graph("matmul", 17), np.dtype(getattr(ml_dtypes, dtype, dtype))
    g.output(g.op("MatMul", g.input("a", kind, [m, k]), g.input("b", kind, [k, n])), "c", kind, [m, n])
    return g.model()


def matmul_integer(m: int = 1024, n: int = 1024, k: int = 1024) -> onnx.ModelProto:
    """`a` [m, k] of uint8, `b` [k, n] of int8 -> `c` [m, n] of int32; neither operand is constant."""
    g = Graph("matmul_integer", 17)
    c = g.op("MatMulInteger", g.input("a", np.uint8, [m, k]), g.input("b", np.int8, [k, n]))
    g.output(c, "c", np.int32, [m, n])
    return g.model()


def linear(m: int = 128, n: int = 3072, k: int = 768, seed: int = 0) -> onnx.ModelProto:
    """`x` [m, k] -> `y` [m, n]; constant weight and bias."""
    g, w = GraphBuilder("linear"), Weights(seed)
    product = g.op("MatMul", g.input("x", np.float32, [m, k]), g.weight(w.linear(n, k).T))
    g.output(g.op("Add", product, g.weight(w.normal(n, scale=0.1), "bias")), "y", np.float32, [m, n])
    return g.model()


def softmax(rows: int = 4096, columns: int = 4096) -> onnx.ModelProto:
    """`x` [rows, columns] -> `y`, over the last dimension."""
    g = GraphBuilder("softmax")
    x = g.input("x", np.float32, [rows, columns])
    g.output(g.op("Softmax", x, axis=-1), "y", np.float32, [rows, columns])
    return g.model()


def layernorm(rows: int = 4096, columns: int = 1024, seed: int = 0) -> onnx.ModelProto:
    """`x` [rows, columns] -> `y`, over the last dimension."""
    g, w = GraphBuilder("layernorm"), Weights(seed)
    x = g.input("x", np.float32, [rows, columns])
    scale, shift = g.weight(w.near_one(columns), "scale"), g.weight(w.normal(columns, scale=0.1), "shift")
    g.output(g.op("LayerNormalization", x, scale, shift, axis=-1, epsilon=1e-5), "y", np.float32, [rows, columns])
    return g.model()


def gelu(rows: int = 4096, columns: int = 1024) -> onnx.ModelProto:
    """`x` [rows, columns] -> `y`: the exact (erf) gelu as the chain of five operators that exporters write."""
    g = GraphBuilder("gelu")
    x = g.input("x", np.float32, [rows, columns])
    bent = g.op("Add", g.op("Erf", g.op("Div", x, g.f32(2.0**0.5))), g.f32(1.0))
    g.output(g.op("Mul", g.op("Mul", x, bent), g.f32(0.5)), "y", np.float32, [rows, columns])
    return g.model()


def conv(
    inputs: int = 64,
    outputs: int = 64,
    size: int = 56,
    window: int = 3,
    stride: int = 1,
    groups: int = 1,
    seed: int = 0,
) -> onnx.ModelProto:
    """`x` [1, inputs, size, size] -> `y`: convolution with bias and 'same' padding, then Relu."""
    g, w = GraphBuilder("conv"), Weights(seed)
    x = g.input("x", np.float32, [1, inputs, size, size])
    kernel = g.weight(w.conv(outputs, inputs // groups, window, window))
    pad, out = window // 2, (size + 2 * (window // 2) - window) // stride + 1
    y = g.op(
        "Conv",
        x,
        kernel,
        g.weight(w.normal(outputs, scale=0.1), "bias"),
        kernel_shape=[window, window],
        pads=[pad] * 4,
        strides=[stride, stride],
        group=groups,
    )
    g.output(g.op("Relu", y), "y", np.float32, [1, outputs, out, out])
    return g.model()


def qlinear_conv(
    inputs: int = 64, outputs: int = 64, size: int = 56, window: int = 3, seed: int = 0
) -> onnx.ModelProto:
    """`x` [1, inputs, size, size] of uint8 -> `y`: QLinearConv with int8 filters and 'same' padding."""
    g, w = Graph("qlinear_conv", 17), Weights(seed)
    array = w.conv(outputs, inputs, window, window)
    scale = np.abs(array).reshape(outputs, -1).max(1) / np.float32(127)
    levels = np.rint(array / scale.reshape(-1, 1, 1, 1)).astype(np.int8)
    given = (np.float32(0.05), np.uint8(8), levels, scale, np.zeros(outputs, np.int8), np.float32(0.1), np.uint8(128))
    names = ("x.scale", "x.zero", "kernel", "scale", "zero", "y.scale", "y.zero")
    x = g.input("x", np.uint8, [1, inputs, size, size])
    constants = [g.weight(value, name) for value, name in zip(given, names, strict=True)]
    y = g.op("QLinearConv", x, *constants, kernel_shape=[window, window], pads=[window // 2] * 4)
    g.output(y, "y", np.uint8, [1, outputs, size, size])
    return g.model()


def attention(heads: int = 12, sequence: int = 512, depth: int = 64, causal: bool = False) -> onnx.ModelProto:
    """`q`, `k`, `v` [1, heads, sequence, depth] -> `y`: softmax(q k^T / sqrt(depth)) v, with a causal mask if asked."""
    g = GraphBuilder("attention")
    shape = [1, heads, sequence, depth]
    q, k, v = (g.input(n, np.float32, shape) for n in "qkv")
    scores = g.op("Mul", g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2])), g.f32(depth**-0.5))
    if causal:
        mask = g.const(np.tri(sequence, dtype=np.bool_), np.bool_)
        scores = g.op("Where", mask, scores, g.f32(np.finfo(np.float32).min))
    g.output(g.op("MatMul", g.op("Softmax", scores, axis=-1), v), "y", np.float32, shape)
    return g.model()

# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models that only fault injection needs, beside those of the tests and of the GPU suite: one or two operators each."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper, numpy_helper

from models._graph import Graph
from models._weights import Weights

HALF = np.dtype(np.float16)


def attention(heads: int, queries: int, keys: int, depth: int, causal: bool) -> onnx.ModelProto:
    """softmax(q k^T / sqrt(depth) [+ mask]) v in f16, which becomes one kernel with a loop over blocks of keys."""
    element = helper.np_dtype_to_tensor_dtype(HALF)
    constants = [numpy_helper.from_array(np.asarray(depth**-0.5, HALF), "scale")]
    nodes = [
        helper.make_node("Transpose", ["k"], ["kt"], perm=[0, 1, 3, 2]),
        helper.make_node("MatMul", ["q", "kt"], ["s"]),
        helper.make_node("Mul", ["s", "scale"], ["scaled"]),
    ]
    if causal:
        mask = np.where(np.tril(np.ones((queries, keys), bool)), 0, -np.inf).astype(HALF)
        constants.append(numpy_helper.from_array(mask, "mask"))
        nodes.append(helper.make_node("Add", ["scaled", "mask"], ["masked"]))
    nodes.append(helper.make_node("Softmax", ["masked" if causal else "scaled"], ["p"], axis=-1))
    nodes.append(helper.make_node("MatMul", ["p", "v"], ["y"]))
    shapes = {"q": queries, "k": keys, "v": keys}
    inputs = [helper.make_tensor_value_info(n, element, [1, heads, size, depth]) for n, size in shapes.items()]
    result = helper.make_tensor_value_info("y", element, [1, heads, queries, depth])
    graph = helper.make_graph(nodes, "attention", inputs, [result], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def open_attention(
    heads: int, groups: int, queries: int | str, keys: int | str, depth: int, past: str = ""
) -> onnx.ModelProto:
    """The operator Attention in f16: `q` [batch, heads, queries, depth], `k` and `v` [batch, groups, keys, depth].

    `past`: the name of the size of a cache that comes before the keys; the batch is one then.
    """
    g, batch = Graph("attention", 23), 1 if past else "batch"
    shapes = {"q": [batch, heads, queries, depth]} | dict.fromkeys("kv", [batch, groups, keys, depth])
    values = [g.input(name, HALF, shape) for name, shape in shapes.items()]
    if not past:
        g.output(g.op("Attention", *values), "y", HALF, shapes["q"])
        return g.model()
    values += ["", *(g.input(name, HALF, [batch, groups, past, depth]) for name in ("past_k", "past_v"))]
    y, *caches = g.ops("Attention", *values, outputs=3)
    g.output(y, "y", HALF, shapes["q"])
    for value, name in zip(caches, ("all_k", "all_v"), strict=True):
        g.output(value, name, HALF, [batch, groups, "all", depth])
    return g.model()


def integer_product(m: int, n: int, k: int) -> onnx.ModelProto:
    """`a` [m, k] of i8 times `b` [k, n] of i8, in i32."""
    inputs = [
        helper.make_tensor_value_info("a", onnx.TensorProto.INT8, [m, k]),
        helper.make_tensor_value_info("b", onnx.TensorProto.INT8, [k, n]),
    ]
    result = helper.make_tensor_value_info("y", onnx.TensorProto.INT32, [m, n])
    graph = helper.make_graph([helper.make_node("MatMulInteger", ["a", "b"], ["y"])], "product", inputs, [result])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def residual_product(m: int | str, n: int, k: int) -> onnx.ModelProto:
    """`a` [m, k] times `b` [k, n], added to `r` [m, n], in f16."""
    g = Graph("product", 18)
    y = g.op("MatMul", g.input("a", HALF, [m, k]), g.input("b", HALF, [k, n]))
    g.output(g.op("Add", y, g.input("r", HALF, [m, n])), "y", HALF, [m, n])
    return g.model()


def _levels(w: Weights, *shape: int) -> np.ndarray:
    return w.random.integers(-128, 128, shape).astype(np.int8)


def _dequantized(g: Graph, w: Weights, k: int, n: int, kind: np.dtype) -> str:
    """Weights [k, n] of bytes with a scale of each column, as floats."""
    scales = w.random.uniform(0.001, 0.01, n).astype(kind)
    zeros = g.weight(np.zeros(n, np.int8), "zeros")
    return g.op("DequantizeLinear", g.weight(_levels(w, k, n), "levels"), g.weight(scales, "scales"), zeros, axis=1)


def byte_product(m: int, n: int, k: int) -> onnx.ModelProto:
    """`a` [m, k] of u8 around 120 times weights of i8, both dequantized, and a bias: multiplied as bytes."""
    g, w = Graph("bytes", 21), Weights()
    scale, zero = g.weight(np.float32(0.03), "scale"), g.weight(np.uint8(120), "zero")
    a = g.op("DequantizeLinear", g.input("a", np.uint8, [m, k]), scale, zero)
    y = g.op("MatMul", a, _dequantized(g, w, k, n, np.dtype(np.float32)))
    g.output(g.op("Add", y, g.weight(w.normal(n), "bias")), "y", np.float32, [m, n])
    return g.model()


def byte_convolution(inputs: int, outputs: int, size: int) -> onnx.ModelProto:
    """`x` [1, inputs, size, size] of u8 around 12 -> `y` of u8: QLinearConv with 3x3 windows, a border and a bias."""
    g, w = Graph("bytes", 21), Weights()
    scales = w.random.uniform(0.5, 1.5, outputs).astype(np.float32)
    bias = w.random.integers(-999, 999, outputs).astype(np.int32)
    x = [g.input("x", np.uint8, [1, inputs, size, size]), g.weight(np.float32(1.5), "xs"), g.weight(np.uint8(12), "xz")]
    kernel = [g.weight(_levels(w, outputs, inputs, 3, 3), "w"), g.weight(scales, "ws")]
    kernel.append(g.weight(np.zeros(outputs, np.int8), "wz"))
    last = [g.weight(np.float32(120.0 * inputs), "ys"), g.weight(np.uint8(113), "yz"), g.weight(bias, "bias")]
    g.output(g.op("QLinearConv", *x, *kernel, *last, pads=[1] * 4), "y", np.uint8, [1, outputs, size, size])
    return g.model()


def packed_row(n: int, k: int) -> onnx.ModelProto:
    """`x` [1, k] of f32 times weights that are kept as bytes with a scale of each column."""
    g = Graph("packed", 21)
    kind = np.dtype(np.float32)
    y = g.op("MatMul", g.input("x", kind, [1, k]), _dequantized(g, Weights(), k, n, kind))
    g.output(y, "y", kind, [1, n])
    return g.model()


def repeated_product(rows: int, width: int, steps: int) -> onnx.ModelProto:
    """`x` [rows, width] of f16 through tanh(x w), `steps` times: what one step writes, TMA of the next one reads."""
    g, w = Graph("repeated", 20), Weights()
    x, body = g.input("x", HALF, [rows, width]), g.inner("body")
    weight = g.weight((w.normal(width, width) * width**-0.5).astype(HALF))
    body.input("i", np.int64, [])
    go, state = body.input("go", np.bool_, []), body.input("state", HALF, [rows, width])
    body.output(go, "goes_on", np.bool_, [])
    body.output(body.op("Tanh", body.op("MatMul", state, weight)), "new", HALF, [rows, width])
    g.output(g.op("Loop", g.const(steps), "", x, body=body.as_attribute()), "y", HALF, [rows, width])
    return g.model()


def recurrences(kinds: tuple[str, ...], steps: tuple[int, ...], hidden: int) -> onnx.ModelProto:
    """Sequences `x0`, `x1`, ... of unequal lengths [steps, 1, 8], each through a layer of its own: the last states."""
    g, w, lasts = Graph("recurrences", 20), Weights(), []
    kind = np.dtype(np.float32)
    for number, (layer, length) in enumerate(zip(kinds, steps, strict=True)):
        gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[layer] * hidden
        x = g.input(f"x{number}", kind, [length, 1, 8])
        weights = [g.weight(w.normal(*shape) * 0.3) for shape in ((1, gates, 8), (1, gates, hidden), (1, 2 * gates))]
        _, last = g.ops(layer, x, *weights, outputs=2, hidden_size=hidden)
        lasts.append(last)
    g.output(g.op("Concat", *lasts, axis=2), "y", kind, [1, 1, hidden * len(lasts)])
    return g.model()

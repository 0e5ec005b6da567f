# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tables and graphs: embeddings that meet in a dense net, an autoencoder, attention over the edges of a graph."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx

from ._graph import Graph
from ._weights import Weights


def _dense(g: Graph, w: Weights, x: str, widths: Sequence[int], last: str | None = None) -> str:
    for i, (inputs, outputs) in enumerate(zip(widths, widths[1:], strict=False)):
        weight, bias = g.weight(w.linear(outputs, inputs, 1.4)), g.weight(w.normal(outputs, scale=0.1))
        x = g.op("Gemm", x, weight, bias, transB=1)
        act = "Relu" if i + 2 < len(widths) else last
        x = g.op(act, x) if act else x
    return x


def dlrm(
    tables: int = 26, rows: int = 10000, width: int = 64, dense: int = 13, batch: int = 1, seed: int = 0
) -> onnx.ModelProto:
    """`dense`, `sparse` -> `click`: DLRM (Naumov et al., 2019): embeddings, all pairs of products, two dense nets."""
    g, w = Graph("dlrm", 17), Weights(seed)
    bottom = _dense(g, w, g.input("dense", np.float32, [batch, dense]), (dense, 512, 256, width), "Relu")
    sparse = g.input("sparse", np.int64, [batch, tables])
    found = [g.op("Unsqueeze", bottom, g.const([1]))]
    for i in range(tables):
        index = g.op("Gather", sparse, g.const([i]), axis=1)
        found.append(g.op("Gather", g.weight(w.normal(rows, width, scale=0.5)), index))
    all_of = g.op("Concat", *found, axis=1)
    pairs = g.op("MatMul", all_of, g.op("Transpose", all_of, perm=[0, 2, 1]))
    n = tables + 1
    at = np.ravel_multi_index(np.tril_indices(n, -1), (n, n))
    below = g.op("Gather", g.op("Reshape", pairs, g.const([batch, n * n])), g.const(at), axis=1)
    top = g.op("Concat", bottom, below, axis=1)
    click = _dense(g, w, top, (width + len(at), 512, 256, 1), "Sigmoid")
    g.output(click, "click", np.float32, [batch, 1])
    return g.model()


def autoencoder(widths: Sequence[int] = (784, 512, 256, 32), batch: int = 32, seed: int = 0) -> onnx.ModelProto:
    """`x` -> `y` of the same size, through a narrow layer."""
    g, w = Graph("autoencoder", 17), Weights(seed)
    x = g.input("x", np.float32, [batch, widths[0]])
    y = _dense(g, w, _dense(g, w, x, widths), widths[::-1], "Sigmoid")
    g.output(y, "y", np.float32, [batch, widths[0]])
    return g.model()


def graph_attention(
    nodes: int = 2708,
    edges: int = 13264,
    inputs: int = 256,
    hidden: int = 8,
    heads: int = 8,
    classes: int = 7,
    seed: int = 0,
) -> onnx.ModelProto:
    """`features`, `source`, `target` -> `logits`: attention over edges (Velickovic et al., 2018)."""
    g, w = Graph("graph_attention", 18), Weights(seed)
    x = g.input("features", np.float32, [nodes, inputs])
    source, target = (g.input(name, np.int64, [edges]) for name in ("source", "target"))

    def gather_sum(values: str, shape: Sequence[int]) -> str:
        index = g.op("Reshape", target, g.const([edges] + [1] * (len(shape) - 1)))
        index = g.op("Expand", index, g.const([edges, *shape[1:]]))
        zeros = g.op(
            "ConstantOfShape", g.const(list(shape)), value=onnx.numpy_helper.from_array(np.zeros(1, np.float32))
        )
        return g.op("ScatterElements", zeros, index, values, axis=0, reduction="add")

    def layer(x: str, inputs: int, heads: int, outputs: int) -> str:
        h = g.op("MatMul", x, g.weight(w.linear(heads * outputs, inputs).T))
        h = g.op("Reshape", h, g.const([nodes, heads, outputs]))
        sides = [
            g.op("ReduceSum", g.op("Mul", h, g.weight(w.normal(heads, outputs, scale=0.3))), g.const([2]), keepdims=0)
            for _ in range(2)
        ]
        score = g.op("Add", g.op("Gather", sides[0], source), g.op("Gather", sides[1], target))
        score = g.op("Exp", g.op("LeakyRelu", score, alpha=0.2))
        total = g.op("Gather", gather_sum(score, [nodes, heads]), target)
        weight = g.op("Div", score, g.op("Add", total, g.f32(1e-16)))
        message = g.op("Mul", g.op("Gather", h, source), g.op("Unsqueeze", weight, g.const([2])))
        return g.op("Reshape", gather_sum(message, [nodes, heads, outputs]), g.const([nodes, heads * outputs]))

    x = g.op("Elu", layer(x, inputs, heads, hidden))
    g.output(layer(x, heads * hidden, 1, classes), "logits", np.float32, [nodes, classes])
    return g.model()

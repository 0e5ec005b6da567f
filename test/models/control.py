# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A model with Loop and If: power iteration until it settles, then one of two ways to scale the result."""

from __future__ import annotations

import numpy as np
import onnx

from ._graph import Graph
from ._weights import Weights


def control(size: int = 6, most: int = 40, seed: int = 0) -> onnx.ModelProto:
    """`x` [size] -> `y` [size], the `steps` it took, and `growth` [steps], the norm at each step."""
    g, w, f32 = Graph("control"), Weights(seed), np.float32
    x = g.input("x", f32, [size])
    base = w.normal(size, size)
    matrix = g.weight((base @ base.T) / np.float32(size), "matrix")
    start = g.op("Div", x, g.op("ReduceL2", x, keepdims=0))

    body = g.inner("body")
    body.input("step", np.int64, [])
    body.input("going", np.bool_, [])
    old = body.input("old", f32, [size])
    count = body.input("count", np.int64, [])
    product = body.op("MatMul", matrix, old)
    norm = body.op("ReduceL2", product, keepdims=0)
    new = body.op("Div", product, norm)
    change = body.op("ReduceMax", body.op("Abs", body.op("Sub", new, old)), keepdims=0)
    body.output(body.op("Greater", change, _scalar(body, 1e-2)), "again", np.bool_, [])
    body.output(new, "new", f32, [size])
    body.output(_plus(body, count), "counted", np.int64, [])
    body.output(norm, "norm", f32, [])

    limit, going = g.const(most), g.const(True, np.bool_)
    last, steps, growth = g.ops("Loop", limit, going, start, g.const(0), outputs=3, body=body.as_attribute())

    many = g.op("Greater", steps, g.const(10))
    scaled = g.op(
        "If", many, then_branch=_branch(g, "slow", last, 2.0, size), else_branch=_branch(g, "fast", last, -1.0, size)
    )
    g.output(scaled, "y", f32, [size])
    g.output(steps, "steps", np.int64, [])
    g.output(growth, "growth", f32, ["steps"])
    return g.model()


def _scalar(g: Graph, value: float) -> str:
    return g.op("Constant", value=onnx.numpy_helper.from_array(np.float32(value)))


def _integer(g: Graph, value: int) -> str:
    return g.op("Constant", value=onnx.numpy_helper.from_array(np.int64(value)))


def _plus(g: Graph, count: str) -> str:
    return g.op("Add", count, _integer(g, 1))


def _branch(g: Graph, name: str, value: str, factor: float, size: int) -> onnx.GraphProto:
    """value * factor, where `value` is a name of the graph around."""
    branch = g.inner(name)
    branch.output(branch.op("Mul", value, _scalar(branch, factor)), f"{name}_result", np.float32, [size])
    return branch.as_attribute()

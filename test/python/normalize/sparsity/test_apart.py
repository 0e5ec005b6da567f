# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products that could do with less than what others need: dead experts, partly pruned residual streams."""

from __future__ import annotations

import re

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tilewright as tw

RNG = np.random.default_rng(5)


def model(nodes: list[onnx.NodeProto], weights: dict[str, np.ndarray], shape: list[int]) -> onnx.ModelProto:
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "pruned",
        [value("x", TensorProto.FLOAT, shape)],
        [value("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array.astype(np.float32), name) for name, array in weights.items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    return onnx.shape_inference.infer_shapes(made)


def normal(*sizes: int) -> np.ndarray:
    return RNG.standard_normal(sizes) * 0.2


def left(compiled: tw.Model) -> float:
    """The part of the terms of reductions that is left."""
    told = re.findall(r"pruned weights: reductions keep ([\d.]+) %", str(compiled.report_data()["remarks"]))
    return float(told[0]) / 100 if told else 1.0


def experts(dead: int) -> onnx.ModelProto:
    """y = sum over experts of softmax(x g)[e] * (relu(x u[e]) v[e]); of some all weights are zero."""
    up, down = normal(6, 32, 64), normal(6, 64, 32)
    up[1 : 1 + dead], down[1 : 1 + dead] = 0, 0
    node, axis = helper.make_node, np.array([1], np.int64)
    nodes = [
        node("MatMul", ["x", "g"], ["scores"]),
        node("Softmax", ["scores"], ["gates"], axis=-1),
        node("MatMul", ["x3", "u"], ["hidden"]),
        node("Unsqueeze", ["x", "zero"], ["x3"]),
        node("Relu", ["hidden"], ["live"]),
        node("MatMul", ["live", "v"], ["outs"]),
        node("Transpose", ["gates"], ["turned"], perm=[1, 0]),
        node("Unsqueeze", ["turned", "two"], ["wide"]),
        node("Mul", ["outs", "wide"], ["weighed"]),
        node("ReduceSum", ["weighed", "zero"], ["y"], keepdims=0),
    ]
    nodes[2], nodes[3] = nodes[3], nodes[2]
    made = model(nodes, {"g": normal(32, 6), "u": up, "v": down}, [48, 32])
    for name, array in {"zero": axis * 0, "two": axis * 2}.items():
        made.graph.initializer.append(numpy_helper.from_array(array, name))
    return onnx.shape_inference.infer_shapes(made)


def stream(norm: str) -> onnx.ModelProto:
    """A block that writes and reads half of the channels of a stream, which is normalized and returned as a whole."""
    first, second, inner = normal(64, 128), normal(128, 64), normal(64, 64)
    first[::2], second[:, 1::2], inner[:, ::2] = 0, 0, 0
    node = helper.make_node
    weights = {"a": first, "b": second, "i": inner, "s": normal(64), "t": normal(64)}
    normalize = {
        "layer": [node("LayerNormalization", ["z", "s", "t"], ["n"], axis=-1)],
        "rms": [
            node("Mul", ["z", "z"], ["zz"]),
            node("ReduceMean", ["zz", "axis"], ["mean"]),
            node("Sqrt", ["mean"], ["root"]),
            node("Div", ["z", "root"], ["q"]),
            node("Mul", ["q", "s"], ["n"]),
        ],
        "none": [node("Identity", ["z"], ["n"])],
    }[norm]
    nodes = [
        node("MatMul", ["x", "i"], ["p"]),
        node("Add", ["x", "p"], ["z"]),
        *normalize,
        node("MatMul", ["n", "a"], ["h"]),
        node("Relu", ["h"], ["r"]),
        node("MatMul", ["r", "b"], ["o"]),
        node("Add", ["o", "z"], ["y"]),
    ]
    made = model(nodes, weights, [48, 64])
    made.graph.initializer.append(numpy_helper.from_array(np.array([-1], np.int64), "axis"))
    return onnx.shape_inference.infer_shapes(made)


MODELS = {
    "experts": (lambda: experts(3), 0.6),
    "one expert": (lambda: experts(1), 0.9),
    "stream": (lambda: stream("none"), 0.55),
    "layer": (lambda: stream("layer"), 0.6),
    "rms": (lambda: stream("rms"), 0.6),
}


@pytest.mark.parametrize("target", ["cpu", "cpu:x86-64-v3", "cuda:sm_80"])
@pytest.mark.parametrize("name", MODELS)
def test_the_reduction_shrinks(name: str, target: str) -> None:
    make, most = MODELS[name]
    made = make()
    x = RNG.standard_normal([d.dim_value for d in made.graph.input[0].type.tensor_type.shape.dim]).astype(np.float32)
    (expected,) = tw.compile(made, "reference")(x)
    compiled = tw.compile(made, target, **({"emulate": True} if target.startswith("cuda") else {}))
    np.testing.assert_allclose(compiled(x)[0], expected, rtol=1e-4, atol=1e-4)
    assert left(compiled) <= most


def loop(trips: int) -> onnx.ModelProto:
    """A state that goes trips times through a layer whose inner channels are half dead."""
    first, second = normal(32, 64), normal(64, 32)
    first[:, ::2] = 0
    node, value = helper.make_node, helper.make_tensor_value_info
    body = helper.make_graph(
        [
            node("MatMul", ["state", "a"], ["h"]),
            node("Relu", ["h"], ["r"]),
            node("MatMul", ["r", "b"], ["o"]),
            node("Tanh", ["o"], ["next"]),
            node("Identity", ["on"], ["still"]),
        ],
        "body",
        [
            value("i", TensorProto.INT64, []),
            value("on", TensorProto.BOOL, []),
            value("state", TensorProto.FLOAT, [8, 32]),
        ],
        [value("still", TensorProto.BOOL, []), value("next", TensorProto.FLOAT, [8, 32])],
    )
    made = model([node("Loop", ["trips", "", "x"], ["y"], body=body)], {"a": first, "b": second}, [8, 32])
    made.graph.initializer.append(numpy_helper.from_array(np.array(trips, np.int64), "trips"))
    return onnx.shape_inference.infer_shapes(made)


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_90a"])
def test_bodies_of_loops_shrink(target: str) -> None:
    made = loop(5)
    x = RNG.standard_normal((8, 32)).astype(np.float32)
    (expected,) = tw.compile(made, "reference")(x)
    compiled = tw.compile(made, target, **({"emulate": True} if target.startswith("cuda") else {}))
    np.testing.assert_allclose(compiled(x)[0], expected, rtol=1e-4, atol=1e-4)
    assert left(compiled) == 0.5

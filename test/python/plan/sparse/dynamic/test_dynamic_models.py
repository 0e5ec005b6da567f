# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Dynamic sparsity in ONNX models without a word from the user: ReLU, masked rows, mixtures of experts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import tilewright as tw

CPU, AVX2 = "cpu", "cpu:x86-64-v3"
Arrays = dict[str, np.ndarray]


def model(nodes: Sequence[tuple], shapes: dict[str, Sequence[int]], output: Sequence[int], weights: Arrays) -> bytes:
    """A model of nodes (op, inputs, output, attributes), whose result is `y`."""
    made = [helper.make_node(op, list(ins), [out], **more) for op, ins, out, more in nodes]
    inputs = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    result = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, output)
    held = [numpy_helper.from_array(value, name) for name, value in weights.items()]
    graph = helper.make_graph(made, "g", inputs, [result], held)
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    proto.ir_version = 9
    return proto.SerializeToString()


def run(compiled: tw.CompiledModel, *arrays: np.ndarray) -> np.ndarray:
    result = compiled(*arrays)
    return result[0] if isinstance(result, list | tuple) else result


def kernels(compiled: tw.CompiledModel) -> set[str]:
    return {kernel.name for kernel in compiled.kernels}


@pytest.mark.parametrize("target", [CPU, AVX2])
def test_relu(target: str) -> None:
    """Dead, some, and all columns of a ReLU; the bias and residual behind the product stand in both branches."""
    rng = np.random.default_rng(0)
    w = rng.integers(-3, 4, (40, 4096)).astype(np.float32)
    b = rng.integers(-3, 4, 4096).astype(np.float32)
    nodes = [
        ("Relu", ("x",), "h", {}),
        ("MatMul", ("h", "w"), "p", {}),
        ("Add", ("p", "b"), "q", {}),
        ("Add", ("q", "r"), "y", {}),
    ]
    shapes = {"x": (2, 9, 40), "r": (2, 9, 4096)}
    compiled = tw.compile(model(nodes, shapes, (2, 9, 4096), {"w": w, "b": b}), target=target)
    assert "product_of_live_columns_add" in kernels(compiled)  # what follows is added in its tasks
    r = rng.integers(-3, 4, (2, 9, 4096)).astype(np.float32)
    for live in (0.0, 0.02, 1.0):
        x = np.where(rng.random((2, 9, 40)) < live, 1, -1) * rng.integers(1, 5, (2, 9, 40)).astype(np.float32)
        x = x.astype(np.float32)
        np.testing.assert_array_equal(run(compiled, x, r), np.maximum(x, 0) @ w + b + r)


def test_masked_rows() -> None:
    """Sentences of other lengths than the longest: rows of padding are not multiplied."""
    rng = np.random.default_rng(1)
    w = rng.integers(-3, 4, (40, 4096)).astype(np.float32)
    nodes = [("Mul", ("x", "mask"), "h", {}), ("MatMul", ("h", "w"), "y", {})]
    compiled = tw.compile(model(nodes, {"x": (3, 11, 40), "mask": (3, 11, 1)}, (3, 11, 4096), {"w": w}))
    assert "gather_slices" in kernels(compiled)
    x = rng.integers(-4, 5, (3, 11, 40)).astype(np.float32)
    for lengths in ((11, 11, 11), (3, 7, 1), (0, 0, 0)):
        mask = (np.arange(11) < np.array(lengths)[:, None]).astype(np.float32)[..., None]
        np.testing.assert_array_equal(run(compiled, x, mask), (x * mask) @ w)


def test_weights_that_are_not_finite_stay_dense() -> None:
    """0 times an infinity is NaN, which the model means."""
    w = np.ones((40, 4096), np.float32)
    w[3, 5] = np.inf
    nodes = [("Relu", ("x",), "h", {}), ("MatMul", ("h", "w"), "y", {})]
    compiled = tw.compile(model(nodes, {"x": (9, 40)}, (9, 4096), {"w": w}))
    assert "product_of_live_columns" not in kernels(compiled)
    assert np.isnan(run(compiled, np.zeros((9, 40), np.float32))[:, 5]).all()


def experts(t: int, d: int, f: int, e: int, by_expert: bool, rng: np.random.Generator) -> tuple[bytes, Arrays]:
    """All experts for all tokens, two products with biases and a ReLU, gated and added up."""
    shapes = {"w1": (e, d, f), "b1": (e, 1, f), "w2": (e, f, d), "b2": (e, 1, d)}
    weights = {name: rng.integers(-2, 3, shape).astype(np.float32) for name, shape in shapes.items()}
    gate = [("Unsqueeze", ("gate", "last"), "g", {})] if by_expert else [
        ("Transpose", ("gate",), "turned", {"perm": [1, 0]}),
        ("Unsqueeze", ("turned", "last"), "g", {}),
    ]  # fmt: skip
    nodes = [
        ("Unsqueeze", ("x", "first"), "x3", {}),
        ("MatMul", ("x3", "w1"), "h0", {}),
        ("Add", ("h0", "b1"), "h1", {}),
        ("Relu", ("h1",), "h", {}),
        ("MatMul", ("h", "w2"), "y0", {}),
        ("Add", ("y0", "b2"), "y1", {}),
        *gate,
        ("Mul", ("y1", "g"), "y2", {}),
        ("ReduceSum", ("y2", "first"), "y", {"keepdims": 0}),
    ]
    axes = {"first": np.array([0], np.int64), "last": np.array([2], np.int64)}
    inputs = {"x": (t, d), "gate": (e, t) if by_expert else (t, e)}
    return model(nodes, inputs, (t, d), {**weights, **axes}), weights


MIXTURES = [
    (37, 20, 50, 8, False, CPU),
    (37, 20, 50, 8, True, AVX2),
    (2, 7, 5, 3, False, CPU),
    (70, 48, 96, 5, True, CPU),
    (37, 20, 50, 4, False, "cuda:sm_80"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("t", "d", "f", "e", "by_expert", "target"), MIXTURES)
def test_experts(t: int, d: int, f: int, e: int, by_expert: bool, target: str) -> None:
    """Tokens with no expert, with two, all of one expert, with all: exact for small integers, in any order."""
    rng = np.random.default_rng(2)
    data, w = experts(t, d, f, e, by_expert, rng)
    compiled = tw.compile(data, target=target, **({"emulate": True} if target.startswith("cuda") else {}))
    # A GPU runs the loop over experts in the kernel that begins with the routing.
    assert ("loop_route_tokens" if target.startswith("cuda") else "add_up_experts") in kernels(compiled)
    x = rng.integers(-2, 3, (t, d)).astype(np.float32)
    h = np.maximum(np.einsum("td,edf->etf", x, w["w1"]) + w["b1"], 0)
    each = np.einsum("etf,efd->etd", h, w["w2"]) + w["b2"]
    two = (np.argsort(rng.random((t, e)), axis=1) < 2).astype(np.float32) * rng.integers(1, 3, (t, e))
    one = np.zeros((t, e))
    one[:, e - 1] = 1
    for gates in (np.zeros((t, e)), two, one, np.ones((t, e))):
        gate = gates.astype(np.float32)
        result = run(compiled, x, np.ascontiguousarray(gate.T) if by_expert else gate)
        np.testing.assert_array_equal(result, np.einsum("te,etd->td", gate, each))

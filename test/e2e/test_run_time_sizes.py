# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled products, attention and recurrence of tensors whose sizes change with every call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import tilewright as tw

_RANDOM = np.random.default_rng(16)


def random(*shape: int) -> np.ndarray:
    return _RANDOM.standard_normal(shape).astype(np.float32)


def cut_model(
    op: str, inputs: list[np.ndarray], cut: Mapping[int, int], opset: int, outputs: int, **attributes: Any
) -> onnx.ModelProto:
    """One node on inputs of which some are cut along an axis; the end of the cut is an input of the model."""
    names, nodes = [f"x{i}" for i in range(len(inputs))], []
    weights = [helper.make_tensor("start", TensorProto.INT64, [1], [0])]
    for i, axis in cut.items():
        weights.append(helper.make_tensor(f"axis{i}", TensorProto.INT64, [1], [axis]))
        nodes.append(helper.make_node("Slice", [names[i], "start", "end", f"axis{i}"], [f"cut{i}"]))
        names[i] = f"cut{i}"
    nodes.append(helper.make_node(op, names, [f"y{i}" for i in range(outputs)], **attributes))
    values = [helper.make_tensor_value_info(f"x{i}", TensorProto.FLOAT, x.shape) for i, x in enumerate(inputs)]
    values.append(helper.make_tensor_value_info("end", TensorProto.INT64, [1]))
    results = [helper.make_tensor_value_info(f"y{i}", TensorProto.FLOAT, None) for i in range(outputs)]
    graph = helper.make_graph(nodes, op, values, results, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def listed(results: Any) -> list[np.ndarray]:
    return list(results.values()) if isinstance(results, dict) else list(results)


CASES = {
    "matmul": ("MatMul", [random(7, 6, 7), random(7, 5)], {0: 2, 1: 0}, 17, 1, {}),
    "einsum": ("Einsum", [random(7, 6), random(6, 7)], {0: 0, 1: 1}, 17, 1, {"equation": "ij,jk->ki"}),
    "attention": ("Attention", [random(2, 4, 7, 6), random(2, 2, 7, 6), random(2, 2, 7, 6)], {1: 2, 2: 2}, 24, 1, {}),
    "causal": ("Attention", [random(2, 4, 7, 6)] * 3, {0: 2, 1: 2, 2: 2}, 24, 1, {"is_causal": 1}),
    "rotary": (
        "RotaryEmbedding",
        [random(2, 3, 7, 8), random(2, 7, 4), random(2, 7, 4)],
        {0: 2, 1: 1, 2: 1},
        23,
        1,
        {},
    ),
    "lstm": (
        "LSTM",
        [random(7, 2, 3), random(2, 20, 3), random(2, 20, 5)],
        {0: 0},
        14,
        3,
        {"hidden_size": 5, "direction": "bidirectional"},
    ),
    "gru": ("GRU", [random(3, 7, 3), random(1, 15, 3), random(1, 15, 5)], {0: 1}, 14, 2, {"hidden_size": 5}),
    "dft": ("DFT", [random(2, 7, 2)], {0: 1}, 17, 1, {"axis": 1}),
    "det": ("Det", [random(7, 4, 4)], {0: 0}, 22, 1, {}),
}


@pytest.mark.parametrize("name", CASES)
def test_as_of_fixed_sizes(name: str) -> None:
    op, inputs, cut, opset, outputs, attributes = CASES[name]
    model = tw.compile(cut_model(op, inputs, cut, opset, outputs, **attributes), target="cpu", threads=2)
    for end in (1, 5, 7, 2):
        ours = listed(model(*inputs, np.array([end])))
        whole = [np.take(x, range(end), cut[i]) if i in cut else x for i, x in enumerate(inputs)]
        plain = cut_model(op, whole, {}, opset, outputs, **attributes)
        theirs = listed(tw.compile(plain, target="reference")(*whole, np.array([end])))
        for mine, other in zip(ours, theirs, strict=True):
            assert mine.shape == other.shape
            np.testing.assert_allclose(mine, other, rtol=1e-4, atol=1e-4)


def test_inputs_that_do_not_fit_end_the_call_with_an_error() -> None:
    inputs = [random(6, 7), random(5, 3)]
    model = tw.compile(cut_model("MatMul", inputs, {0: 1}, 17, 1), target="cpu", threads=1)
    assert np.allclose(listed(model(*inputs, np.array([5])))[0], inputs[0][:, :5] @ inputs[1], atol=1e-4)
    with pytest.raises(tw.UserError):
        model(*inputs, np.array([6]))


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_80"])
@pytest.mark.parametrize("first", [0, 2])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_results_that_are_slices(axis: int, first: int, target: str) -> None:
    """A slice of a run-time size is a result, its rows with gaps between them or not."""
    x = random(4, 6, 5)
    weights = [helper.make_tensor(n, TensorProto.INT64, [1], [v]) for n, v in (("start", first), ("axis", axis))]
    nodes = [helper.make_node("Abs", ["x"], ["a"]), helper.make_node("Slice", ["a", "start", "end", "axis"], ["y"])]
    values = [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)]
    values.append(helper.make_tensor_value_info("end", TensorProto.INT64, [1]))
    results = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    graph = helper.make_graph(nodes, "slice", values, results, weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    compiled = tw.compile(model, target=target, emulate=True) if target != "cpu" else tw.compile(model, threads=2)
    for end in (3, 4, 2):
        (ours,) = listed(compiled(x, np.array([end])))
        np.testing.assert_array_equal(ours, np.take(np.abs(x), range(first, end), axis))


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_80"])
@pytest.mark.parametrize("axis", [0, 1])
def test_what_is_computed_into_a_part_of_a_result(axis: int, target: str) -> None:
    """A kernel writes the first columns of rows of a run-time size; it wrote them as if no others stood between."""
    x = random(16, 16)
    nodes = [
        helper.make_node("Split", ["x", "sizes"], ["a", "b"], axis=axis),
        helper.make_node("Neg", ["b"], ["n"]),
        helper.make_node("Concat", ["n", "a"], ["y"], axis=axis),
    ]
    values = [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)]
    values.append(helper.make_tensor_value_info("sizes", TensorProto.INT64, [2]))
    results = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    model = helper.make_model(
        helper.make_graph(nodes, "parts", values, results), opset_imports=[helper.make_opsetid("", 18)]
    )
    compiled = tw.compile(model, target=target, emulate=True) if target != "cpu" else tw.compile(model, threads=2)
    for first in (8, 3, 15):
        a, b = np.split(x, [first], axis)
        (ours,) = listed(compiled(x, np.array([first, 16 - first])))
        np.testing.assert_array_equal(ours, np.concatenate([-b, a], axis))

# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions and poolings with constant weights: ragged sizes, strides, dilations, groups, all as kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import tilewright as tw

F32 = TensorProto.FLOAT

#: input shape, outputs, window, further attributes
CONVOLUTIONS: dict[str, tuple[list[int], int, list[int], dict[str, Any]]] = {
    "lines shorter than a tile": ([1, 24, 7, 7], 80, [3, 3], dict(pads=[1, 1, 1, 1])),
    "five lines of three, batch of two": ([2, 40, 5, 3], 33, [3, 3], dict(pads=[1, 1, 1, 1])),
    "one by one": ([1, 72, 7, 7], 40, [1, 1], {}),
    "one by one, stride 2": ([1, 20, 9, 9], 48, [1, 1], dict(strides=[2, 2])),
    "stem": ([1, 3, 29, 31], 32, [7, 7], dict(strides=[2, 2], pads=[3, 3, 3, 3])),
    "dilated, uneven padding": ([1, 16, 13, 11], 18, [3, 2], dict(dilations=[2, 3], pads=[2, 0, 1, 3])),
    "dilated beyond the image": ([1, 20, 11, 9], 40, [3, 3], dict(dilations=[6, 8], pads=[6, 8, 6, 8])),
    "dilated lines, stride 2": ([2, 18, 15, 23], 33, [5, 3], dict(dilations=[4, 9], strides=[2, 2], pads=[8, 9, 9, 7])),
    "dilated, groups": ([1, 24, 10, 8], 36, [3, 3], dict(group=3, dilations=[7, 5], pads=[7, 5, 7, 5])),
    "dilated, depthwise": ([1, 40, 14, 12], 40, [3, 3], dict(group=40, dilations=[9, 9], pads=[9, 9, 9, 9])),
    "border as wide as the image": ([1, 16, 3, 4], 20, [3, 3], dict(pads=[3, 4, 3, 4])),
    "many weights": ([1, 256, 6, 6], 288, [3, 3], dict(pads=[1, 1, 1, 1])),
    "groups": ([1, 24, 9, 8], 36, [3, 3], dict(group=3, pads=[1, 1, 1, 1])),
    "depthwise": ([1, 40, 15, 17], 40, [3, 3], dict(group=40, pads=[1, 1, 1, 1])),
    "depthwise, stride 2": ([2, 37, 14, 15], 37, [3, 3], dict(group=37, strides=[2, 2], pads=[0, 1, 1, 1])),
    "depthwise, 7x7": ([1, 96, 9, 10], 96, [7, 7], dict(group=96, pads=[3, 3, 3, 3])),
    "depthwise, two outputs each": ([1, 12, 8, 8], 24, [3, 3], dict(group=12, pads=[1, 1, 1, 1])),
    "in one dimension": ([2, 20, 19], 24, [3], dict(strides=[2], pads=[1, 1])),
    "in three": ([1, 6, 5, 6, 4], 20, [3, 2, 3], dict(pads=[1, 0, 1, 1, 1, 1])),
}


def _model(nodes: list[Any], shape: list[int], outputs: list[int], weights: dict[str, np.ndarray]) -> Any:
    infos = [helper.make_tensor_value_info(n, F32, s) for n, s in (("x", shape), ("y", outputs))]
    held = [numpy_helper.from_array(v, n) for n, v in weights.items()]
    graph = helper.make_graph(nodes, "g", infos[:1], infos[1:], held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])


def _agrees(model: Any, shape: list[int], threads: int = 1) -> None:
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    expected = tw.compile(model, target="reference")(x)[0]
    compiled = tw.compile(model, target="cpu", threads=threads)
    assert not compiled.report_data()["remarks"], "all of it runs in kernels"
    np.testing.assert_allclose(compiled(x)[0], expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("name", list(CONVOLUTIONS))
def test_convolutions(name: str) -> None:
    """Twice in a row, so that what lies in the border of an arena's tensor is seen by the next one."""
    shape, outputs, window, attributes = CONVOLUTIONS[name]
    groups, rank = attributes.get("group", 1), len(window)
    random = np.random.default_rng(0)
    w = random.standard_normal([outputs, shape[1] // groups, *window]).astype(np.float32) / 8
    v = random.standard_normal([7, outputs, *[3] * rank]).astype(np.float32) / 8
    weights = {"w": w, "v": v, "b": random.standard_normal(outputs).astype(np.float32)}
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], **attributes),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("Conv", ["r", "v"], ["y"], pads=[1] * (2 * rank)),
    ]
    _agrees(_model(nodes, shape, [shape[0], 7, *["?"] * rank], weights), shape)


@pytest.mark.parametrize("kind", ["MaxPool", "AveragePool"])
def test_poolings_share_nothing_of_their_borders(kind: str) -> None:
    """Two paddings of the same shape, one of an input and one of a result: each has a border of its own."""
    window = dict(kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2])
    nodes = [
        helper.make_node(kind, ["x"], ["a"], **window),
        helper.make_node("Neg", ["x"], ["n"]),
        helper.make_node(kind, ["n"], ["b"], **window),
        helper.make_node("Add", ["a", "b"], ["s"]),
        helper.make_node(kind, ["s"], ["y"], **window),
    ]
    shape = [1, 20, 13, 15]
    _agrees(_model(nodes, shape, [1, 20, 4, 4], {}), shape, threads=2)

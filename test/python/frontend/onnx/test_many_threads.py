# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowerings for machines of many threads, where others have loops over elements: the same numbers as ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnxruntime
import pytest
from support import compare, feeds, interpret, node_model, normalize

from tilewright.frontend import import_onnx
from tilewright.reference.errors import InterpreterError

_RANDOM = np.random.default_rng(31)


def run(op: str, inputs: Sequence[np.ndarray | None], loops: bool = False, rtol: float = 1e-5, **options) -> None:
    """Compare with ONNX Runtime; `loops`: over kernels, of which each is parallel."""
    model = node_model(op, inputs, **options)
    arrays = feeds(model, inputs)
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), settings, providers=["CPUExecutionProvider"])
    expected = session.run(None, arrays)
    imported = import_onnx(model, many_threads=True)
    assert loops or "scf." not in str(imported.module)
    compare(interpret(imported, arrays), expected, rtol, 1e-5)
    compare(interpret(normalize(imported), arrays), expected, rtol, 1e-5)


def boxes(batches: int, count: int) -> np.ndarray:
    corner = _RANDOM.random((batches, count, 2), np.float32)
    return np.concatenate([corner, corner + _RANDOM.random((batches, count, 2), np.float32) * 0.4], -1)


@pytest.mark.parametrize("known", [[2, 3, 4], []], ids=["known", "run time"])
@pytest.mark.parametrize("most", [0, 1, 2, 40, 100])
@pytest.mark.parametrize("center", [0, 1])
def test_non_max_suppression(known: list[int], most: int, center: int) -> None:
    """As many rounds as boxes are kept: more than are run before a look at what is left."""
    inputs = [boxes(2, 60), _RANDOM.random((2, 3, 60), np.float32)]
    limits = [np.array([most]), np.float32([0.4]), np.float32([0.2])]
    run("NonMaxSuppression", [*inputs, *limits], loops=True, known=known, center_point_box=center)


def test_suppression_without_optional_inputs() -> None:
    inputs = [boxes(1, 30), _RANDOM.standard_normal((1, 1, 30)).astype(np.float32)]
    run("NonMaxSuppression", inputs, loops=True)
    run("NonMaxSuppression", [*inputs, np.array([30])], loops=True, known=[2])
    run("NonMaxSuppression", [*inputs, np.array([9]), None, np.float32([0.5])], loops=True)


def test_suppression_of_ties_flipped_corners_and_boxes_without_area() -> None:
    flipped = boxes(1, 9)[:, :, [2, 3, 0, 1]]
    flipped[0, 5] = 0.0
    scores = np.float32([[[0.5] * 9, [0.0, -0.0] * 4 + [-1.0]]])
    run("NonMaxSuppression", [flipped, scores, np.array([7]), np.float32([0.0])], loops=True)


def test_suppression_orders_all_numbers() -> None:
    """Negative, infinite and subnormal scores; many classes, whose counts are summed in blocks."""
    apart = np.zeros((1, 8, 4), np.float32)
    apart[0, :, 0] = apart[0, :, 1] = np.arange(8)
    apart[0, :, 2:] = apart[0, :, :2] + 0.5
    scores = np.float32([[[-1e-40, 1e-40, -3, 2, -np.inf, np.inf, 0.0, -2e30]]]).repeat(600, 1)
    run("NonMaxSuppression", [apart, scores, np.array([8]), np.float32([0.5])], loops=True, known=[2, 3])


@pytest.mark.parametrize("shape", [(5,), (3, 4, 5), (2, 700), (3, 1100)])
@pytest.mark.parametrize(("exclusive", "reverse"), [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_cum_sum(shape: tuple[int, ...], exclusive: int, reverse: int) -> None:
    x = _RANDOM.random(shape, np.float32)  # no sums near 0, of which rounding leaves nothing
    for axis in {0, len(shape) - 1}:
        options = {"exclusive": exclusive, "reverse": reverse, "rtol": 1e-4}
        run("CumSum", [x, np.array(axis)], known=[1], **options)


def test_cum_sum_of_integers_and_of_infinities() -> None:
    run("CumSum", [_RANDOM.integers(-9, 9, (3, 600)), np.array(1)], known=[1])
    run("CumSum", [np.float32([1, np.inf, 2, -np.inf, 3]), np.array(0)], known=[1], exclusive=1)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.bool_])
@pytest.mark.parametrize("shape", [(7,), (3, 4), (2, 1, 3), (30, 100), (3, 7, 200)])
def test_non_zero(shape: tuple[int, ...], dtype: type) -> None:
    """Beyond 2048 elements, places are found in blocks."""
    run("NonZero", [_RANDOM.integers(0, 2, shape).astype(dtype)])


@pytest.mark.parametrize("ones", [0, 1])
@pytest.mark.parametrize("count", [5, 2600])
def test_non_zero_of_all_and_nothing(count: int, ones: int) -> None:
    run("NonZero", [np.full(count, ones, np.float32)])


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_compress(axis: int | None) -> None:
    attributes = {} if axis is None else {"axis": axis}
    x = _RANDOM.standard_normal((3, 4)).astype(np.float32)
    run("Compress", [x, np.array([True, False, True])], **attributes)


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "min", "max"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_scatter_elements(axis: int, reduction: str) -> None:
    """Fewer rows of indices than of data; two that are the same where updates are joined."""
    x = _RANDOM.standard_normal((4, 5, 3)).astype(np.float32)
    extent = x.shape[axis]
    indices = np.argsort(_RANDOM.random(x.shape), axis)[:2, :3, :2] % extent - extent * (axis == 1)
    if reduction != "none":
        indices[0] = indices[1]
    updates = _RANDOM.standard_normal(indices.shape).astype(np.float32)
    run("ScatterElements", [x, indices, updates], axis=axis, reduction=reduction, opset=18)


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "min", "max"])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_scatter_nd(depth: int, reduction: str) -> None:
    indices = np.array([[0, 1, 1], [2, -1, 0], [3, 0, 1]])[:, :depth]
    x = _RANDOM.standard_normal((4, 3, 2)).astype(np.float32)
    updates = _RANDOM.standard_normal((3, *x.shape[depth:])).astype(np.float32)
    run("ScatterND", [x, indices, updates], reduction=reduction, opset=18)


def test_scatter_of_integers_and_many_indices() -> None:
    x = _RANDOM.integers(0, 9, (50, 2))
    indices = _RANDOM.integers(0, 50, (3, 40, 1))
    updates = _RANDOM.integers(0, 9, (3, 40, 2))
    run("ScatterND", [x, indices, updates], reduction="add", opset=18)


def test_the_last_update_stays() -> None:
    x, indices, updates = np.zeros(3, np.float32), np.array([1, 1, 2]), np.float32([4, 5, 6])
    imported = import_onnx(node_model("ScatterElements", [x, indices, updates], opset=18), many_threads=True)
    (got,) = interpret(imported, {"x0": x, "x1": indices, "x2": updates})
    assert got.tolist() == [0, 5, 6]


def test_scatter_of_bool_is_logical() -> None:
    x, indices, updates = np.array([True, False, True]), np.array([0, 0, 1]), np.array([False, True, False])
    for reduction, expected in (("add", [True, False, True]), ("mul", [False, False, True])):
        model = node_model("ScatterElements", [x, indices, updates], reduction=reduction, opset=18)
        (got,) = interpret(import_onnx(model, many_threads=True), feeds(model, [x, indices, updates]))
        assert got.tolist() == expected


@pytest.mark.parametrize("index", [3, -4])
@pytest.mark.parametrize("op", ["ScatterElements", "ScatterND"])
def test_an_index_out_of_range_stops_the_run(op: str, index: int) -> None:
    indices = np.array([index]) if op == "ScatterElements" else np.array([[index]])
    inputs = [np.zeros(3, np.float32), indices, np.ones(1, np.float32)]
    model = node_model(op, inputs, opset=18)
    with pytest.raises(InterpreterError, match="an index lies outside of the data"):
        interpret(import_onnx(model, many_threads=True), feeds(model, inputs))

# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""TopK and Unique beside ONNX Runtime and NumPy."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from support import check_numbers, feeds, interpret, node_model

from tilewright.core.errors import UserError
from tilewright.frontend import import_onnx

_RANDOM = np.random.default_rng(5)


def run(op, *inputs, **options):
    model = node_model(op, inputs, **options)
    return check_numbers(model, feeds(model, inputs))


def integers(*shape, dtype=np.int64, most=5):
    return _RANDOM.integers(0, most, shape).astype(dtype)


@pytest.mark.parametrize("known", [[1], []], ids=["known", "run time"])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("largest", [0, 1])
def test_top_k(known, axis, largest):
    run("TopK", integers(3, 7, 4), np.array([3]), known=known, outputs=2, axis=axis, largest=largest)


@pytest.mark.parametrize("count", [1, 2, 3, 5, 31, 64])
def test_top_k_sorts_any_number(count):
    run("TopK", integers(count, dtype=np.float32, most=9), np.array([count]), outputs=2)


@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("k", [1, 5, 32, 33, 60])
def test_top_k_of_many_keeps_the_order_of_equal_ones(k, largest):
    """Up to 32 of them by insertion, more by a heap; NaN is the largest, whatever stands at the start."""
    x = np.stack([integers(60, dtype=np.float32, most=9) for _ in range(4)])
    x[1, [0, 7, 50]], x[2, 3:9], x[3] = np.nan, np.inf * (1 - 2 * largest), np.nan
    model = node_model("TopK", [x, np.array([k])], known=[1], outputs=2, largest=largest)
    values, positions = interpret(import_onnx(model), {"x0": x})
    keys = np.where(np.isnan(x), np.inf, x) * (1 - 2 * largest)
    order = np.lexsort((np.broadcast_to(np.arange(60), x.shape), keys, np.isnan(x) * (1 - 2 * largest)))[:, :k]
    np.testing.assert_array_equal(positions, order)
    np.testing.assert_array_equal(values, np.take_along_axis(x, order, 1))


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.float64])
def test_top_k_of_types(dtype):
    run("TopK", integers(2, 6, dtype=dtype), np.array([4]), outputs=2)


def test_top_k_before_opset_10_has_an_attribute():
    model = node_model("TopK", [integers(2, 6, dtype=np.float32)], outputs=2, opset=9, k=2)
    got = interpret(import_onnx(model), {"x0": np.float32([[1, 5, 3], [9, 8, 9]]).repeat(2, 1)})
    np.testing.assert_array_equal(got[0], [[5, 5], [9, 9]])
    np.testing.assert_array_equal(got[1], [[2, 3], [0, 1]])


@pytest.mark.parametrize("largest", [0, 1])
def test_top_k_counts_nan_as_the_largest(largest):
    x = np.float32([1, np.nan, -np.inf, np.inf, np.nan])
    model = node_model("TopK", [x, np.array([5])], outputs=2, largest=largest)
    _, positions = interpret(import_onnx(model), {"x0": x, "x1": np.array([5])})
    assert positions.tolist() == ([1, 4, 3, 0, 2] if largest else [2, 0, 3, 1, 4])


def test_top_k_refuses_a_k_that_is_too_large():
    with pytest.raises(UserError, match="k is 9"):
        import_onnx(node_model("TopK", [integers(3), np.array([9])], known=[1], outputs=2))


@pytest.mark.parametrize("sort", [0, 1])
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
@pytest.mark.parametrize("shape", [(1,), (12,), (4, 5)])
def test_unique(sort, dtype, shape):
    run("Unique", integers(*shape, dtype=dtype), outputs=4, sorted=sort)


@pytest.mark.parametrize("sort", [0, 1])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_unique_slices(sort, axis):
    run("Unique", integers(5, 2, 6, most=2), outputs=4, sorted=sort, axis=axis)


def test_unique_of_nan():
    x = np.float32([np.nan, 2, np.nan, 1])
    values, firsts, groups, counts = interpret(import_onnx(node_model("Unique", [x], outputs=4)), {"x0": x})
    np.testing.assert_array_equal(values, [1, 2, np.nan])
    assert (firsts.tolist(), groups.tolist(), counts.tolist()) == ([3, 1, 0], [2, 1, 2, 0], [1, 1, 2])


def test_results_of_declared_shape_are_static():
    model = node_model("TopK", [integers(3, 7), np.array([2])], outputs=2)
    kind = model.graph.output[0].type.tensor_type
    kind.shape.CopyFrom(onnx.helper.make_tensor_value_info("y0", kind.elem_type, [3, 2]).type.tensor_type.shape)
    assert import_onnx(model).outputs[0].shape == (3, 2)

# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""CumSum and CumProd."""

from __future__ import annotations

import numpy as np
import pytest
from support import check_numbers, compare, feeds, interpret, node_model

from tilewright.frontend import import_onnx
from tilewright.reference.errors import InterpreterError

_RANDOM = np.random.default_rng(8)


@pytest.mark.parametrize("known", [[1], []], ids=["known", "run time"])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize(("exclusive", "reverse"), [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_cum_sum(known, axis, exclusive, reverse):
    inputs = [_RANDOM.standard_normal((3, 4, 5)).astype(np.float32), np.array(axis)]
    model = node_model("CumSum", inputs, known=known, exclusive=exclusive, reverse=reverse)
    check_numbers(model, feeds(model, inputs))


@pytest.mark.parametrize("dtype", [np.int32, np.float64, np.float16])
@pytest.mark.parametrize("exclusive", [0, 1])
def test_cum_prod(dtype, exclusive):
    x = np.array([[1, 2, 3], [4, 5, 6]], dtype)
    model = node_model("CumProd", [x, np.array([1])], opset=26, exclusive=exclusive)
    expected = np.cumprod(x, 1, dtype=dtype)
    if exclusive:
        expected = np.concatenate([np.ones((2, 1), dtype), expected[:, :-1]], 1)
    compare(interpret(import_onnx(model), {"x0": x, "x1": np.array([1])}), [expected], 0, 0)


def test_narrow_floats_are_summed_in_f32():
    x = np.full(4096, 1, np.float16)
    model = node_model("CumSum", [x, np.array(0)], known=[1])
    (got,) = interpret(import_onnx(model), {"x0": x})
    assert got[-1] == 4096  # f16 alone stops at 2048


def test_an_axis_out_of_range_stops_the_run():
    x = np.ones((2, 3), np.float32)
    imported = import_onnx(node_model("CumSum", [x, np.array(0)]))
    with pytest.raises(InterpreterError, match="the axis is out of range"):
        interpret(imported, {"x0": x, "x1": np.array(2)})

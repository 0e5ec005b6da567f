# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators that select by data, beside ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from support import check_numbers, feeds, node_model

from tilewright.core.errors import UserError

_RANDOM = np.random.default_rng(7)


def random(*shape):
    return _RANDOM.standard_normal(shape).astype(np.float32)


def run(op, *inputs, **options):
    model = node_model(op, inputs, **options)
    return check_numbers(model, feeds(model, inputs))


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.bool_])
@pytest.mark.parametrize("shape", [(), (7,), (3, 4), (2, 1, 3)])
def test_non_zero(dtype, shape):
    run("NonZero", _RANDOM.integers(0, 2, shape).astype(dtype))


def test_non_zero_may_find_nothing():
    run("NonZero", np.zeros((2, 3), np.float32))


@pytest.mark.parametrize("known", [[1], []], ids=["known", "run time"])
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_compress(known, axis):
    attributes = {} if axis is None else {"axis": axis}
    run("Compress", random(3, 4), np.array([True, False, True]), known=known, **attributes)


def test_compress_refuses_a_long_condition():
    with pytest.raises(UserError, match="the condition has 4 entries"):
        run("Compress", random(3, 2), np.ones(4, bool), axis=0)


@pytest.mark.parametrize("known", [[1], []], ids=["known", "run time"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_one_hot(known, axis):
    indices = np.array([[0, -1, 4], [5, -5, 7]])
    run("OneHot", indices, np.array(5), np.float32([2, 3]), known=known, axis=axis)


def test_one_hot_of_floats():
    run("OneHot", np.float32([0, 2]), np.float32([3]), np.float32([0, 1]))


@pytest.mark.parametrize("time", [0, 1])
def test_reverse_sequence(time):
    lengths = np.array([1, 3, 0, 4] if time == 0 else [2, 4, 1, 3])
    run("ReverseSequence", random(4, 4, 2), lengths, time_axis=time, batch_axis=1 - time)

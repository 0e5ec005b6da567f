# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What counts as a difference, and how large it is."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tilewright.bisection.compare import differences
from tilewright.bisection.stages import steps_of


def one(expected, got, tolerance=None):
    """The difference of one output."""
    return differences(["y"], [np.asarray(expected)], [np.asarray(got)], tolerance)[0]


def test_the_worst_element_is_named():
    expected = np.float32([[1, 2], [4, 8]])
    got = expected.copy()
    got[1, 0] += 0.5
    d = one(expected, got)
    assert (d.index, d.absolute, d.relative, d.count, d.moved) == ((1, 0), 0.5, 0.125, 1, True)
    assert d.ulp == 0.5 / 2.0**-21
    assert "y[1, 0]: 4.5 where 4.0 was: absolute 0.5, relative 0.125" in str(d)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16])
def test_one_ulp(dtype):
    x = np.array([1.5, -3], dtype)
    one_up = (
        np.nextafter(x, np.array(10, dtype)) if dtype is not ml_dtypes.bfloat16 else x + np.array([1, 2], dtype) / 128
    )
    d = one(x, one_up)
    assert d.ulp == 1
    assert not d.moved


def test_what_rounding_explains_is_no_move():
    expected = np.linspace(-1, 1, 100, dtype=np.float32)
    assert not one(expected, expected + np.float32(5e-5)).moved
    assert one(expected, expected + np.float32(5e-4)).moved
    assert not one(expected, expected + np.float32(5e-4), 1e-2).moved


def test_integers_and_bools_are_exact():
    assert one([1, 2, 3], [1, 2, 4]).moved
    assert one([True, False], [True, True]).moved
    assert not one([1, 2], [1, 2]).moved
    assert one([1], [2]).ulp is None


def test_nan_and_infinity():
    assert not one([np.nan, np.inf, 1.0], [np.nan, np.inf, 1.0]).moved
    assert one([np.nan, 1.0], [0.0, 1.0]).moved
    assert one([1.0, 1.0], [np.nan, 1.0]).index == (0,)
    assert one([np.inf, 1.0], [-np.inf, 1.0]).moved


def test_shapes_and_dtypes():
    assert "shape [2] where [3] was" in str(one([1, 2, 3], [1, 2]))
    assert one(np.float32([1]), np.float64([1])).moved
    assert not one(np.zeros((0, 3)), np.zeros((0, 3))).moved


def test_a_pipeline_as_text():
    steps = steps_of("builtin.module(a, b{x=1 y=2,3},func.func(c{z={p,q}}) ,d)")
    assert [step.text for step in steps] == ["a", "b{x=1 y=2,3}", "func.func(c{z={p,q}})", "d"]
    assert [step.name for step in steps] == ["a", "b", "c", "d"]

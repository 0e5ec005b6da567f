# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes that a run brings: cores compute as much as there may be, and what does not count does no harm."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.demo.graph import GraphBuilder

MESH = "mesh:toy8x8"
RNG = np.random.default_rng(11)
ANY: list[Any] = ["n"]


def compiled(g: GraphBuilder, value: str, kind: type, shape: list[Any]) -> Any:
    """A model of which nothing is computed outside of the cores."""
    g.output(value, "z", kind, shape)
    model: Any = tw.compile(g.model(), MESH)
    assert model.shares["outside"] == 0 < model.shares["programs"], model.explain()
    return model


def number(value: int) -> np.ndarray:
    return np.array([value], np.int64)


@pytest.mark.parametrize("count", [0, 1, 5, 12])
def test_elements_that_hold(count: int) -> None:
    """How many there are the data tell: none, some, all."""
    g = GraphBuilder("compress")
    x, holds = g.input("x", np.float32, [12, 3]), g.input("c", np.bool_, [12])
    model = compiled(g, g.op("Compress", x, holds, axis=0), np.float32, [*ANY, 3])
    data, chosen = RNG.standard_normal((12, 3)).astype(np.float32), np.zeros(12, bool)
    chosen[RNG.permutation(12)[:count]] = True
    got = model(data, chosen)[0]
    assert got.shape == (count, 3)
    np.testing.assert_array_equal(got, data[chosen])


@pytest.mark.parametrize("first", [0, 3, -4])
@pytest.mark.parametrize("end", [5, 9, 100])
def test_sums_of_a_slice(first: int, end: int) -> None:
    """A slice between places of a run, divided, and summed along what it is cut along and along the rest."""
    g = GraphBuilder("slice")
    x, y = g.input("x", np.float32, [9, 4]), g.input("y", np.int32, [9, 4])
    ends = g.input("first", np.int64, [1]), g.input("end", np.int64, [1])
    axis = g.weight(np.array([0], np.int64))
    part, divisor = g.op("Slice", x, *ends, axis), g.op("Slice", y, *ends, axis)
    quotient = g.op("Div", g.op("Cast", part, to=6), divisor)
    most = g.op("ReduceMax", quotient, axes=[1], keepdims=0)
    total = g.op("ReduceSum", g.op("Mul", most, most), axis, keepdims=0)
    model = compiled(g, total, np.int32, [])
    data = (100 * RNG.standard_normal((9, 4))).astype(np.float32)
    divisors = RNG.integers(1, 9, (9, 4)).astype(np.int32)
    rows = slice(first, end)
    expected = np.trunc(np.trunc(data[rows]) / divisors[rows]).astype(np.int32)
    squares = expected.max(1) ** 2 if len(expected) else np.zeros(0, np.int32)
    assert int(model(data, divisors, number(first), number(end))[0]) == squares.sum()


@pytest.mark.parametrize("count", [1, 5, 8])
def test_product_along_a_size_of_the_run(count: int) -> None:
    """Behind what counts lie infinities: they have no part in the sums."""
    g = GraphBuilder("product")
    x, w, n = g.input("x", np.float32, [6, 8]), g.input("w", np.float32, [8, 5]), g.input("n", np.int64, [1])
    zero = g.weight(np.array([0], np.int64))
    left = g.op("Slice", x, zero, n, g.weight(np.array([1], np.int64)))
    right = g.op("Slice", w, zero, n, zero)
    model = compiled(g, g.op("MatMul", left, right), np.float32, [6, 5])
    data, weights = (RNG.standard_normal(shape).astype(np.float32) for shape in ((6, 8), (8, 5)))
    data[:, count:] = np.inf
    got = model(data, weights, number(count))[0]
    np.testing.assert_allclose(got, data[:, :count] @ weights[:count], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("pads", [(0, 0, 0, 0), (1, 2, 3, 4), (-1, 0, 2, -2)])
def test_padding(pads: tuple[int, ...]) -> None:
    """Amounts of a run, negative ones cut off; the model says the size of the result."""
    x = RNG.standard_normal((4, 5)).astype(np.float32)
    kept = x[max(0, -pads[0]) : 4 + min(0, pads[2]), max(0, -pads[1]) : 5 + min(0, pads[3])]
    amounts = [(max(0, pads[d]), max(0, pads[2 + d])) for d in range(2)]
    expected = np.pad(kept, amounts, constant_values=7)
    g = GraphBuilder("pad")
    made = g.op("Pad", g.input("x", np.float32, [4, 5]), g.input("pads", np.int64, [4]), g.input("v", np.float32, []))
    model = compiled(g, made, np.float32, list(expected.shape))
    np.testing.assert_array_equal(model(x, np.array(pads, np.int64), np.float32(7))[0], expected)


@pytest.mark.parametrize("axes", [[0], [1], [-1], [0, 2]])
def test_axes_of_a_run(axes: list[int]) -> None:
    """Which dimensions are summed the run says."""
    x = RNG.standard_normal((3, 4, 2)).astype(np.float32)
    expected = x.sum(tuple(axes))
    g = GraphBuilder("axes")
    made = g.op("ReduceSum", g.input("x", np.float32, [3, 4, 2]), g.input("a", np.int64, [len(axes)]), keepdims=0)
    model = compiled(g, made, np.float32, list(expected.shape))
    np.testing.assert_allclose(model(x, np.array(axes, np.int64))[0], expected, rtol=1e-5)


def test_a_wrong_size_is_said() -> None:
    """A size that the model declares and a run breaks is an error, as on any target."""
    g = GraphBuilder("declared")
    x, holds = g.input("x", np.float32, [6]), g.input("c", np.bool_, [6])
    model = compiled(g, g.op("Compress", x, holds, axis=0), np.float32, [2])
    data = np.arange(6, dtype=np.float32)
    np.testing.assert_array_equal(model(data, data > 3)[0], [4, 5])
    with pytest.raises(tw.TilewrightError, match="dimension 0 of the result is not 2"):
        model(data, data > 2)


def test_too_many_points_stay_outside() -> None:
    """Axes of a run over large data would be tried each with each."""
    g = GraphBuilder("points")
    made = g.op("ReduceSum", g.input("x", np.float32, [64, 48]), g.input("a", np.int64, [1]), keepdims=0)
    g.output(made, "z", np.float32, [64])
    model: Any = tw.compile(g.model(), MESH)
    assert "outside of the grid: cores would compute 9,437,184 points, as sizes are those of a run" in model.explain()
    x = RNG.standard_normal((64, 48)).astype(np.float32)
    np.testing.assert_allclose(model(x, number(1))[0], x.sum(1), rtol=1e-4, atol=1e-4)

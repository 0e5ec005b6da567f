# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops of the model that write single elements (scatter, scan, sort) run on the cores of a mesh."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.demo.graph import GraphBuilder

MESH = "mesh:toy8x8"
RNG = np.random.default_rng(3)


def compiled(g: GraphBuilder, *made: tuple[str, type, list[int]]) -> Any:
    """A model whose loops run on the cores."""
    for number, (value, kind, shape) in enumerate(made):
        g.output(value, f"z{number}", kind, shape)
    model: Any = tw.compile(g.model(), MESH)
    text = model.explain()
    assert "each core runs the loop, which writes single elements, on whole tensors" in text
    assert "interpreted outside" not in text
    return model


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("exclusive", [0, 1])
def test_scans(axis: int, exclusive: int) -> None:
    """Of what the grid has made, read by what the grid does next."""
    x = RNG.standard_normal((4, 6)).astype(np.float32)
    g = GraphBuilder("scan")
    given = g.op("Neg", g.input("x", np.float32, [4, 6]))
    made = g.op("CumSum", given, g.weight(np.array(axis, np.int64)), exclusive=exclusive)
    got = compiled(g, (g.op("Abs", made), np.float32, [4, 6]))(x)[0]
    expected = np.abs(np.cumsum(-x, axis) + exclusive * x)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


def scattered(reduction: str) -> Any:
    g = GraphBuilder("scatter")
    x, i, u = g.input("x", np.float32, [4, 6]), g.input("i", np.int64, [2, 6]), g.input("u", np.float32, [2, 6])
    return compiled(g, (g.op("ScatterElements", x, i, u, reduction=reduction), np.float32, [4, 6]))


@pytest.mark.parametrize("reduction", ["none", "add"])
def test_scatter(reduction: str) -> None:
    """The host checks that places lie in the tensor: it reads what the cores have found."""
    x, u = np.zeros((4, 6), np.float32), RNG.integers(1, 9, (2, 6)).astype(np.float32)
    i = np.stack([np.arange(6) % 4, (np.arange(6) + 1) % 4]).astype(np.int64)
    expected = np.zeros_like(x)
    for row, column in np.ndindex(*i.shape):
        expected[i[row, column], column] += u[row, column]
    model = scattered(reduction)
    np.testing.assert_array_equal(model(x, i, u)[0], expected)
    with pytest.raises(tw.TilewrightError, match="an index lies outside of the data"):
        model(x, i + 9, u)


def test_sort_is_counted_once() -> None:
    """How far each element moves only a run knows; a step of which that holds says so."""
    x = RNG.permutation(12).reshape(3, 4).astype(np.float32)
    g = GraphBuilder("sort")
    count = g.weight(np.array([3], np.int64))
    values, places = g.ops("TopK", g.input("x", np.float32, [3, 4]), count, outputs=2)
    model = compiled(g, (values, np.float32, [3, 3]), (places, np.int64, [3, 3]))
    got = model(x)
    order = np.argsort(-x, axis=1, kind="stable")[:, :3]
    np.testing.assert_array_equal(got[1], order)
    np.testing.assert_array_equal(got[0], np.take_along_axis(x, order, 1))
    assert "steps with ? stand in loops or branches of which a run decides: counted once" in model.explain()


def test_each_turn_is_counted() -> None:
    """Twice the elements, twice the cycles."""
    spent = []
    for size in (64, 128):
        g = GraphBuilder("long")
        made = g.op("CumSum", g.input("x", np.float32, [size]), g.weight(np.array(0, np.int64)))
        model = compiled(g, (made, np.float32, [size]))
        spent.append(sum(one.details["cycles"] for one in model.kernels if one.symbol == "local"))
    assert spent[0] > 64 * 4 and 1.9 < spent[1] / spent[0] < 2.1


def test_tensors_that_no_core_holds_stay_outside() -> None:
    g = GraphBuilder("large")
    made = g.op("CumSum", g.input("x", np.float32, [9000]), g.weight(np.array(0, np.int64)))
    g.output(made, "y", np.float32, [9000])
    text = tw.compile(g.model(), MESH).explain()
    assert "outside of the grid: it writes single elements of tensors of 72000 bytes, and a core has" in text

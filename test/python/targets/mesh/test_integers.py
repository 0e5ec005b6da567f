# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of integers on a mesh: exact numbers, whatever the padding of ragged blocks and their zero points."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.demo.graph import GraphBuilder

MESH = "mesh:toy8x8"
RNG = np.random.default_rng(7)
SIZES = [(1, 13, 5), (3, 53, 37), (61, 45, 29)]


def compiled(g: GraphBuilder, made: str, kind: type, shape: list[int]) -> Any:
    """A model of which nothing is computed outside of the grid."""
    g.output(made, "z", kind, shape)
    model: Any = tw.compile(g.model(), MESH)
    assert "interpreted outside" not in model.explain()
    return model


@pytest.mark.parametrize("is_weight", [False, True])
@pytest.mark.parametrize(("left", "right"), [(np.uint8, np.int8), (np.int8, np.uint8)])
@pytest.mark.parametrize(("m", "k", "n"), SIZES)
def test_zero_points(m: int, k: int, n: int, left: type, right: type, is_weight: bool) -> None:
    """Of either operand, for all of it or for each column; none of a padding is."""
    x, y = (RNG.integers(np.iinfo(kind).min, np.iinfo(kind).max + 1, shape).astype(kind)
            for kind, shape in ((left, (m, k)), (right, (k, n))))  # fmt: skip
    zero_x, zero_y = np.array(101, left), RNG.integers(1, 99, n).astype(right)
    g = GraphBuilder("integers")
    a = g.input("x", left, [m, k])
    b = g.weight(y) if is_weight else g.input("y", right, [k, n])
    made = g.op("MatMulInteger", a, b, g.weight(zero_x), g.weight(zero_y))
    expected = (x.astype(np.int32) - 101) @ (y.astype(np.int32) - zero_y.astype(np.int32))
    model = compiled(g, made, np.int32, [m, n])
    np.testing.assert_array_equal(model(*((x,) if is_weight else (x, y)))[0], expected)
    if is_weight and m > 16:  # of few rows, which one program takes at once, decoded ones are faster
        assert f"{k}x{n}xi8" in model.explain()


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize(("m", "k", "n"), SIZES)
def test_products_wrap(m: int, k: int, n: int, kind: type) -> None:
    """Beyond what the type holds."""
    limit = np.iinfo(kind).max // 7
    x, y = (RNG.integers(-limit, limit, shape).astype(kind) for shape in ((m, k), (k, n)))
    g = GraphBuilder("wide")
    made = g.op("MatMul", g.input("x", kind, [m, k]), g.input("y", kind, [k, n]))
    np.testing.assert_array_equal(compiled(g, made, kind, [m, n])(x, y)[0], x @ y)


@pytest.mark.parametrize(("channels", "filters"), [(3, 5), (32, 24)])
def test_windows(channels: int, filters: int) -> None:
    """In place and as a product; the border is the zero point, not 0."""
    x = RNG.integers(0, 256, (1, channels, 9, 7)).astype(np.uint8)
    w = RNG.integers(-128, 128, (filters, channels, 3, 3)).astype(np.int8)
    g = GraphBuilder("windows")
    image = g.input("x", np.uint8, list(x.shape))
    made = g.op("ConvInteger", image, g.weight(w), g.weight(np.array(120, np.uint8)), pads=[1, 1, 1, 1])
    around = np.pad(x.astype(np.int64) - 120, [(0, 0), (0, 0), (1, 1), (1, 1)])
    seen = np.lib.stride_tricks.sliding_window_view(around, (3, 3), (2, 3))
    expected = np.einsum("bchwij,fcij->bfhw", seen, w.astype(np.int64)).astype(np.int32)
    np.testing.assert_array_equal(compiled(g, made, np.int32, list(expected.shape))(x)[0], expected)

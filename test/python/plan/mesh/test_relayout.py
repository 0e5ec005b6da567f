# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors go from one layout to another, hop by hop."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from python.plan.mesh.paths import busiest, distances
from tilewright.core.errors import UnsupportedError
from tilewright.plan.mesh.relayout import Placing, Relayout, Spread, relayout
from tilewright.sim.coremesh.functional import run


def placings() -> list[Placing]:
    """All of two dimensions that are whole somewhere."""
    kinds = {
        axis: [None, Spread(axis), Spread(axis, "ring"), Spread(axis, rotate=2), Spread(axis, "ring", skewed=True)]
        for axis in ("y", "x")
    }
    pairs = [pair for axes in ("yx", "xy") for pair in product(kinds[axes[0]], kinds[axes[1]])]
    return [
        Placing(pair)
        for pair in pairs
        if len({one.order for one in pair if one}) < 2 and sum(bool(one and one.skewed) for one in pair) < 2
    ]


@pytest.mark.parametrize(
    ("grid", "count"), [((3, 3), 8), ((2, 3), 8), ((1, 4), 4), pytest.param((5, 3), 60, marks=pytest.mark.slow)]
)
def test_values_stay(grid: tuple[int, int], count: int):
    """Any pair of layouts, of sizes that are no multiples of the grid's."""
    rng, every = np.random.default_rng(sum(grid)), placings()
    for _ in range(count):
        before, after = (every[int(rng.integers(len(every)))] for _ in range(2))
        x = rng.integers(-99, 99, (7, 10)).astype(np.int32)
        program = relayout(Relayout(x.shape, *grid, before, after, np.int32))
        np.testing.assert_array_equal(run(program, {"x": x})["y"], x, f"{before} to {after}")


def test_tiles_go_hop_by_hop():
    """However far: two flows each way are all that a router sees, and a core holds no panel."""
    rows, columns = Spread("y", "ring"), Spread("x", "ring")
    for side in (4, 9):
        turned = relayout(Relayout((3 * side, side), side, side, Placing((rows, columns)), Placing((columns, rows))))
        assert distances(turned) == {1}
        assert busiest(turned, "x") <= 4 and busiest(turned, "y") <= 4
        assert {(buffer.shape, buffer.slots <= 2) for buffer in turned.buffers} == {((3, 1), True)}


def test_nothing_moves_between_equal_layouts():
    here = Placing((Spread("y", skewed=True), Spread("x")))
    assert relayout(Relayout((5, 7), 3, 3, here, here)).body == ()


def test_layouts_without_a_program():
    here, skewed = Placing((Spread("y"), Spread("x"))), Spread("y", skewed=True)
    for there, message in (
        (Placing((skewed, Spread("x", skewed=True))), "most of the tensor lies nowhere"),
        (Placing((Spread("y", "ring"), Spread("x"))), "Use `ring` on both axes or on none"),
    ):
        with pytest.raises(UnsupportedError, match=message):
            relayout(Relayout((4, 4), 2, 2, here, there))

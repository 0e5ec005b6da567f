# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions and broadcasts along lines and grids, of all kinds and lengths."""

from __future__ import annotations

import numpy as np
import pytest

from python.plan.mesh.paths import distances
from tilewright.core.errors import UserError
from tilewright.plan.mesh.allreduce import Reduce, broadcast, reduction, roots
from tilewright.plan.mesh.fit_program import fit_program
from tilewright.plan.mesh.reduction import Scheme
from tilewright.sim.coremesh.checks.report import check_program
from tilewright.sim.coremesh.functional import run
from tilewright.sim.coremesh.machine import machine

LENGTHS = [1, 2, 3, 4, 5, 6, 7, 8, 12, 15, 31]
SCHEMES = [
    Scheme("star"),
    Scheme("chain"),
    Scheme("tree"),
    Scheme("two_phase"),
    *(Scheme("k_tree", levels) for levels in (1, 2, 3, 4)),
    Scheme("ring"),
]


def vectors(height: int, width: int, elements: int) -> np.ndarray:
    return np.random.default_rng(height * width).integers(-99, 100, (height, width, elements)).astype(np.int32)


@pytest.mark.parametrize("combine", ["add", "max"])
@pytest.mark.parametrize("scheme", SCHEMES, ids=lambda scheme: f"{scheme.kind}{scheme.levels}")
@pytest.mark.parametrize("length", LENGTHS)
def test_allreduce_along_one_axis(length: int, scheme: Scheme, combine: str):
    axis = "y" if length % 2 else "x"
    shape = (length, 2) if axis == "y" else (2, length)
    x = vectors(*shape, 5)
    what = Reduce(*shape, 5, np.int32, combine, (axis,), (scheme,))  # type: ignore[arg-type]
    done = run(reduction(what), {"x": x})["x"]
    where = 0 if axis == "y" else 1
    expected = (np.add if combine == "add" else np.maximum).reduce(x, axis=where, keepdims=True)
    np.testing.assert_array_equal(done, np.broadcast_to(expected, x.shape))


@pytest.mark.parametrize("scheme", SCHEMES[:-1], ids=lambda scheme: f"{scheme.kind}{scheme.levels}")
@pytest.mark.parametrize("grid", [(1, 1), (3, 5), (6, 4), (2, 9)])
def test_reduce_of_a_grid(grid: tuple[int, int], scheme: Scheme):
    """One axis, then the other: the result is where both roots meet."""
    x = vectors(*grid, 3)
    what = Reduce(*grid, 3, np.int32, "add", ("x", "y"), (scheme, scheme), everywhere=False)
    done = run(reduction(what), {"x": x})["x"]
    at = roots(what)
    np.testing.assert_array_equal(done[at["y"], at["x"]], x.sum((0, 1)))
    both = Reduce(*grid, 3, np.int32, "add", ("y", "x"), (scheme, Scheme("chain")))
    done = run(reduction(both), {"x": x})["x"]
    np.testing.assert_array_equal(done, np.broadcast_to(x.sum((0, 1)), x.shape))


@pytest.mark.parametrize("order", ["ring", "linear"])
@pytest.mark.parametrize("elements", [1, 4, 7, 30])
def test_ring_in_chunks(order: str, elements: int):
    """Vectors shorter than the line, of its length, and longer; on the folded ring nothing goes further than 2."""
    x = vectors(2, 7, elements)
    program = reduction(Reduce(2, 7, elements, np.int32, schemes=(Scheme("ring"),), order=order))
    np.testing.assert_array_equal(run(program, {"x": x})["x"], np.broadcast_to(x.sum(1, keepdims=True), x.shape))
    assert max(distances(program)) == (2 if order == "ring" else 6)


@pytest.mark.parametrize("root", [(0, 0), (3, 1), (1, 4)])
def test_broadcast_of_a_grid(root: tuple[int, int]):
    x = vectors(4, 5, 3)
    done = run(broadcast(4, 5, 3, ("x", "y"), root[::-1], np.int32), {"x": x})["x"]
    np.testing.assert_array_equal(done, np.broadcast_to(x[root], x.shape))


def test_roots_as_published():
    """Of G groups of S cores: group roots at S / 2, the overall root at (G / 2) S + S / 2 (WaferLLM's code)."""
    for length, groups in [(240, 15), (256, 16), (360, 18), (512, 32), (660, 22), (720, 24)]:
        size = length // groups
        what = Reduce(1, length, 1, schemes=(Scheme("k_tree", 2, (groups,)),))
        assert roots(what)["x"] == groups // 2 * size + size // 2


def stages(length: int, levels: int) -> tuple[int, int]:
    """Software stages that the checks find on the program, level after level, and its routes."""
    program = reduction(Reduce(1, length, 1, schemes=(Scheme("k_tree", levels),)))
    which = machine("wse2", "ideal")
    found = {one.route: one.stages for one in check_program(fit_program(program, which)[0], which).distances}
    ends = ["", *map(str, range(1, levels))]
    return sum(max(found[f"x_left{end}"], found[f"x_right{end}"]) for end in ends), len(found)


@pytest.mark.parametrize("length", [64, 81, 100, 360, 720])
@pytest.mark.parametrize("levels", [1, 2, 3])
def test_stages_of_a_k_tree(length: int, levels: int):
    """K / 2 times the K-th root of N, up to rounding of group sizes; two routes per level and one to broadcast."""
    found, routes = stages(length, levels)
    assert abs(found - levels / 2 * length ** (1 / levels)) <= levels
    assert routes == 2 * levels + 1


def test_sums_round_in_the_order_of_the_chains():
    """From the ends to the middle: the order is the algorithm's, not NumPy's."""
    x = np.array([1e8, 1.0, -1e8, 2.0, 3.0], np.float32)[None, :, None]
    done = run(reduction(Reduce(1, 5, 1, np.float32, schemes=(Scheme("k_tree", 1),))), {"x": x})["x"]
    left, right, own = np.float32(1e8) + np.float32(1), np.float32(3) + np.float32(2), np.float32(-1e8)
    assert done[0, 0, 0] == own + right + left


@pytest.mark.parametrize("groups", [(5,), (0,), (2, 2)])
def test_groups_that_do_not_fit(groups: tuple[int, ...]):
    with pytest.raises(UserError, match="groups"):
        reduction(Reduce(1, 6, 1, schemes=(Scheme("k_tree", 2, groups),)))


def test_what_cannot_be_reduced():
    with pytest.raises(UserError, match="one axis"):
        Reduce(2, 2, 3, axes=("x", "y"), schemes=(Scheme("ring"), Scheme("ring")))
    with pytest.raises(UserError, match="'product'"):
        Reduce(2, 2, 3, combine="product")  # type: ignore[arg-type]
    with pytest.raises(UserError, match="butterfly"):
        Scheme("butterfly")  # type: ignore[arg-type]

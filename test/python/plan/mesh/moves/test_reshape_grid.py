# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A matrix goes from the blocks of one grid to those of another."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from python.plan.mesh.paths import paths
from tilewright.core.errors import UserError
from tilewright.plan.mesh.fit_program import fit_program
from tilewright.plan.mesh.moves.reshape_grid import Reshape, reshape_grid
from tilewright.sim.coremesh.expressions import Const, Dim
from tilewright.sim.coremesh.functional import run
from tilewright.sim.coremesh.machine import machine
from tilewright.sim.coremesh.program import Order
from tilewright.sim.coremesh.timing import time_program

GRIDS = [(1, 1), (1, 4), (3, 3), (6, 4), (4, 7)]


@pytest.mark.parametrize("size", [(13, 17), (5, 3)])
@pytest.mark.parametrize("to_grid", GRIDS)
@pytest.mark.parametrize("from_grid", GRIDS)
def test_values_stay(from_grid: tuple[int, int], to_grid: tuple[int, int], size: tuple[int, int]):
    """Also where cores of either grid hold padding alone."""
    x = np.random.default_rng(0).integers(-99, 99, size).astype(np.int32)
    np.testing.assert_array_equal(run(reshape_grid(Reshape(*size, from_grid, to_grid, np.int32)), {"x": x})["x"], x)


@pytest.mark.parametrize("skewed", [False, True])
@pytest.mark.parametrize(
    ("from_grid", "to_grid"), [((5, 5), (3, 3)), ((6, 4), (3, 4)), ((7, 1), (2, 1)), ((4, 4), (1, 3))]
)
def test_operands_of_a_product(from_grid: tuple[int, int], to_grid: tuple[int, int], skewed: bool):
    """Along folded rings, and aligned, as a prompt's layers leave weights and caches."""
    x = np.random.default_rng(1).integers(-99, 99, (11, 13)).astype(np.int32)
    what = Reshape(11, 13, from_grid, to_grid, np.int32, "ring", skewed)
    np.testing.assert_array_equal(run(reshape_grid(what), {"x": x})["x"], x)


@pytest.mark.parametrize(
    ("side", "to_side", "size"), [(5, 3, (11, 13)), (6, 6, (6, 9)), (4, 1, (3, 5)), (7, 4, (29, 8))]
)
@pytest.mark.parametrize("order", ["ring", "linear"])
def test_axes_exchanged(order: Order, side: int, to_side: int, size: tuple[int, int]):
    """Skewed operands come to exchanged axes without a transposition of their own; several matrices at once."""
    x = np.random.default_rng(2).integers(-99, 99, (2, *size)).astype(np.int32)
    what = Reshape(*size, (side, side), (to_side, to_side), np.int32, order, skewed=True, copies=2, turned=True)
    program = reshape_grid(what)
    np.testing.assert_array_equal(run(program, {"x": x})["x"], x)
    place = program.outputs[0]
    assert place.block == (Const(0), Dim(1), Dim(0))
    with pytest.raises(UserError, match="not skewed"):
        replace(what, skewed=False)


@pytest.mark.parametrize(
    "what",
    [
        Reshape(22, 8, (4, 3), (2, 4), blocks=((6, 6), (12, 5))),
        Reshape(29, 4, (7, 3), (6, 3), skewed=True, blocks=((8, 5), (6, 2))),
        Reshape(19, 4, (6, 6), (1, 2), order="ring", skewed=True, turned=True),
        Reshape(25, 25, (8, 8), (2, 5), order="ring", skewed=True, turned=True, blocks=((4, 4), (6, 13))),
        Reshape(11, 16, (8, 8), (3, 8), order="ring", skewed=True, turned=True),
    ],
)
def test_cores_of_padding_wait_for_nothing(what: Reshape):
    """Blocks that reach behind the matrix on both sides; grids that are not square, and turned; more cores than parts.

    A core took padding for a part that comes, and blocks of turned matrices had the sizes of axes not exchanged.
    """
    what = replace(what, dtype=np.int32)
    x = np.random.default_rng(3).integers(-99, 99, (what.m, what.n)).astype(np.int32)
    np.testing.assert_array_equal(run(fit_program(reshape_grid(what), machine("wse2"))[0], {"x": x})["x"], x)


def test_blocks_of_exchanged_axes():
    """Rows of a turned matrix lie along x of the second grid."""
    what = Reshape(11, 16, (8, 8), (3, 8), skewed=True, turned=True)
    assert what.tiles == ((2, 2), (2, 6))
    with pytest.raises(UserError, match="make them larger"):
        replace(what, blocks=((2, 2), (4, 2)))


def test_a_ring_does_not_grow():
    with pytest.raises(UserError, match="must lie within the first"):
        Reshape(4, 4, (2, 2), (2, 3), order="ring")


def test_pieces_hop_side_by_side():
    """A round costs one switch of tasks, however many pieces a core hands on."""
    program = reshape_grid(Reshape(30, 1, (6, 1), (3, 1)))
    assert time_program(program, machine("wse2", "calibrated")).split.overhead == 3 * 295


def test_nothing_moves_between_equal_grids():
    assert paths(reshape_grid(Reshape(13, 9, (3, 4), (3, 4)))) == set()


def test_routes_fit_a_router():
    """Blocks that grow go one way: two flows per axis at a router; all checks pass, also beside padding."""
    program = reshape_grid(Reshape(13, 17, (8, 8), (5, 4)))
    fitted, report = fit_program(program, machine("wse2"))
    assert report.paths == (2, 2) and report.colors == 4 and report.switched == 1
    assert {one.hops for one in report.distances} == {1}
    x = np.random.default_rng(0).normal(size=(13, 17)).astype(np.float32)
    np.testing.assert_array_equal(run(fitted, {"x": x})["x"], x)


def test_grids_without_cores():
    with pytest.raises(UserError, match="1 or more"):
        Reshape(4, 4, (0, 2), (2, 2))

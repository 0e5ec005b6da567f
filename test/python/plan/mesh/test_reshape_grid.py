# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A matrix goes from the blocks of one grid to those of another."""

from __future__ import annotations

import numpy as np
import pytest

from python.plan.mesh.paths import paths
from tilewright.core.errors import UserError
from tilewright.plan.mesh.fit_program import fit_program
from tilewright.plan.mesh.reshape_grid import Reshape, reshape_grid
from tilewright.sim.coremesh.functional import run
from tilewright.sim.coremesh.machine import machine

GRIDS = [(1, 1), (1, 4), (3, 3), (6, 4), (4, 7)]


@pytest.mark.parametrize("size", [(13, 17), (5, 3)])
@pytest.mark.parametrize("to_grid", GRIDS)
@pytest.mark.parametrize("from_grid", GRIDS)
def test_values_stay(from_grid: tuple[int, int], to_grid: tuple[int, int], size: tuple[int, int]):
    """Also where cores of either grid hold padding alone."""
    x = np.random.default_rng(0).integers(-99, 99, size).astype(np.int32)
    np.testing.assert_array_equal(run(reshape_grid(Reshape(*size, from_grid, to_grid, np.int32)), {"x": x})["x"], x)


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

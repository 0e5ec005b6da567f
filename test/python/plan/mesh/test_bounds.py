# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions and broadcasts of grids beside what no algorithm can pass (HPDC 2024, section 7); WSE-2, ideal."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.plan.mesh.allreduce import Reduce, broadcast, reduction, roots
from tilewright.plan.mesh.reduction import Scheme
from tilewright.sim.coremesh.machine import machine
from tilewright.sim.coremesh.timing import time_program

IDEAL = machine("wse2")
STAGE = 2 * IDEAL.mesh.ramp_cycles + 1
GRIDS = [(2, 2, 1), (5, 7, 4), (16, 3, 9), (13, 29, 100), (32, 32, 1), (32, 32, 500)]
SCHEMES = [*(Scheme(kind) for kind in ("star", "chain", "tree", "two_phase")), Scheme("k_tree", 1), Scheme("k_tree", 2)]


def links(height: int, width: int) -> int:
    """Of a grid, both ways."""
    return 2 * (height * (width - 1) + width * (height - 1))


@pytest.mark.parametrize(("height", "width", "wavelets"), GRIDS)
def test_reduce_of_a_grid(height: int, width: int, wavelets: int):
    """Never below max(B, E / Nl + L) + 2 T_R + 1, where each core's B wavelets cross a link at least.

    Links are those of the whole grid, L the way from the farthest corner to the root that the algorithm has. The best
    is within twice two stages and two passes of the bound: one per axis, as no vector is cut.
    """
    found = []
    for scheme in SCHEMES:
        what = Reduce(height, width, wavelets, np.float32, axes=("x", "y"), schemes=(scheme, scheme), everywhere=False)
        root = roots(what)
        distance = max(root["x"], width - 1 - root["x"]) + max(root["y"], height - 1 - root["y"])
        energy = wavelets * (height * width - 1)
        bound = max(wavelets, energy / links(height, width) + distance) + STAGE
        timing = time_program(reduction(what), IDEAL)
        assert timing.cycles >= bound, scheme
        assert timing.byte_hops >= 4 * energy, scheme
        found.append(timing.cycles / bound)
    assert min(found) <= 4.5


@pytest.mark.parametrize(("height", "width", "wavelets"), GRIDS)
@pytest.mark.parametrize("corner", [True, False])
def test_broadcast_of_a_grid(height: int, width: int, wavelets: int, corner: bool):
    """B + L + 2 T_R + 1 is the least; columns begin once the core above has all of B, which takes a stage more.

    Each link is crossed once at most: those of all rows, as each row's core at the root's place sends.
    """
    root = (0, 0) if corner else (width // 2, height // 2)
    program = broadcast(height, width, wavelets, ("x", "y"), root, np.float32)
    distance = max(root[0], width - 1 - root[0]) + max(root[1], height - 1 - root[1])
    timing = time_program(program, IDEAL)
    assert timing.cycles == (wavelets + distance + STAGE) + wavelets + STAGE
    assert timing.byte_hops == 4 * wavelets * links(height, width) // 2

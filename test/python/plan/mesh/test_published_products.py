# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of the sizes that were published for WSE-2, on whole grids (tier T1)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from bench.mesh.layers import decode
from tilewright.plan.mesh.fit_program import fit_program
from tilewright.plan.mesh.product import Product
from tilewright.plan.mesh.shifting.shifted_product import shifted_product
from tilewright.sim.coremesh.machine import machine
from tilewright.sim.coremesh.timing import time_program

GRIDS = (360, 540, 720)
#: Of WaferLLM's scripts for figure 9: "2K", "4K" and "8K".
SIZES = (2160, 4320, 8640)


def test_trends_of_figure_9():
    """Where rounds are not bound by products MeshGEMM is ahead, elsewhere as fast; in lock-step, preset ideal.

    2K: from 540 to 720 rows MeshGEMM is flat while Cannon's rounds grow with the line. At 720 rows Cannon's efficiency
    is below 50 % at all three sizes, MeshGEMM's above 70 % but for 2K. SUMMA on smaller grids: `test_times.py`.
    """
    ideal, efficiency = machine("wse2"), {}
    for algorithm in ("meshgemm", "cannon"):
        multiply = partial(shifted_product, algorithm=algorithm)
        for size in SIZES:
            for side in GRIDS:
                program = multiply(Product(size, size, size, side, side, np.dtype("float16")))
                taken = time_program(program, ideal, sync="lockstep", loads=False).cycles
                macs = size**3 / side**2 / ideal.macs_per_cycle(16)
                efficiency[algorithm, size, side] = macs / taken
    times = {key: (key[1] ** 3 / key[2] ** 2) / value for key, value in efficiency.items()}
    assert times["meshgemm", 2160, 720] == pytest.approx(times["meshgemm", 2160, 540], rel=0.02)
    assert times["cannon", 2160, 720] > 1.7 * times["cannon", 2160, 540] > 3 * times["cannon", 2160, 360]
    for size in SIZES:
        assert all(efficiency["meshgemm", size, side] >= efficiency["cannon", size, side] for side in GRIDS)
        assert efficiency["cannon", size, 720] < 0.5
    assert min(efficiency["meshgemm", size, 720] for size in SIZES[1:]) > 0.7


def test_whole_grids_are_fitted_and_checked():
    """Colors, addresses and the checks of 518,400 cores, all of which are counted and none kept: in a second or two.

    A core holds two tiles of either operand and one of the result.
    """
    wafer = machine("wse2")
    program, report = fit_program(shifted_product(Product(8640, 8640, 8640, 720, 720, np.dtype("float16"))), wafer)
    assert (report.busy, report.colors, report.deadlock.kind) == (720 * 720, 6, "accept")
    assert report.classes[0].peak == 5 * 12 * 12 * 2
    assert all(route.colors for route in program.routes)
    layer = fit_program(decode("8B", 660, 4096), wafer)[1]
    assert (layer.busy, layer.deadlock.kind) == (660 * 660, "accept")
    assert layer.classes[0].peak < layer.capacity


def test_single_precision_of_33000():
    """349.0 TFLOP/s on 750 x 750 cores at 0.85 GHz (SC24, Workshop IA3), with cycles per multiply-add from 100 x 100.

    The rate that was published for all grids of equal tiles (weak scaling of 1.00) gives the overhead of the small
    grid; alignment, and operands that move, must then not add up on the whole wafer. Without it the ideal machine is
    a bound.
    """
    published, tile = 349.0e12, 44
    ideal = machine("wse2", clock=0.85e9)

    def rate(side: int, per_mac: float) -> float:
        one = replace(ideal, overheads=replace(ideal.overheads, per_mac=per_mac))
        size = tile * side
        product = Product(size, size, size, side, side, np.dtype("float32"))
        return 2 * size**3 / time_program(shifted_product(product), one, loads=False).seconds

    of_a_core = published / 750**2
    per_mac = 2 * ideal.clock / of_a_core
    for _ in range(3):  # what is not a multiply-add is a small part
        per_mac *= rate(100, per_mac) / (of_a_core * 100**2)
    assert rate(100, per_mac) == pytest.approx(of_a_core * 100**2, rel=1e-4)
    assert rate(750, per_mac) == pytest.approx(published, rel=0.1)
    assert published < rate(750, 0.0)

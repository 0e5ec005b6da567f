# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of the sizes of WaferLLM's figure 9, on its grids, by four algorithms under three semantics.

The figure's values are printed nowhere; what is compared is the order of the algorithms. Half precision, preset
`ideal`, whole grids: no smaller one stands for another. Memory is not checked: all-gather's panels fit no core.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, get_args

from bench.mesh.layers import HALF
from tilewright.plan.mesh.multicast_product import all_gather_product, summa
from tilewright.plan.mesh.product import Product
from tilewright.plan.mesh.shifting.shifted_product import shifted_product
from tilewright.sim.coremesh.machine import machine
from tilewright.sim.coremesh.program import Program
from tilewright.sim.coremesh.timing import Sync, time_program

#: "2K", "4K" and "8K", as the released scripts have them, and the grids.
SIZES, SIDES = (2160, 4320, 8640), (180, 360, 540, 720)
ALGORITHMS: dict[str, Callable[[Product], Program]] = {
    "meshgemm": shifted_product,
    "cannon": partial(shifted_product, algorithm="cannon"),
    "summa": summa,
    "all_gather": all_gather_product,
}


def rows(side: int, algorithms: Sequence[str] = tuple(ALGORITHMS)) -> list[dict[str, Any]]:
    """Rows of cycles, one per size and semantics, on one grid; with the cycles that multiply-adds alone take.

    SUMMA's and all-gather's rounds depend on their number: no period is found, and each is simulated.
    """
    ideal, found = machine("wse2"), []
    for size in SIZES:
        tile = size // side
        for sync in get_args(Sync):
            row: dict[str, Any] = {"what": f"{size} x {size} x {size}, {side} x {side}, {sync}"}
            row["multiply_adds"] = side * -(-(tile**3) // ideal.macs_per_cycle(16))
            found.append(row | {name: cycles(name, size, side, sync) for name in algorithms})
    return found


def cycles(algorithm: str, size: int, side: int, sync: Sync) -> float:
    """Of one product."""
    program = ALGORITHMS[algorithm](Product(size, size, size, side, side, HALF))
    return time_program(program, machine("wse2"), sync=sync, loads=False).cycles

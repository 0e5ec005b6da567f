# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a product and a matrix times a vector cost as the grid grows: real programs, timed on all cores (tier T1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.plan.mesh.studies.workload import Part
from tilewright.report.html import Raw, join, section, table, tag
from tilewright.report.plot import Series, plot
from tilewright.sim.coremesh.machine import Machine
from tilewright.sim.coremesh.profile.mesh_report import told
from tilewright.sim.coremesh.profile.program_profile import conditions
from tilewright.sim.coremesh.timing import Sync, Timing, time_program

#: Cores a side of the grids that are timed.
SIDES = (8, 16, 32, 64, 128, 256, 512, 750, 1000)
PARTS = (Part("GEMM", "gemm", 8192, 8192, 8192), Part("GEMV", "gemv", 1, 8192, 8192))


def scale(
    machine: Machine,
    parts: Sequence[Part] = PARTS,
    sides: Sequence[int] = SIDES,
    *,
    dtype: str = "float16",
    sync: Sync = "dataflow",
) -> list[dict[str, Any]]:
    """Return the cost of each part on square grids of ``sides``, as plain values.

    Args:
        machine: whose cores they are; it is as large as the grid, and memory is no limit, so that one size can be
            followed over all grids.

    Raises:
        UserError: a side is below 1.
    """
    rows = []
    for part in parts:
        for side in sides:
            large = machine.replace(height=side, width=side)
            timing = time_program(part.program(side, side, dtype), large, sync=sync, loads=False)
            rows.append(_row(part, side, timing))
    return rows


def _row(part: Part, side: int, timing: Timing) -> dict[str, Any]:
    return {
        "part": part.name,
        "kind": part.kind,
        "sizes": [part.m, part.k, part.n],
        "side": side,
        "cycles": timing.cycles,
        "seconds": timing.seconds,
        "split": vars(timing.split),
        "mac_rate": part.m * part.k * part.n / timing.cycles / side**2,
        **conditions(timing),
    }


def scale_section(rows: Sequence[dict[str, Any]]) -> Raw:
    """The plot and the table of what `scale` returns, for a page."""
    names = list(dict.fromkeys(row["part"] for row in rows))
    series = []
    for name in names:
        mine = [row for row in rows if row["part"] == name]
        series.append(Series(name, tuple((row["side"] ** 2, row["cycles"]) for row in mine)))
        moving = [(row["side"] ** 2, row["cycles"] - row["split"]["compute"]) for row in mine]
        series.append(Series(f"{name}, all but compute", tuple(point for point in moving if point[1] > 0), faint=True))
    body = [
        (
            join([tag("code", row["part"]), tag("small", " × ".join(map(str, row["sizes"])))]),
            f"{row['side']} × {row['side']}",
            f"{row['cycles']:,.0f}",
            *(f"{value:,.0f}" for value in row["split"].values()),
            f"{row['mac_rate']:.3g}",
        )
        for row in rows
    ]
    head = ("product", "cores", "cycles", "compute", "communication", "overhead", "idle", "multiply-adds per cycle")
    about = told(rows[0] | {"extrapolated": any(row["extrapolated"] for row in rows)}) if rows else ""
    note = f"{about} One size on growing grids, whose cores may have any memory. Multiply-adds: per core, on average."
    shown = plot(series, "cores", "cycles", log_x=True, log_y=True)
    return section("Scale", *([shown] if shown else []), table(head, body, numeric=range(1, 8)), note=note)

# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What one program costs a machine: cycles and what they go to, links, memory, routes, energy."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilewright.report.heat_map import shrink
from tilewright.sim.coremesh.checks.memory import memory_map
from tilewright.sim.coremesh.checks.report import Report, check_program
from tilewright.sim.coremesh.machine import Machine
from tilewright.sim.coremesh.program import Program
from tilewright.sim.coremesh.timing import Sync, Timing, time_program

#: What a link's number stands for, in the order of `Timing.loads`.
DIRECTIONS = ("east", "west", "south", "north")
#: Cells a side of a map among plain values, at most.
MAP_CELLS = 64


@dataclass(frozen=True)
class ProgramProfile:
    """One program on one machine.

    Attributes:
        timing: cycles, their split, the load of each link, with preset, clock, semantics and tier.
        plmr: what it takes of the machine, checked.
        memory: bytes that each core holds at its fullest, without code, int64 [height, width].
        times: how often it runs in one call of the whole.
        where: what of a model it computes; empty: not known.
    """

    program: str
    timing: Timing
    plmr: Report
    memory: np.ndarray = field(repr=False)
    times: int = 1
    where: str = ""

    @property
    def busiest(self) -> tuple[int, tuple[int, int], str]:
        """The link that most bytes cross: bytes, the core that it leaves (y, x), its direction."""
        loads = self.timing.loads
        direction, y, x = np.unravel_index(int(loads.argmax()), loads.shape)
        return int(loads[direction, y, x]), (int(y), int(x)), DIRECTIONS[int(direction)]

    @property
    def link_use(self) -> float:
        """Share of the time in which that link moves data, by the rate that the machine gives it for long messages."""
        able = self.timing.cycles * self.timing.machine.mesh.link_bytes_per_cycle
        return self.busiest[0] / able if able else 0.0

    @property
    def longest_hop(self) -> int:
        """Hops of the longest path."""
        return max((route.hops for route in self.plmr.distances), default=0)

    @property
    def stages(self) -> int:
        """Software stages of the longest chain of relays; 1 where data go straight, 0 where none do."""
        return max((route.stages for route in self.plmr.distances), default=0)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON. Maps are of at most `MAP_CELLS` a side: the largest of what a cell stands for."""
        timing, plmr = self.timing, self.plmr
        load, core, direction = self.busiest
        return {
            "program": self.program,
            "times": self.times,
            "where": self.where,
            **conditions(timing),
            "cycles": timing.cycles,
            "seconds": timing.seconds,
            "split": dataclasses.asdict(timing.split),
            "joules": timing.joules if timing.machine.mesh.watts else None,
            "grid": [int(size) for size in timing.ends.shape],
            "work": {"busy": plmr.busy, **dict(zip(("least", "mean", "most"), plmr.work, strict=True))},
            "links": {
                "byte_hops": timing.byte_hops,
                "busiest": {"bytes": load, "core": list(core), "direction": direction, "use": self.link_use},
            },
            "routes": [dataclasses.asdict(route) for route in plmr.distances],
            "longest_hop": self.longest_hop,
            "stages": self.stages,
            "paths": {"x": plmr.paths[0], "y": plmr.paths[1]},
            "colors": {"used": plmr.colors, "usable": plmr.usable_colors, "switched": plmr.switched},
            "memory": {
                "peak": plmr.classes[0].peak,
                "capacity": plmr.capacity,
                "classes": [dataclasses.asdict(one) for one in plmr.classes],
                "buffers": [{"name": name, "bytes": size, "address": address} for name, size, address in plmr.buffers],
            },
            "deadlock": {"verdict": plmr.deadlock.kind, "why": plmr.deadlock.why},
            "warnings": list(plmr.warnings),
            "maps": self._maps(),
        }

    def _maps(self) -> dict[str, Any]:
        maps = dict(zip(DIRECTIONS, self.timing.loads, strict=True)) | {"memory": self.memory, "ends": self.timing.ends}
        shown = {name: shrink(values, MAP_CELLS) for name, values in maps.items()}
        return {"cores_per_cell": shown["memory"][1]} | {name: cells.tolist() for name, (cells, _) in shown.items()}


def conditions(timing: Timing) -> dict[str, Any]:
    """What a simulated number holds for: it never stands without these."""
    return {
        "simulated": True,
        "machine": timing.machine.name,
        "preset": timing.machine.preset,
        "clock": timing.machine.clock,
        "sync": timing.sync,
        "fabric_entries": timing.fabric_entries,
        "tier": timing.tier,
        "extrapolated": timing.extrapolated,
    }


def profile(
    program: Program,
    machine: Machine,
    *,
    sync: Sync = "dataflow",
    fabric_entries: int | None = None,
    times: int = 1,
    where: str = "",
) -> ProgramProfile:
    """Check a program, and time it on the whole machine.

    Args:
        program: with colors and addresses (`plan.mesh.fit_program`).
        sync, fabric_entries: see `time_program`.
        times: how often it runs in one call of the whole.
        where: what of a model it computes.

    Raises:
        UserError: it breaks a rule, does not fit the machine, or cannot be timed.
    """
    plmr = check_program(program, machine)
    timing = time_program(program, machine, sync=sync, fabric_entries=fabric_entries)
    return ProgramProfile(program.name, timing, plmr, memory_map(program), times, where)

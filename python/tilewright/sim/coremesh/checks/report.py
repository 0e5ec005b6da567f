# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""All checks of a program, and what it takes of a machine: the PLMR report (WaferLLM, OSDI 2025, section 3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.core.errors import UserError
from tilewright.sim.coremesh.checks.colors import check_colors, routes_by_color, usable_colors
from tilewright.sim.coremesh.checks.deadlock import Verdict, deadlock_verdict
from tilewright.sim.coremesh.checks.field import Field
from tilewright.sim.coremesh.checks.flows import Lines, flows_of
from tilewright.sim.coremesh.checks.lanes import lanes_of, positions
from tilewright.sim.coremesh.checks.lifetimes import buffer_bytes
from tilewright.sim.coremesh.checks.losses import lost_values
from tilewright.sim.coremesh.checks.memory import CoreClass, check_memory
from tilewright.sim.coremesh.checks.races import check_races
from tilewright.sim.coremesh.checks.shapes import check_shapes
from tilewright.sim.coremesh.checks.stages import stages_of
from tilewright.sim.coremesh.machine import Machine
from tilewright.sim.coremesh.program import Compute, Program
from tilewright.sim.coremesh.steps import Step, unroll


@dataclass(frozen=True)
class Distance:
    """One communication op: a route.

    Attributes:
        hops: from a source to its farthest receiver, at most; the shorter way round a torus, one through an exchange.
        stages: software stages that a number passes on the longest chain of relays that ends here; 1 without relays.
    """

    route: str
    axis: str
    hops: int
    stages: int


@dataclass(frozen=True)
class Report:
    """What a program takes of a machine.

    Attributes:
        cores, busy: of the program, and how many of them compute.
        work: multiply-adds and other results of one core: least, mean, most.
        distances: per route.
        classes: of cores by memory, the one that needs most first.
        buffers: (name, bytes, address or None).
        paths: flows that pass one router along x and along y, at most.
        colors: that one core has in use, at most; 0 on machines without colors.
        switched: positions of one color at one router, at most.
        warnings: values that are lost: see `losses`.
    """

    program: str
    machine: str
    cores: int
    busy: int
    work: tuple[int, float, int]
    distances: tuple[Distance, ...]
    capacity: int
    classes: tuple[CoreClass, ...]
    buffers: tuple[tuple[str, int, int | None], ...]
    paths: tuple[int, int]
    colors: int
    usable_colors: int
    switched: int
    deadlock: Verdict
    warnings: tuple[str, ...] = ()

    def __str__(self) -> str:
        """One paragraph per letter of PLMR, and the verdict on deadlocks."""
        least, mean, most = self.work
        lines = [
            f"{self.program} on {self.machine}",
            f"P  {self.busy} of {self.cores} cores compute; work per core: least {least}, mean {mean:.1f}, most {most}",
            "L  " + (_table(self.distances) or "no communication"),
            f"M  {self.classes[0].peak} of {self.capacity} bytes at the fullest core",
            *(f"     {one.cores} cores such as (y={one.core[0]}, x={one.core[1]}): {one.peak}" for one in self.classes),
            *(
                f"     '{name}': {size} bytes{'' if address is None else f' at {address}'}"
                for name, size, address in self.buffers
            ),
            f"R  paths per core: {self.paths[0]} along x, {self.paths[1]} along y; "
            + (
                f"{self.colors} of {self.usable_colors} colors, {self.switched} switch positions"
                if self.usable_colors
                else "no colors on this machine"
            ),
            f"deadlock: {self.deadlock.kind}: {self.deadlock.why}",
            *(f"warning: {warning}" for warning in self.warnings),
        ]
        return "\n".join(lines)


def _table(distances: Sequence[Distance]) -> str:
    rows = [f"'{one.route}' along {one.axis}: {one.hops} hops, {one.stages} stages" for one in distances]
    return "\n     ".join(rows)


def check_program(program: Program, machine: Machine) -> Report:
    """Run all checks on a program whose colors are assigned, before any simulation.

    Raises:
        UserError: the first violation: grid, races, shapes, routes, colors, memory, messages, deadlock.
    """
    field, steps = Field(program), unroll(program)
    _check_grid(program, machine)
    check_races(program, field, steps)
    check_shapes(program, field, steps)
    classes = flows_of(program, field, steps)
    occupancy = check_colors(program, machine, field, classes, steps)
    memory = check_memory(program, machine, field, steps)
    verdict = deadlock_verdict(program, machine, field, steps)
    verdict.check()
    work = _work(field, steps)
    colored = routes_by_color(machine)
    lanes = [lane for lines in classes for lane in lanes_of(lines)]
    return Report(
        program.name,
        machine.name,
        program.height * program.width,
        field.size(work > 0),
        (int(work.min()), float(work.mean()), int(work.max())),
        _distances(program, machine, field, steps, classes),
        machine.sram_bytes - machine.mesh.code_bytes,
        tuple(memory),
        tuple((buffer.name, buffer_bytes(buffer), buffer.address) for buffer in program.buffers),
        (paths_per_core(classes, "x"), paths_per_core(classes, "y")),
        int(occupancy.per_core().max()) if colored else 0,
        usable_colors(machine) if colored else 0,
        max((int(positions(lane).max()) for lane in lanes), default=0),
        verdict,
        lost_values(program, field, steps),
    )


def paths_per_core(classes: Sequence[Lines], axis: str) -> int:
    """Flows that pass, begin or end at one router along an axis, at most."""
    most = 0
    for lines in classes:
        if lines.axis == axis:
            change = np.zeros(lines.length + 1, dtype=np.int64)
            np.add.at(change, [flow.first for flow in lines.flows], 1)
            np.add.at(change, [flow.last + 1 for flow in lines.flows], -1)
            most = max(most, int(change.cumsum().max()))
    return most


def _check_grid(program: Program, machine: Machine) -> None:
    if program.height > machine.mesh.height or program.width > machine.mesh.width:
        raise UserError(
            f"Program '{program.name}' is for {program.height} x {program.width} cores (rows x columns), and machine "
            f"'{machine.name}' has {machine.mesh.height} x {machine.mesh.width}. Lay it out for a smaller grid."
        )


def _work(field: Field, steps: list[Step]) -> np.ndarray:
    fixed = np.zeros((1, 1), dtype=np.int64)
    moving = np.zeros((field.height, field.width), dtype=np.int64)
    for step in steps:
        instruction = step.instruction
        if not isinstance(instruction, Compute) or not (amount := instruction.cost.macs + instruction.cost.elements):
            continue
        mask = field.mask(instruction.cores, step.loops)
        if mask.size == field.height * field.width:
            np.add(moving, amount, out=moving, where=mask)
        else:
            fixed = fixed + mask * amount
    return fixed + moving


def _distances(
    program: Program, machine: Machine, field: Field, steps: list[Step], classes: Sequence[Lines]
) -> tuple[Distance, ...]:
    hops: dict[str, int] = {}
    topology = machine.mesh.topology
    for lines in classes:
        for flow in lines.flows:
            far = flow.hops(lines.length if topology == "torus" else 0) if topology != "exchange" else 1
            hops[flow.route] = max(hops.get(flow.route, 0), far)
    stages = stages_of(program, field, steps)
    routes = [route for route in program.routes if route.name in hops]
    return tuple(Distance(one.name, one.axis, hops[one.name], stages.get(one.name, 1)) for one in routes)

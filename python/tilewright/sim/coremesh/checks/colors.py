# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Colors: that no two flows mix at a router, that a core has enough, that a switch has enough positions."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tilewright.core.errors import UserError
from tilewright.sim.coremesh.checks.field import Field, core_name
from tilewright.sim.coremesh.checks.flows import Lines
from tilewright.sim.coremesh.checks.lanes import Lane, lanes_of, positions
from tilewright.sim.coremesh.expressions import depth
from tilewright.sim.coremesh.machine import Machine
from tilewright.sim.coremesh.program import Program, Route
from tilewright.sim.coremesh.steps import Step, incoming


def routes_by_color(machine: Machine) -> bool:
    """Whether routers of a machine know routes by colors, not by headers of packets."""
    return machine.mesh.routing == "static" and machine.mesh.colors > 0


def usable_colors(machine: Machine) -> int:
    """How many colors programs may use: 0 up to this."""
    return machine.mesh.colors - machine.mesh.reserved_colors


class Occupancy:
    """Which lane has which color at which router.

    Attributes:
        lanes: all that were put in.
    """

    def __init__(self, field: Field) -> None:
        self.shape = field.height, field.width
        self.lanes: list[Lane] = []
        self._owners: list[np.ndarray] = []  # per color, int32 [height, width]: number of the lane, or -1

    @property
    def colors(self) -> int:
        """One more than the highest color in use."""
        return len(self._owners)

    def free(self, lane: Lane, color: int) -> bool:
        """Whether no router that the lane touches has the color in use."""
        return color >= self.colors or not (self._owners[color][lane.region] >= 0).any()

    def put(self, lane: Lane, color: int) -> tuple[Lane, tuple[int, int]] | None:
        """Use a color at all routers of a lane. Returns a lane that is there already, and the row and column."""
        while color >= self.colors:
            self._owners.append(np.full(self.shape, -1, dtype=np.int32))
        owners, other = self._owners[color][lane.region], None
        if (owners >= 0).any():
            row, column = np.argwhere(owners >= 0)[0].tolist()
            rows, columns = np.arange(self.shape[0])[lane.region[0]], np.arange(self.shape[1])[lane.region[1]]
            other = self.lanes[owners[row, column]], (int(rows[row]), int(columns[column]))
        self._owners[color][lane.region] = len(self.lanes)
        self.lanes.append(lane)
        return other

    def per_core(self) -> np.ndarray:
        """Colors in use at each router, int64 [height, width]."""
        return sum(((owners >= 0).astype(np.int64) for owners in self._owners), np.zeros(self.shape, dtype=np.int64))

    def at(self, row: int, column: int) -> list[Lane]:
        """The lanes through one router, by color."""
        numbers = [int(owners[row, column]) for owners in self._owners]
        return [self.lanes[number] for number in numbers if number >= 0]


def check_colors(
    program: Program, machine: Machine, field: Field, classes: Iterable[Lines], steps: list[Step]
) -> Occupancy:
    """Check the colors that a program's routes have. A machine without colors has nothing to check.

    Raises:
        UserError: a route without colors, a color that the machine does not have or keeps for itself, two flows that
            mix at a router, too many switch positions; it names core, color, and routes.
    """
    occupancy = Occupancy(field)
    if not routes_by_color(machine):
        return occupancy
    for lines in classes:
        for lane in lanes_of(lines):
            check_number(lane, machine)
            check_positions(lane, machine)
            mixed = occupancy.put(lane, lane.color)
            if mixed is not None:
                raise UserError(
                    f"Color {lane.color} carries two flows at {core_name(*mixed[1])}: {mixed[0]}, and {lane}. A router "
                    "sends on all that comes in on a color, from wherever: they would mix. Give them two colors "
                    "(plan.mesh.assign_colors does)."
                )
    check_rounds(program, field, steps)
    return occupancy


def check_number(lane: Lane, machine: Machine) -> None:
    """Check that a lane's color is one that programs may use.

    Raises:
        UserError: it is none, or is not.
    """
    if lane.color is None:
        raise UserError(
            f"Route '{lane.route}' has no colors, and machine '{machine.name}' routes by color. Assign them "
            "(plan.mesh.assign_colors)."
        )
    if not 0 <= lane.color < usable_colors(machine):
        raise UserError(
            f"{core_name(*lane.lines.core(lane.first))}: {lane} runs on color {lane.color}; machine '{machine.name}' "
            f"has colors 0 to {machine.mesh.colors - 1}, of which it keeps the last {machine.mesh.reserved_colors} for "
            f"itself. Use colors 0 to {usable_colors(machine) - 1} (plan.mesh.assign_colors does)."
        )


def check_positions(lane: Lane, machine: Machine) -> None:
    """Check that no router needs more switch positions for a lane's color than it has.

    Raises:
        UserError: one does.
    """
    needed = positions(lane)
    worst = int(needed.argmax())
    if needed[worst] > machine.mesh.switch_positions:
        raise UserError(
            f"{core_name(*lane.lines.core(lane.first + worst))} switches the color of route '{lane.route}' between "
            f"{needed[worst]} pairs of input and outputs, and a router of machine '{machine.name}' has "
            f"{machine.mesh.switch_positions} switch positions per color. Split the route in several, so "
            "that fewer sources share a receiver."
        )


def check_rounds(program: Program, field: Field, steps: list[Step]) -> None:
    """Check that flows of one route whose source moves do not meet on one color in one round.

    Raises:
        UserError: two do; it names route, color, round, and a core of both.
    """
    moving = {route.name: route for route in program.routes if depth(route.source) > 2}
    seen: set[tuple[str, bytes, bytes]] = set()
    for step in steps:
        if (route := moving.get(incoming(step.instruction) or "")) is not None:
            _check_round(route, field, step, seen)


def _check_round(route: Route, field: Field, step: Step, seen: set[tuple[str, bytes, bytes]]) -> None:
    turn = (lambda array: array) if route.axis == "x" else np.transpose
    mask = turn(field.mask(step.instruction.cores, step.loops))
    sources, colors = turn(field.sources(route, step.loops)), turn(field.color(route))
    mask, sources, colors = np.broadcast_arrays(mask, sources, colors, np.empty((1, field.length(route.axis))))[:3]
    for line in range(mask.shape[0]):
        places = np.flatnonzero(mask[line])
        key = route.name, places.tobytes(), sources[line].tobytes()
        if not places.size or key in seen:
            continue
        seen.add(key)
        for color in np.unique(colors[line][places]).tolist():
            here = places[colors[line][places] == color]
            place = _meeting(here, sources[line][here])
            if place is not None:
                row, column = (line, place) if route.axis == "x" else (place, line)
                name = route.colors[color] if route.colors else color
                raise UserError(
                    f"Color {name} carries two flows of route '{route.name}' at {core_name(row, column)} in one "
                    "round: they would mix. Let their receivers listen on two colors, or send one after the other.",
                    location=str(step),
                )


def _meeting(places: np.ndarray, sources: np.ndarray) -> int | None:
    """A place that two flows with different sources both touch."""
    order = np.argsort(sources, kind="stable")
    places, sources = places[order], sources[order]
    starts = np.flatnonzero(np.diff(sources, prepend=-1))
    first = np.minimum(np.minimum.reduceat(places, starts), sources[starts])
    last = np.maximum(np.maximum.reduceat(places, starts), sources[starts])
    ascending = np.argsort(first, kind="stable")
    first, last = first[ascending], last[ascending]
    meet = np.flatnonzero(first[1:] <= np.maximum.accumulate(last)[:-1])
    return int(first[1:][meet[0]]) if meet.size else None

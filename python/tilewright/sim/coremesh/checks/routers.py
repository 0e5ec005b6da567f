# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The configuration of routers that a program's routes need, and the routes read back from one.

The inverse knows nothing of the program: what comes back equal was configured right (the idea of `find-flows` in
mlir-aie).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from tilewright.core.errors import UserError
from tilewright.sim.coremesh.checks.flows import Lines
from tilewright.sim.coremesh.checks.lanes import HIGH, LOW, RAMP, states

_PORTS = {"x": ("ramp", "west", "east"), "y": ("ramp", "north", "south")}


@dataclass(frozen=True, order=True)
class Entry:
    """What a router does with what comes in on one color from one side.

    Attributes:
        place: of the router on its line.
        input: ramp, west, east, north or south.
        outputs: all that get a copy.
    """

    place: int
    color: int
    input: str
    outputs: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Configuration:
    """Entries of all routers of a class of lines, without a route's name.

    Attributes:
        members: numbers of the lines, int64 [n].
    """

    axis: str
    members: np.ndarray
    length: int
    entries: tuple[Entry, ...]

    def at(self, row: int, column: int) -> list[Entry]:
        """The entries of one core's router along this axis."""
        line, place = (row, column) if self.axis == "x" else (column, row)
        return [entry for entry in self.entries if entry.place == place] if line in self.members else []


@dataclass(frozen=True, order=True)
class Found:
    """A flow as routers run it.

    Attributes:
        source, destinations: places on the line.
    """

    axis: str
    color: int
    source: int
    destinations: tuple[int, ...]


def configure(lines: Lines) -> Configuration:
    """What the routers of a class of lines do for its flows, whose colors are assigned.

    Raises:
        UserError: a route has no color yet.
    """
    entries = set()
    for flow in lines.flows:
        if flow.color is None:
            raise UserError(
                f"Route '{flow.route}' has no colors: routers are configured per color. Assign colors before "
                "(plan.mesh.assign_colors)."
            )
        for place, (side, outputs) in enumerate(zip(*states(flow), strict=True), flow.first):
            to = tuple(name for bit, name in enumerate(_PORTS[lines.axis]) if outputs >> bit & 1)
            entries.add(Entry(place, flow.color, _PORTS[lines.axis][side], to))
    return Configuration(lines.axis, lines.members, lines.length, tuple(sorted(entries)))


def find_routes(configuration: Configuration) -> set[Found]:
    """The flows that a configuration runs: whatever a core can put on a color, and who gets it.

    A router with several states for one input (switch positions) is taken to be in any of them.

    Raises:
        UserError: data leave the grid, or arrive at a router that has no entry for them.
    """
    table: dict[tuple[int, int, str], set[str]] = defaultdict(set)
    for entry in configuration.entries:
        table[entry.place, entry.color, entry.input] |= set(entry.outputs)
    ramp = _PORTS[configuration.axis][RAMP]
    return {
        Found(configuration.axis, color, place, tuple(sorted(_follow(configuration, table, place, color))))
        for place, color, side in list(table)
        if side == ramp
    }


def _follow(
    configuration: Configuration, table: dict[tuple[int, int, str], set[str]], source: int, color: int
) -> set[int]:
    ports = _PORTS[configuration.axis]
    reached, seen, ahead = set(), set(), [(source, ports[RAMP])]
    while ahead:
        place, side = ahead.pop()
        if (place, side) in seen:
            continue  # states of different times may form a circle
        seen.add((place, side))
        outputs = table.get((place, color, side))
        if outputs is None or not 0 <= place < configuration.length:
            raise UserError(
                f"What the core at {configuration.axis}={source} sends on color {color} arrives at "
                f"{configuration.axis}={place} from the {side}, where no router takes it. Every output must lead to a "
                "router with an entry for that color and side."
            )
        if ports[RAMP] in outputs:
            reached.add(place)
        if ports[LOW] in outputs:
            ahead.append((place - 1, ports[HIGH]))
        if ports[HIGH] in outputs:
            ahead.append((place + 1, ports[LOW]))
    return reached

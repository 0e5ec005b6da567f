# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whose data cross which routers: the flows of a program's routes, line by line.

Paths are straight: a row has flows along x, a column flows along y. Lines with the same flows are one class and are
looked at once, so that a mesh of 720 x 720 cores with one program costs what one row and one column cost.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from tilewright.core.errors import UserError
from tilewright.sim.coremesh.checks.field import Field, core_name
from tilewright.sim.coremesh.expressions import depth
from tilewright.sim.coremesh.program import Program, Route
from tilewright.sim.coremesh.steps import Step, incoming

#: Pairs of source and destination that are kept before equal ones are joined.
_MOST_PENDING = 1 << 22


@dataclass(frozen=True)
class Flow:
    """What one core sends on one route, over all turns of all loops: a path, or a multicast tree, on one line.

    Attributes:
        source, destinations: places on the line, as cores stand; destinations ascend.
        color: on which the destinations listen; None before assignment.
    """

    route: str
    source: int
    destinations: tuple[int, ...]
    color: int | None = None

    @property
    def first(self) -> int:
        """The lowest router it touches."""
        return min(self.source, self.destinations[0])

    @property
    def last(self) -> int:
        """The highest router it touches."""
        return max(self.source, self.destinations[-1])

    def hops(self, length: int = 0) -> int:
        """Links from the source to its farthest destination; on a ring of ``length`` cores, the shorter way round."""
        ways = (abs(self.source - one) for one in (self.destinations if length else (self.first, self.last)))
        return max(min(way, length - way) if length else way for way in ways)


@dataclass(frozen=True, eq=False)
class Lines:
    """Rows (axis x) or columns (axis y) that have the same flows.

    Attributes:
        members: their numbers, int64 [n], ascending.
        length: cores of each.
    """

    axis: str
    members: np.ndarray
    length: int
    flows: tuple[Flow, ...]

    def core(self, place: int, member: int = 0) -> tuple[int, int]:
        """Row and column of the core at a place of a member."""
        line = int(self.members[member])
        return (line, place) if self.axis == "x" else (place, line)


def flows_of(program: Program, field: Field, steps: list[Step]) -> list[Lines]:
    """All flows of a program, per class of lines.

    Raises:
        UserError: an unknown route, a source outside the grid, destinations of one sender that listen on different
            colors, a color index that its route does not have.
    """
    routes = {route.name: route for route in program.routes}
    reached = {name: _Reached(field, route) for name, route in routes.items()}
    for step in steps:
        if (name := incoming(step.instruction)) is not None:
            if name not in routes:
                raise UserError(
                    f"Route '{name}' is not a route of the program, which has {sorted(routes)}.", location=str(step)
                )
            reached[name].add(step)
    classes = []
    for axis in ("x", "y"):
        along = [one for one in reached.values() if one.route.axis == axis and one.used]
        across = field.height if axis == "x" else field.width
        classes += _classes(axis, across, field.length(axis), along)
    return classes


class _Reached:
    """Pairs of (source, destination) of one route; arrays are [lines or 1, places]."""

    def __init__(self, field: Field, route: Route) -> None:
        self.field, self.route = field, route
        self.length = field.length(route.axis)
        self.moves = depth(route.source) > 2
        self.seen: set[int] = set()
        self.mask: np.ndarray = np.zeros((1, self.length), dtype=bool)
        # Of moving sources, by number of lines: sorted codes, and those not sorted in yet.
        self.codes: dict[int, np.ndarray] = {}
        self.parts: dict[int, list[np.ndarray]] = {}
        self.pending = 0

    @property
    def used(self) -> bool:
        self._gather()
        return bool(self.codes) or bool(self.mask.any())

    def along(self, array: np.ndarray) -> np.ndarray:
        """An array with the route's axis last, and as long as that."""
        array = array if self.route.axis == "x" else array.T
        return np.broadcast_to(array, (array.shape[0], self.length))

    def add(self, step: Step) -> None:
        cores = step.instruction.cores
        if depth(*cores.at_least_zero, *cores.zero, self.route.source) <= 2:
            if id(step.instruction) in self.seen:
                return
            self.seen.add(id(step.instruction))
        mask = self.along(self.field.mask(cores, step.loops))
        sources = self.along(self.field.sources(self.route, step.loops))
        self._check_inside(mask, sources, step)
        if not self.moves:
            self.mask = self.mask | mask
            return
        mask, sources = np.broadcast_arrays(mask, sources)
        lines, places = np.nonzero(mask)
        codes = (lines * self.length + sources[lines, places]) * self.length + places
        self.parts.setdefault(mask.shape[0], []).append(codes)
        self.pending += codes.size
        if self.pending > _MOST_PENDING:
            self._gather()

    def _gather(self) -> None:
        for count, parts in self.parts.items():
            self.codes[count] = np.unique(np.concatenate([self.codes.get(count, parts[0][:0]), *parts]))
        self.parts, self.pending = {}, 0

    def _check_inside(self, mask: np.ndarray, sources: np.ndarray, step: Step) -> None:
        outside = mask & (sources < 0)
        if not outside.any():
            return
        line, place = np.argwhere(outside)[0].tolist()
        row, column = (line, place) if self.route.axis == "x" else (place, line)
        raise UserError(
            f"{core_name(row, column)} receives on route '{self.route.name}' from outside the grid of "
            f"{self.field.height} x {self.field.width} cores. Let only cores receive whose source exists, or take the "
            "source modulo the length of the line.",
            location=str(step),
        )

    def rows(self, across: int) -> list[np.ndarray]:
        """Per line the codes ``source * length + destination``; one array only where all lines are alike."""
        if not self.moves:
            sources = self.along(self.field.sources(self.route, ()))
            mask, sources = np.broadcast_arrays(self.mask, sources)
            places = np.arange(self.length)
            return [row[keep] * self.length + places[keep] for row, keep in zip(sources, mask, strict=True)]
        square = self.length**2
        shared = self.codes.get(1, np.zeros(0, dtype=np.int64)) if across > 1 else None
        if shared is not None and set(self.codes) <= {1}:
            return [shared]
        own = self.codes.get(across, np.zeros(0, dtype=np.int64))
        cuts = np.searchsorted(own, np.arange(1, across) * square)
        split = [part % square for part in np.split(own, cuts)]
        return split if shared is None else [np.union1d(part, shared) for part in split]

    def colors(self) -> list[np.ndarray] | None:
        """Per line the color at which each place listens (-1: the route has no such); None before assignment."""
        if not self.route.colors:
            return None
        index = self.along(self.field.color(self.route))
        inside = (index >= 0) & (index < len(self.route.colors))
        numbers = np.asarray(self.route.colors)[np.where(inside, index, 0)]
        return list(np.where(inside, numbers, -1))


def _classes(axis: str, across: int, length: int, routes: list[_Reached]) -> list[Lines]:
    pairs = [one.rows(across) for one in routes]
    colors = [one.colors() for one in routes]
    members: dict[tuple[bytes, ...], list[int]] = defaultdict(list)
    alike = all(len(rows) == 1 for rows in [*pairs, *(rows for rows in colors if rows is not None)])
    for line in range(1 if alike else across):
        signature = [rows[line % len(rows)].tobytes() for rows in pairs]
        signature += [rows[line % len(rows)].tobytes() for rows in colors if rows is not None]
        members[tuple(signature)].append(line)
    found = []
    for lines in members.values():
        flows: list[Flow] = []
        for one, rows, shades in zip(routes, pairs, colors, strict=True):
            shade = shades[lines[0] % len(shades)] if shades is not None else None
            flows += _flows(one.route, rows[lines[0] % len(rows)], length, shade, axis, lines[0])
        if flows:
            found.append(Lines(axis, np.arange(across) if alike else np.asarray(lines), length, tuple(flows)))
    return found


def _flows(route: Route, codes: np.ndarray, length: int, colors: np.ndarray | None, axis: str, line: int) -> list[Flow]:
    if not codes.size:
        return []
    flows = []
    sources, destinations = np.divmod(np.sort(codes), length)
    starts = np.flatnonzero(np.diff(sources, prepend=-1))
    for start, places in zip(starts.tolist(), np.split(destinations, starts[1:]), strict=False):
        color = None if colors is None else _color(route, colors[places], places, axis, line)
        flows.append(Flow(route.name, int(sources[start]), tuple(places.tolist()), color))
    return flows


def _color(route: Route, colors: np.ndarray, places: np.ndarray, axis: str, line: int) -> int:
    wrong = np.flatnonzero((colors != colors[0]) | (colors < 0))
    if not wrong.size:
        return int(colors[0])
    place = int(places[wrong[0]])
    core = core_name(line, place) if axis == "x" else core_name(place, line)
    if colors[wrong[0]] < 0:
        raise UserError(
            f"{core} listens on a color of route '{route.name}' that the route does not have: it has "
            f"{len(route.colors)}. Take the color's index modulo that."
        )
    raise UserError(
        f"{core} listens on color {colors[wrong[0]]} of route '{route.name}', and another core that receives the same "
        f"data on color {colors[0]}. A multicast runs on one color: let all its receivers listen on that."
    )

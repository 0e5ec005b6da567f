# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Flows of a program: what one core sends on one route, and to whom."""

from __future__ import annotations

from collections import defaultdict, deque

import numpy as np

from tilewright.core.errors import UserError
from tilewright.sim.coremesh.channels import Channels
from tilewright.sim.coremesh.grid import Grid
from tilewright.sim.coremesh.program import Program, Route
from tilewright.sim.coremesh.steps import Step, cores_of, outgoing


class Flows:
    """All flows, numbered; where a route's sources change with loops, one per set of receivers.

    Attributes:
        sources, routes: of each flow: core and number of the route.
        channels: color of each flow, or a number of its own where its route has no colors.
        destinations: cores, by flow.
    """

    def __init__(self, grid: Grid, program: Program, channels: dict[str, Channels], steps: list[Step]) -> None:
        self.grid, self._channels = grid, channels
        self.sources: list[int] = []
        self.routes: list[int] = []
        self.channels: list[int] = []
        self.destinations: list[np.ndarray] = []
        self._number = {route.name: number for number, route in enumerate(program.routes)}
        self._route = {route.name: route for route in program.routes}
        self._base = 1 + max((color for route in program.routes for color in route.colors), default=-1)
        self._of_source: dict[str, np.ndarray] = {}
        self._known: dict[tuple[str, int, bytes], int] = {}
        self._queue: dict[tuple[str, int], deque[int]] = defaultdict(deque)
        for name, found in channels.items():
            if not found.changing:
                self._lay_fixed(name, found)
        for step in steps:
            name = outgoing(step.instruction)
            if name is not None and channels[name].changing:
                self._lay_changing(name, step)

    def outgoing(self, name: str, step: Step, cores: np.ndarray) -> np.ndarray:
        """Flow on which each core sends at a step, int32 [n]."""
        if not self._channels[name].changing:
            return self._of_source[name][cores]
        return np.array([flow for _, flow in self._changing(name, step, cores)], dtype=np.int32)

    def incoming(self, name: str, step: Step, cores: np.ndarray) -> np.ndarray:
        """Flow from which each core's next message comes, int32 [n]; call it in the order of the steps."""
        found = self._channels[name]
        sources, channels = found.taken(cores, step)
        if not found.changing:
            return self._of_source[name][sources]
        return np.array([self._queue[name, channel].popleft() for channel in channels.tolist()], dtype=np.int32)

    def _lay_fixed(self, name: str, found: Channels) -> None:
        receivers = np.flatnonzero(found.expected)
        sources = found.grid.sources(found.route, ())[receivers]
        order = np.argsort(sources, kind="stable")
        starts, first = np.unique(sources[order], return_index=True)
        self._of_source[name] = np.full(self.grid.cores, -1, dtype=np.int32)
        for source, group in zip(starts.tolist(), np.split(receivers[order], first[1:]), strict=False):
            self._of_source[name][source] = self._add(name, source, group)

    def _lay_changing(self, name: str, step: Step) -> None:
        cores = np.flatnonzero(self.grid.mask(cores_of(step.instruction), step.loops))
        for channels, flow in self._changing(name, step, cores):
            for channel in channels.tolist():
                self._queue[name, channel].append(flow)

    def _changing(self, name: str, step: Step, cores: np.ndarray) -> list[tuple[np.ndarray, int]]:
        """Channels and flow of each sender."""
        deliveries = self._channels[name].delivered(cores, step)
        order = np.argsort(deliveries.senders, kind="stable")
        cuts = np.searchsorted(deliveries.senders[order], cores[1:])
        found = []
        for core, part in zip(cores.tolist(), np.split(order, cuts), strict=True):
            receivers = deliveries.receivers[part]
            key = name, core, receivers.tobytes()
            if key not in self._known:
                self._known[key] = self._add(name, core, receivers)
            found.append((deliveries.channels[part], self._known[key]))
        return found

    def _add(self, name: str, source: int, receivers: np.ndarray) -> int:
        number = len(self.sources)
        self.sources.append(source)
        self.routes.append(self._number[name])
        self.channels.append(self._channel(self._route[name], source, receivers, number))
        self.destinations.append(receivers)
        return number

    def _channel(self, route: Route, source: int, receivers: np.ndarray, number: int) -> int:
        if not route.colors:
            return self._base + number
        colors = np.array(route.colors)[self.grid.color(route)[receivers]]
        if (colors != colors[0]).any():
            other = int(np.flatnonzero(colors != colors[0])[0])
            raise UserError(
                f"{self.grid.name(source)} sends one message on route '{route.name}' to "
                f"{self.grid.name(int(receivers[0]))}, which listens on color {colors[0]}, and to "
                f"{self.grid.name(int(receivers[other]))}, which listens on color {colors[other]}: a multicast has one "
                "color. Give all receivers of one source the same."
            )
        return int(colors[0])

# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What needs a color of its own at a router: lanes, and how many switch positions each takes.

A core listens on one color per route, and a multicast runs on one color. Flows of one route that share a receiver thus
share a color: together they are a *lane*. A lane with one flow is static. One whose source moves with the rounds (a
broadcast from a different root each) is switched: a router holds one state per pair of input and outputs, and goes from
one to the next when a message ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tilewright.sim.coremesh.checks.flows import Flow, Lines

#: Inputs and outputs of a router along one axis: the core itself, the side of lower places, that of higher ones.
RAMP, LOW, HIGH = 0, 1, 2


@dataclass(frozen=True, eq=False)
class Lane:
    """Flows of one route, on one class of lines, that share a color.

    Attributes:
        first, last: the lowest and the highest router that they touch; they touch all between.
    """

    route: str
    lines: Lines
    flows: tuple[Flow, ...]
    first: int
    last: int

    @property
    def region(self) -> tuple[np.ndarray | slice, np.ndarray | slice]:
        """Index of the routers it touches in an array [height, width]."""
        members, span = _span(self.lines.members), slice(self.first, self.last + 1)
        return (members, span) if self.lines.axis == "x" else (span, members)

    @property
    def color(self) -> int | None:
        """On which it runs; None before assignment."""
        return self.flows[0].color

    def __str__(self) -> str:
        """How messages name it."""
        flow = self.flows[0]
        more = f" and {len(self.flows) - 1} more sources" if len(self.flows) > 1 else ""
        to = f"{flow.destinations[0]}" + (f"..{flow.destinations[-1]}" if len(flow.destinations) > 1 else "")
        return f"'{self.route}' from {self.lines.axis}={flow.source} to {to}{more}"


def _span(members: np.ndarray) -> np.ndarray | slice:
    first, last = int(members[0]), int(members[-1])
    return slice(first, last + 1) if last - first + 1 == len(members) else members


def lanes_of(lines: Lines) -> list[Lane]:
    """The lanes of a class of lines, from the lowest to the highest router they start at."""
    routes: dict[str, list[Flow]] = {}
    for flow in lines.flows:
        routes.setdefault(flow.route, []).append(flow)
    lanes = [lane for flows in routes.values() for lane in _joined(lines, flows)]
    return sorted(lanes, key=lambda lane: (lane.first, lane.last))


def _joined(lines: Lines, flows: list[Flow]) -> Iterator[Lane]:
    """Lanes of one route: flows that share a destination, directly or through others."""
    lane_at = np.full(lines.length, -1)
    members: dict[int, list[Flow]] = {}
    for number, flow in enumerate(flows):
        places = np.asarray(flow.destinations)
        members[number] = [flow]
        for other in np.unique(lane_at[places]).tolist():
            if other >= 0:
                members[number] += members.pop(other)
                lane_at[lane_at == other] = number
        lane_at[places] = number
    for joined in members.values():
        joined.sort(key=lambda flow: flow.source)
        first, last = min(flow.first for flow in joined), max(flow.last for flow in joined)
        yield Lane(joined[0].route, lines, tuple(joined), first, last)


def states(flow: Flow) -> tuple[np.ndarray, np.ndarray]:
    """What the routers from a flow's first to its last do for it: input [n], outputs [n] (a bit per output)."""
    places = np.arange(flow.first, flow.last + 1)
    inputs = np.where(places == flow.source, RAMP, np.where(places > flow.source, LOW, HIGH))
    outputs = np.zeros(len(places), dtype=np.int64)
    outputs[np.asarray(flow.destinations) - flow.first] |= 1 << RAMP
    outputs[(places <= flow.source) & (places > flow.first)] |= 1 << LOW
    outputs[(places >= flow.source) & (places < flow.last)] |= 1 << HIGH
    return inputs, outputs


def positions(lane: Lane) -> np.ndarray:
    """Switch positions that each router from the lane's first to its last needs, int64 [n]."""
    if len(lane.flows) == 1:
        return np.ones(lane.last - lane.first + 1, dtype=np.int64)
    table = np.zeros((lane.last - lane.first + 1, 3, 8), dtype=bool)
    for flow in lane.flows:
        inputs, outputs = states(flow)
        table[np.arange(flow.first, flow.last + 1) - lane.first, inputs, outputs] = True
    return table.sum(axis=(1, 2))

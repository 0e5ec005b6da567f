# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whom what is sent on a route reaches, and that every message has a sender and a receiver.

A *channel* is one pair of sender and receiver on one route; the k-th message on it is the k-th that its receiver takes
from it. Where a route's sources change with loops, a message goes to those whose source its sender is at the loop
indices of the sending instruction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewright.core.errors import UserError
from tilewright.sim.coremesh.expressions import depth
from tilewright.sim.coremesh.grid import Grid
from tilewright.sim.coremesh.message_errors import uneven, unheard, unknown_route
from tilewright.sim.coremesh.program import Program, Route
from tilewright.sim.coremesh.steps import Step, cores_of, incoming, outgoing


@dataclass(frozen=True)
class Deliveries:
    """Where messages of some senders go, one entry per message and receiver.

    Attributes:
        senders, receivers: numbers of cores, int64 [n].
        channels: numbers of channels of the route, int64 [n].
    """

    senders: np.ndarray
    receivers: np.ndarray
    channels: np.ndarray


class Channels:
    """The channels of one route.

    Attributes:
        route: whose.
        count: how many numbers of channels there are; not all are in use.
        expected: messages of each channel in a whole run, int64 [count].
    """

    def __init__(self, grid: Grid, route: Route) -> None:
        self.grid, self.route = grid, route
        self.changing = depth(route.source) > 2
        length = grid.width if route.axis == "x" else grid.height
        self.count = grid.cores * (length if self.changing else 1)
        self.expected = np.zeros(self.count, dtype=np.int32)
        self._place = grid.x if route.axis == "x" else grid.y

    def taken(self, receivers: np.ndarray, step: Step) -> tuple[np.ndarray, np.ndarray]:
        """Sources and channels of cores that receive at a step.

        Raises:
            UserError: a source lies outside the grid.
        """
        sources = self.grid.sources(self.route, step.loops)[receivers]
        outside = np.flatnonzero(sources < 0)
        if outside.size:
            raise UserError(
                f"{self.grid.name(int(receivers[outside[0]]))} receives on route '{self.route.name}' from outside the "
                f"grid of {self.grid.height} x {self.grid.width} cores. Let only cores receive whose source exists.",
                location=str(step),
            )
        return sources, self._channels(sources, receivers)

    def delivered(self, senders: np.ndarray, step: Step) -> Deliveries:
        """Whom messages of these cores reach, sent at a step."""
        sources = self.grid.sources(self.route, step.loops)
        sending = np.zeros(self.grid.cores + 1, dtype=bool)  # the last: what -1 finds
        sending[senders] = True
        receivers = np.flatnonzero(sending[sources])
        channels = self._channels(sources[receivers], receivers)
        open_ = self.expected[channels] > 0
        return Deliveries(sources[receivers][open_], receivers[open_], channels[open_])

    def pair(self, channel: int) -> tuple[int, int]:
        """Sender and receiver of a channel; the sender is -1 where only a step can tell."""
        place, receiver = divmod(channel, self.grid.cores)
        if not self.changing:
            return int(self.grid.sources(self.route, ())[receiver]), receiver
        row = receiver - receiver % self.grid.width
        return (row + place if self.route.axis == "x" else place * self.grid.width + receiver - row), receiver

    def _channels(self, sources: np.ndarray, receivers: np.ndarray) -> np.ndarray:
        return self._place[sources] * self.grid.cores + receivers if self.changing else receivers


def channels_of(program: Program, grid: Grid, steps: list[Step]) -> dict[str, Channels]:
    """The channels of each route of a program.

    Raises:
        UserError: an unknown route, a source outside the grid, a send without a receiver or a receive without a sender;
            it names route, cores and both numbers.
    """
    found = {route.name: Channels(grid, route) for route in program.routes}
    for step in steps:
        if (name := incoming(step.instruction)) is not None:
            channels = _known(found, name, step)
            taking = np.flatnonzero(grid.mask(cores_of(step.instruction), step.loops))
            channels.expected[channels.taken(taking, step)[1]] += 1
    sent = {name: np.zeros(channels.count, dtype=np.int32) for name, channels in found.items()}
    for step in steps:
        if (name := outgoing(step.instruction)) is not None:
            channels = _known(found, name, step)
            _count_sent(channels, sent[name], grid, step)
    for name, channels in found.items():
        _check(channels, sent[name])
    return found


def _known(found: dict[str, Channels], name: str, step: Step) -> Channels:
    if name not in found:
        raise unknown_route(name, found, step)
    return found[name]


def _count_sent(channels: Channels, sent: np.ndarray, grid: Grid, step: Step) -> None:
    senders = np.flatnonzero(grid.mask(cores_of(step.instruction), step.loops))
    deliveries = channels.delivered(senders, step)
    sent[deliveries.channels] += 1
    heard = np.zeros(grid.cores, dtype=bool)
    heard[deliveries.senders] = True
    lonely = senders[~heard[senders]]
    if lonely.size:
        raise unheard(grid.name(int(lonely[0])), channels.route.name, step)


def _check(channels: Channels, sent: np.ndarray) -> None:
    wrong = np.flatnonzero(sent != channels.expected)
    if not wrong.size:
        return
    channel = int(wrong[0])
    sender, receiver = (channels.grid.name(core) for core in channels.pair(channel))
    have, want = int(sent[channel]), int(channels.expected[channel])
    raise uneven(channels.route.name, (sender, receiver), have, want, wrong.size)

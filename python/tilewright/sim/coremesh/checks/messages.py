# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Messages of a route, counted line by line: that each has a sender and a receiver.

A *channel* is one pair of sender and receiver on one route; its k-th message is the k-th that the receiver takes from
it. A message goes to those that receive on the route at all and whose source, at the loop indices of the send, is the
sender.
"""

from __future__ import annotations

import numpy as np

from tilewright.sim.coremesh.checks.field import Field, core_name
from tilewright.sim.coremesh.expressions import depth
from tilewright.sim.coremesh.message_errors import uneven, unheard, unknown_route
from tilewright.sim.coremesh.program import Program, Route
from tilewright.sim.coremesh.steps import Step, cores_of, incoming, outgoing

#: Channels of one route that are counted at most: sources times destinations, on each line that differs.
MOST_CHANNELS = 1 << 26


class TooMany(Exception):
    """A route has more channels than are counted."""


class Messages:
    """Counts of one route: arrays [lines, sources, places] by destination; 1 where all are alike or a source is fixed.

    Attributes:
        heard: whether a channel is ever received from.
        sent, taken: messages that were sent, and receives that were started, int32.
    """

    def __init__(self, field: Field, route: Route) -> None:
        self.field, self.route = field, route
        self.length = field.length(route.axis)
        self.moves = depth(route.source) > 2
        self.heard = np.zeros((1, self.length, self.length) if self.moves else (1, 1, 1), dtype=bool)
        self.sent = np.zeros_like(self.heard, dtype=np.int32)
        self.taken = np.zeros_like(self.heard, dtype=np.int32)
        self._uneven = 0
        self._speakers: np.ndarray | None = None

    def turned(self, array: np.ndarray) -> np.ndarray:
        """An array [height or 1, width or 1] as [lines or 1, places or 1]."""
        return array if self.route.axis == "x" else array.T

    def along(self, array: np.ndarray) -> np.ndarray:
        """An array [height or 1, width or 1] as [lines or 1, places]."""
        array = self.turned(array)
        return np.broadcast_to(array, (array.shape[0], self.length))

    def sources(self, step: Step | None) -> np.ndarray:
        """Of each place at a step, [lines or 1, places]; -1: outside. Fixed ones need no step."""
        return self.along(self.field.sources(self.route, step.loops if step else ()))

    def hear(self, step: Step) -> None:
        """Note that a step receives."""
        mask = self._taking(step)
        if not self.moves:
            self.heard = self.heard | mask[:, None, :]
            return
        self.heard[self._channels(mask, self.sources(step))] = True

    def take(self, step: Step) -> None:
        """Count the receives that a step starts."""
        mask = self._taking(step)
        if self.moves:
            self._count(self.taken, self._channels(mask, self.sources(step)))
        else:
            self.taken = self.taken + mask[:, None, :]

    def send(self, step: Step) -> None:
        """Count the messages that a step sends.

        Raises:
            UserError: one that nobody receives.
        """
        sending, sources = self._taking(step), self.sources(step)
        by_place = self._at_source(sending, sources)
        if self.moves:
            reached = self._channels(by_place, sources)
            reached = tuple(index[self.heard[reached]] for index in reached)
            heard = np.zeros((len(self.heard), self.length), dtype=bool)
            heard[reached[0], reached[1]] = True
            self._check_heard(step, sending, heard)
            self._count(self.sent, reached)
            return
        if self._speakers is None:
            self._speakers = self._heard_sources()
        self._check_heard(step, sending, self._speakers)
        self.sent = self.sent + (by_place[:, None, :] & self.heard)

    def _heard_sources(self) -> np.ndarray:
        """The places whose data somebody ever receives, of fixed sources, [lines or 1, places or 1]."""
        sources = self.sources(None)
        shape = max(len(sources), len(self.heard)), self.length
        heard = np.zeros(shape, dtype=bool)
        line, place = np.nonzero(np.broadcast_to(self.heard[:, 0, :], shape))
        heard[line, np.broadcast_to(sources, shape)[line, place]] = True
        return joined(heard)

    def even(self) -> bool:
        """Whether on each channel as many were sent as taken."""
        return self._uneven == 0 if self.moves else not (self.sent != self.taken).any()

    def _count(self, counts: np.ndarray, channels: tuple[np.ndarray, ...]) -> None:
        before = np.count_nonzero(self.sent[channels] != self.taken[channels])
        counts[channels] += 1
        self._uneven += np.count_nonzero(self.sent[channels] != self.taken[channels]) - before

    def at_source(self, senders: np.ndarray) -> np.ndarray:
        """Of each channel, what holds of its sender; a moving source takes the middle dimension."""
        return senders[:, :, None] if self.moves else self._at_source(senders, self.sources(None))[:, None, :]

    def upstream(self, mask: np.ndarray) -> np.ndarray:
        """Whether the fixed source of each core is in a mask; both as arrays of the field."""
        found = self._at_source(self.along(mask), self.sources(None))
        return found if self.route.axis == "x" else found.T

    def _taking(self, step: Step) -> np.ndarray:
        return self.turned(self.field.mask(cores_of(step.instruction), step.loops))

    def _at_source(self, senders: np.ndarray, sources: np.ndarray) -> np.ndarray:
        if senders.shape[1] == 1:
            inside = sources >= 0
            return senders if inside.all() else senders & inside
        lines = max(senders.shape[0], sources.shape[0])
        senders = np.broadcast_to(senders, (lines, self.length))
        sources = np.broadcast_to(sources, (lines, self.length))
        return np.take_along_axis(senders, np.maximum(sources, 0), axis=1) & (sources >= 0)

    def _channels(self, mask: np.ndarray, sources: np.ndarray) -> tuple[np.ndarray, ...]:
        """The channels of destinations in a mask; on all lines where these differ."""
        self._widen(max(len(mask), len(sources)))
        shape = len(self.heard), self.length
        lines, places = np.nonzero(np.broadcast_to(mask, shape))
        return lines, np.broadcast_to(sources, shape)[lines, places], places

    def _widen(self, lines: int) -> None:
        """Count line by line from now on, if lines differ."""
        if lines <= len(self.heard):
            return
        if lines * self.length**2 > MOST_CHANNELS:
            raise TooMany(f"route '{self.route.name}' has {lines} x {self.length} x {self.length} channels")
        self.heard, self.sent, self.taken = (
            np.repeat(counts, lines, axis=0) for counts in (self.heard, self.sent, self.taken)
        )
        self._uneven = np.count_nonzero(self.sent != self.taken)

    def _check_heard(self, step: Step, sending: np.ndarray, heard: np.ndarray) -> None:
        lonely = sending & ~heard
        if lonely.any():
            raise unheard(self._core(*np.argwhere(lonely)[0].tolist()), self.route.name, step)

    def _core(self, line: int, place: int) -> str:
        return core_name(line, place) if self.route.axis == "x" else core_name(place, line)

    def check_balance(self) -> None:
        """Check at the end that as many messages were taken as sent, on every channel.

        Raises:
            UserError: not; it names route, sender, receiver, and both numbers.
        """
        sent, taken = np.broadcast_arrays(self.sent, self.taken)
        wrong = np.argwhere(sent != taken)
        if not len(wrong):
            return
        line, source, place = wrong[0].tolist()
        if not self.moves:
            sources = self.sources(None)
            source = int(np.broadcast_to(sources, (max(len(sources), line + 1), self.length))[line, place])
        have, want = int(sent[tuple(wrong[0])]), int(taken[tuple(wrong[0])])
        raise uneven(self.route.name, (self._core(line, source), self._core(line, place)), have, want, len(wrong))


def joined(mask: np.ndarray) -> np.ndarray:
    """A mask in which equal rows, and equal columns, are one."""
    mask = mask[:1] if (mask == mask[:1]).all() else mask
    return mask[:, :1] if (mask == mask[:, :1]).all() else mask


def messages_of(program: Program, field: Field, steps: list[Step]) -> dict[str, Messages]:
    """The routes of a program, with what is heard on them; nothing is counted yet.

    Raises:
        UserError: an unknown route.
        TooMany: see there.
    """
    found = {route.name: Messages(field, route) for route in program.routes}
    for step in steps:
        for name in (incoming(step.instruction), outgoing(step.instruction)):
            if name is not None and name not in found:
                raise unknown_route(name, found, step)
        if (name := incoming(step.instruction)) is not None:
            found[name].hear(step)
    return found

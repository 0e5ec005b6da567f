# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Messages on their way on one route, and whose turn it is at its ends."""

from __future__ import annotations

import numpy as np

from tilewright.core.errors import UserError
from tilewright.sim.coremesh.channels import Channels
from tilewright.sim.coremesh.program import Buffer
from tilewright.sim.coremesh.steps import Step

_NONE = -1


class Mail:
    """Messages of one route, sent and not yet taken, and the order of the instructions that send and take.

    Attributes:
        channels: of the route.
        received: messages taken from each channel, int32.
        started_in, done_in: instructions that take from the route, started and done on each core, int32 [cores].
        started_out, done_out: the same of instructions that send.
    """

    def __init__(self, channels: Channels) -> None:
        self.channels = channels
        self.received = np.zeros(channels.count, dtype=np.int32)
        cores = channels.grid.cores
        self.started_in, self.done_in, self.started_out, self.done_out = (np.zeros(cores, np.int32) for _ in range(4))
        self._sent = np.zeros(channels.count, dtype=np.int32)
        self._bundle = np.full((1, channels.count), _NONE, dtype=np.int32)
        self._row = np.zeros((1, channels.count), dtype=np.int32)
        self._bundles: dict[int, tuple[np.ndarray, np.ndarray, int]] = {}  # number: tiles, origins, deliveries left
        self._next = 0

    def put(self, senders: np.ndarray, tiles: np.ndarray, origin: np.ndarray, step: Step) -> None:
        """Send tiles [n, *shape], blocks ``origin`` [n], one of each sender (ascending), to all whom they reach."""
        deliveries = self.channels.delivered(senders, step)
        channels = deliveries.channels
        waiting = int((self._sent[channels] - self.received[channels]).max()) + 1
        if waiting > len(self._bundle):
            self._grow(waiting)
        at = self._sent[channels] % len(self._bundle)
        self._bundle[at, channels] = self._next
        self._row[at, channels] = np.searchsorted(senders, deliveries.senders)
        self._sent[channels] += 1
        self._bundles[self._next] = tiles, origin, channels.size
        self._next += 1

    def ready(self, channels: np.ndarray) -> np.ndarray:
        """Whether a message waits in each channel, bool [n]."""
        return self._sent[channels] > self.received[channels]

    def take(self, channels: np.ndarray, buffer: Buffer, step: Step) -> tuple[np.ndarray, np.ndarray]:
        """Take the first message of each channel (all must be ready), [n, *shape], and which blocks they are, [n].

        Raises:
            UserError: a message is not of the shape and dtype of the buffer's slots.
        """
        at = self.received[channels] % len(self._bundle)
        bundles, rows = self._bundle[at, channels], self._row[at, channels]
        self.received[channels] += 1
        if (bundles == bundles[0]).all():
            return self._from(int(bundles[0]), rows, buffer, step)
        tiles = np.empty((channels.size, *buffer.shape), buffer.dtype)
        origin = np.empty(channels.size, np.int32)
        for number in np.unique(bundles):
            chosen = bundles == number
            tiles[chosen], origin[chosen] = self._from(int(number), rows[chosen], buffer, step)
        return tiles, origin

    def _from(self, number: int, rows: np.ndarray, buffer: Buffer, step: Step) -> tuple[np.ndarray, np.ndarray]:
        tiles, origin, left = self._bundles.pop(number)
        if tiles.shape[1:] != buffer.shape or tiles.dtype != buffer.dtype:
            raise UserError(
                f"{step} takes a tile {tiles.dtype}{list(tiles.shape[1:])} from route '{self.channels.route.name}' for "
                f"buffer '{buffer.name}' of {buffer.dtype}{list(buffer.shape)} per slot: they must be alike."
            )
        if left > rows.size:
            self._bundles[number] = tiles, origin, left - rows.size
        return tiles[rows], origin[rows]

    def _grow(self, depth: int) -> None:
        """Make room for so many messages per channel; those that wait keep their number."""
        old = len(self._bundle)
        new = max(depth, 2 * old)
        bundle = np.full((new, self.channels.count), _NONE, dtype=np.int32)
        row = np.zeros_like(bundle)
        every = np.arange(self.channels.count)
        for offset in range(old):
            waiting = every[self.received + offset < self._sent]
            number = self.received[waiting] + offset
            bundle[number % new, waiting] = self._bundle[number % old, waiting]
            row[number % new, waiting] = self._row[number % old, waiting]
        self._bundle, self._row = bundle, row

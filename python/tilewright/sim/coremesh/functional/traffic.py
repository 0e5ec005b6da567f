# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sends, receives and relays that were started: each is done on a core once it is its turn and its data are there.

On a route, a core sends and takes in the order of the program; combinations into one slot take turns in that order too.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from tilewright.sim.coremesh.channels import Channels
from tilewright.sim.coremesh.combinations import combined
from tilewright.sim.coremesh.functional.mail import Mail
from tilewright.sim.coremesh.functional.memory import Access, Memory, Tiles
from tilewright.sim.coremesh.functional.origins import UNKNOWN
from tilewright.sim.coremesh.program import Recv, Relay, Send
from tilewright.sim.coremesh.steps import Step, incoming, outgoing


@dataclass
class Transfer:
    """One communication instruction on the cores that started it together.

    Attributes:
        number, step: of the instruction.
        cores: their numbers, ascending, int64 [n]; all other arrays have one entry for each.
        slots: index of the slot.
        access: what it does to the slot.
        done: whether it is.
        live: whether its core has yet to wait for it.
        into, out: what it takes from and sends on.
        channels, turn_in: which channel of ``into``, and which in the order of the instructions that take from it.
        turn_out: which in the order of those that send on ``out``.
        turn_slot: which in the order of those that combine into the slot.
        tiles, origin: what is sent, [n, *shape], and which blocks that are, [n], for a send.
    """

    number: int
    step: Step
    instruction: Send | Recv | Relay
    cores: np.ndarray
    slots: np.ndarray
    access: Access
    done: np.ndarray
    live: np.ndarray
    into: Mail | None = None
    out: Mail | None = None
    channels: np.ndarray = field(default_factory=lambda: np.empty(0))
    sources: np.ndarray = field(default_factory=lambda: np.empty(0))
    turn_in: np.ndarray = field(default_factory=lambda: np.empty(0))
    turn_out: np.ndarray = field(default_factory=lambda: np.empty(0))
    turn_slot: np.ndarray | None = None
    tiles: np.ndarray | None = None
    origin: np.ndarray = field(default_factory=lambda: np.empty(0, np.int32))

    def keys(self) -> tuple[tuple[str, str], ...]:
        """What it may have to wait for: turns and messages of routes, turns of a buffer."""
        keys = [("in", self.into.channels.route.name)] if self.into else []
        keys += [("out", self.out.channels.route.name)] if self.out else []
        return (*keys, ("slot", self.instruction.slot.buffer)) if self.turn_slot is not None else tuple(keys)


class Traffic:
    """Everything on its way.

    Attributes:
        mail: of each route.
        outstanding: instructions of each token that were started and are not done, int32 [cores].
        touched: tokens of which one was done since this was last cleared.
        unfinished: what is not done on all its cores, in the order in which it was started.
    """

    def __init__(self, memory: Memory, channels: dict[str, Channels], steps: list[Step]) -> None:
        self.memory, self.steps = memory, steps
        self.mail = {name: Mail(found) for name, found in channels.items()}
        self.outstanding: dict[str, np.ndarray] = defaultdict(lambda: np.zeros(memory.grid.cores, dtype=np.int32))
        self.touched: set[str] = set()
        self.unfinished: dict[int, Transfer] = {}
        self._by_key: dict[tuple[str, str], dict[int, Transfer]] = defaultdict(dict)
        self._by_token: dict[str, list[Transfer]] = defaultdict(list)

    def start(self, number: int, cores: np.ndarray) -> None:
        """Start a communication instruction on some cores."""
        step = self.steps[number]
        instruction = step.instruction
        assert isinstance(instruction, Send | Recv | Relay)
        slots = self.memory.slots(instruction.slot, instruction.cores.order, step.loops, cores, step)
        tiles = self.memory[instruction.slot.buffer]
        access = _access(instruction)
        if access != "writes":
            tiles.check_written(cores, slots, step)
        tiles.check_free(access, cores, slots, step, self.steps)
        tiles.begin(access, cores, slots, number)
        transfer = Transfer(
            number, step, instruction, cores, slots, access, np.zeros(cores.size, bool), np.ones(cores.size, bool)
        )
        self._line_up(transfer, tiles)
        self.outstanding[instruction.token][cores] += 1
        self._by_token[instruction.token].append(transfer)
        self.unfinished[id(transfer)] = transfer
        for key in transfer.keys():
            self._by_key[key][id(transfer)] = transfer
        self._progress(transfer)

    def waits(self, tokens: tuple[str, ...], cores: np.ndarray) -> np.ndarray:
        """Which cores must still wait for tokens, bool [n]."""
        waits = np.zeros(cores.size, dtype=bool)
        for token in tokens:
            waits |= self.outstanding[token][cores] > 0
        return waits

    def waited(self, tokens: tuple[str, ...], cores: np.ndarray) -> None:
        """Cores have waited for tokens: slots are free again."""
        chosen = np.zeros(self.memory.grid.cores, dtype=bool)
        chosen[cores] = True
        for token in dict.fromkeys(tokens):
            for transfer in self._by_token[token]:
                over = transfer.live & chosen[transfer.cores]
                buffer = self.memory[transfer.instruction.slot.buffer]
                buffer.end(transfer.access, transfer.cores[over], transfer.slots[over])
                transfer.live &= ~over
            self._by_token[token] = [transfer for transfer in self._by_token[token] if transfer.live.any()]

    def _line_up(self, transfer: Transfer, tiles: Tiles) -> None:
        instruction, cores = transfer.instruction, transfer.cores
        if (name := incoming(instruction)) is not None:
            transfer.into = self.mail[name]
            transfer.sources, transfer.channels = transfer.into.channels.taken(cores, transfer.step)
            transfer.turn_in = transfer.into.started_in[cores]
            transfer.into.started_in[cores] += 1
        if (name := outgoing(instruction)) is not None:
            transfer.out = self.mail[name]
            transfer.turn_out = transfer.out.started_out[cores]
            transfer.out.started_out[cores] += 1
        if transfer.access == "combines into":
            transfer.turn_slot = tiles.tickets[cores, transfer.slots]
            tiles.tickets[cores, transfer.slots] += 1
        if transfer.into is None:
            transfer.tiles = tiles.read(cores, transfer.slots).copy()
            transfer.origin = tiles.origin[cores, transfer.slots]

    def _progress(self, first: Transfer) -> None:
        """Do what can be done, and what that makes possible."""
        keys = self._advance(first)
        while keys:
            key = next(iter(keys))
            del keys[key]
            for transfer in list(self._by_key[key].values()):
                keys.update(self._advance(transfer))

    def _advance(self, transfer: Transfer) -> dict[tuple[str, str], None]:
        """Do a transfer on the cores that are ready; what others may have waited for."""
        chosen = np.flatnonzero(self._ready(transfer))
        if not chosen.size:
            return {}
        cores, slots = transfer.cores[chosen], transfer.slots[chosen]
        tiles = self.memory[transfer.instruction.slot.buffer]
        values, origin = self._values(transfer, tiles, chosen)
        changed = dict.fromkeys(transfer.keys())
        if transfer.into is not None:
            transfer.into.done_in[cores] += 1
        if transfer.turn_slot is not None:
            tiles.served[cores, slots] += 1
        if transfer.out is not None:
            transfer.out.put(cores, values, origin, transfer.step)
            transfer.out.done_out[cores] += 1
            changed["in", transfer.out.channels.route.name] = None
        else:
            tiles.write(cores, slots, values, origin)
        transfer.done[chosen] = True
        token = transfer.instruction.token
        self.outstanding[token][cores] -= 1
        self.touched.add(token)
        if transfer.done.all():
            transfer.tiles = None
            del self.unfinished[id(transfer)]
            for key in transfer.keys():
                del self._by_key[key][id(transfer)]
        return changed

    def _ready(self, transfer: Transfer) -> np.ndarray:
        ready = ~transfer.done
        if transfer.into is not None:
            ready &= transfer.turn_in == transfer.into.done_in[transfer.cores]
            ready &= transfer.into.ready(transfer.channels)
        if transfer.out is not None:
            ready &= transfer.turn_out == transfer.out.done_out[transfer.cores]
        if transfer.turn_slot is not None:
            tiles = self.memory[transfer.instruction.slot.buffer]
            ready &= transfer.turn_slot == tiles.served[transfer.cores, transfer.slots]
        return ready

    def _values(self, transfer: Transfer, tiles: Tiles, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What is stored or sent on, [n, *shape], and which blocks of inputs that are, [n]."""
        if transfer.into is None:
            assert transfer.tiles is not None
            return transfer.tiles[chosen], transfer.origin[chosen]
        values, origin = transfer.into.take(transfer.channels[chosen], tiles.buffer, transfer.step)
        combine = getattr(transfer.instruction, "combine", None)
        if combine is None:
            return values, origin
        values = combined(combine, tiles.read(transfer.cores[chosen], transfer.slots[chosen]), values)
        return values, np.full_like(origin, UNKNOWN)


def _access(instruction: Send | Recv | Relay) -> Access:
    if isinstance(instruction, Recv):
        return "writes" if instruction.combine is None else "combines into"
    return "reads"

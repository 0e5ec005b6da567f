# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every core of a program by itself, without time: the Kahn network with the buffers that the machine surely has.

What was sent leaves its core once a receive is posted for it, or the routers on the way hold it: their queues, per
color and hop. What streams through a relay moves only if the relay's own receivers take it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from tilewright.sim.coremesh.checks.field import Field, core_name
from tilewright.sim.coremesh.program import Program, Recv, Relay, Send, Wait
from tilewright.sim.coremesh.steps import Step, cores_of, incoming, outgoing

#: A core: row and column.
Core = tuple[int, int]
#: Route, sender, receiver.
Channel = tuple[str, Core, Core]


@dataclass(eq=False)
class Transfer:
    """One asynchronous instruction of one core.

    Attributes:
        taken: channel it receives on, and the ordinal there.
        given: channels it sends on, and the ordinals there.
        before: transfers of the same core that its engines finish before.
        drains: it takes what comes; ``accepted``: what it sends can go; ``flows``: there is something to send.
    """

    core: Core
    step: Step
    taken: tuple[Channel, int] | None = None
    given: list[tuple[Channel, int]] = field(default_factory=list)
    before: list[Transfer] = field(default_factory=list)
    drains: bool = False
    accepted: bool = False
    flows: bool = False
    done: bool = False


class Network:
    """All cores and transfers of a run.

    Attributes:
        transfers: that were started and are not done.
        stands: step of each core that waits.
        sent, posted: transfers by channel, in order.
    """

    def __init__(self, program: Program, field_: Field, steps: list[Step], depth: int, wavelet_bytes: int) -> None:
        self.steps, self.depth = steps, depth
        self.routes = {route.name: route for route in program.routes}
        self.field = field_
        self.masks = [self._full(field_.mask(cores_of(step.instruction), step.loops)) for step in steps]
        buffers = {buffer.name: buffer for buffer in program.buffers}
        self.wavelets = {
            name: -(-int(np.prod(one.shape, dtype=np.int64)) * one.dtype.itemsize // wavelet_bytes)
            for name, one in buffers.items()
        }
        self.heard: set[Channel] = set()
        self.sent: dict[Channel, list[Transfer]] = defaultdict(list)
        self.posted: dict[Channel, list[Transfer]] = defaultdict(list)
        self.engines: dict[tuple[Core, str, str], Transfer] = {}
        self.open_tokens: dict[tuple[Core, str], list[Transfer]] = defaultdict(list)
        self.transfers: list[Transfer] = []
        self.stands: dict[Core, int] = {}
        for step, mask in zip(steps, self.masks, strict=True):
            if (name := incoming(step.instruction)) is not None:
                for row, column in np.argwhere(mask).tolist():
                    self.heard.add((name, self.source(name, (row, column), step), (row, column)))

    def _full(self, array: np.ndarray) -> np.ndarray:
        return np.broadcast_to(array, (self.field.height, self.field.width))

    def source(self, route: str, core: Core, step: Step) -> Core:
        """From whom a core receives at a step."""
        place = int(self._full(self.field.sources(self.routes[route], step.loops))[core])
        return (core[0], place) if self.routes[route].axis == "x" else (place, core[1])

    def run(self) -> bool:
        """Run until nothing moves. Returns whether all cores came to the end and all transfers are done."""
        ready = {(y, x): 0 for y in range(self.field.height) for x in range(self.field.width)}
        while ready:
            for core, at in ready.items():
                self._advance(core, at)
            self._settle()
            ready = {core: at for core, at in self.stands.items() if not self.blocking(core)}
        return not self.stands and not self.transfers

    def blocking(self, core: Core) -> list[Transfer]:
        """The transfers that a core waits for."""
        wait = self.steps[self.stands[core]].instruction
        assert isinstance(wait, Wait)
        return [one for token in wait.tokens for one in self.open_tokens[core, token] if not one.done]

    def _advance(self, core: Core, at: int) -> None:
        self.stands.pop(core, None)
        for number in range(at, len(self.steps)):
            step = self.steps[number]
            instruction = step.instruction
            if isinstance(instruction, Wait):
                self.stands[core] = number
                if self.blocking(core):
                    return
                for token in instruction.tokens:
                    self.open_tokens[core, token].clear()
            elif isinstance(instruction, Send | Recv | Relay) and self.masks[number][core]:
                self._start(core, step, instruction)
        self.stands.pop(core, None)

    def _start(self, core: Core, step: Step, instruction: Send | Recv | Relay) -> None:
        transfer = Transfer(core, step)
        if (name := incoming(instruction)) is not None:
            channel = name, self.source(name, core, step), core
            transfer.taken = channel, len(self.posted[channel])
            self.posted[channel].append(transfer)
            self._queue(transfer, (core, name, "in"))
        if (name := outgoing(instruction)) is not None:
            for channel in self._receivers(name, core, step):
                transfer.given.append((channel, len(self.sent[channel])))
                self.sent[channel].append(transfer)
            self._queue(transfer, (core, name, "out"))
        self.open_tokens[core, instruction.token].append(transfer)
        self.transfers.append(transfer)

    def _queue(self, transfer: Transfer, engine: tuple[Core, str, str]) -> None:
        if (last := self.engines.get(engine)) is not None and last is not transfer:
            transfer.before.append(last)
        self.engines[engine] = transfer

    def _receivers(self, route: str, core: Core, step: Step) -> list[Channel]:
        along = self.routes[route].axis == "x"
        sources = self._full(self.field.sources(self.routes[route], step.loops))
        line, place = (sources[core[0]], core[1]) if along else (sources[:, core[1]], core[0])
        places = np.flatnonzero(line == place).tolist()
        channels = [(route, core, (core[0], to) if along else (to, core[1])) for to in places]
        return [channel for channel in channels if channel in self.heard]

    def _settle(self) -> None:
        """Find all that can move now: states only ever go from false to true."""
        moved = True
        while moved:
            moved = False
            for transfer in [*self.transfers, *reversed(self.transfers)]:
                moved |= self._update(transfer)
            self.transfers = [one for one in self.transfers if not one.done]

    def _update(self, one: Transfer) -> bool:
        old = one.drains, one.accepted, one.flows, one.done
        first = all(other.done for other in one.before)
        one.accepted = one.accepted or all(self.takes(channel, ordinal) for channel, ordinal in one.given)
        one.drains = one.drains or (first and one.accepted)
        message = self.message(one)
        there = one.taken is None or (message is not None and message.flows and message.accepted)
        one.flows = one.flows or (first and there)
        one.done = one.done or (one.flows and one.accepted and one.drains)
        return old != (one.drains, one.accepted, one.flows, one.done)

    def message(self, one: Transfer) -> Transfer | None:
        """Who sends what a transfer receives; None: nobody yet, or it receives nothing."""
        if one.taken is None:
            return None
        channel, ordinal = one.taken
        sent = self.sent[channel]
        return sent[ordinal] if ordinal < len(sent) else None

    def takes(self, channel: Channel, ordinal: int) -> bool:
        """Whether a message can leave its sender as far as one receiver is concerned."""
        posted = self.posted[channel]
        if ordinal < len(posted) and posted[ordinal].drains:
            return True
        ready = sum(one.drains for one in posted[:ordinal])
        held = sum(self._size(one) for one in self.sent[channel][ready : ordinal + 1])
        _, source, to = channel
        return held <= self.depth * (abs(source[0] - to[0]) + abs(source[1] - to[1]))

    def _size(self, one: Transfer) -> int:
        return self.wavelets[one.step.instruction.slot.buffer]


def cycle(network: Network) -> list[str]:
    """Who waits for whom in a run that stopped: one line per transfer, the last waits for the first again.

    Where something waits for what never comes, the lines end there.
    """
    start = min(network.stands) if network.stands else None
    one = network.blocking(start)[0] if start is not None else network.transfers[0]
    order: list[Transfer] = []
    lines: list[str] = []
    while one not in order:
        order.append(one)
        text, following = _reason(network, one)
        lines.append(f"{core_name(*one.core)}: {one.step} {text}")
        if following is None:
            return lines
        one = following
    return lines[order.index(one) :]


def _reason(network: Network, one: Transfer) -> tuple[str, Transfer | None]:
    """Why a transfer is not done, and the one that would have to be before."""
    for other in one.before:
        if not other.done:
            return "comes after another on the same route", other
    if one.taken is not None and not one.flows:
        (route, source, _), ordinal = one.taken
        message = network.message(one)
        if message is None:
            return _behind(network, source, f"needs message {ordinal + 1} on '{route}' of {core_name(*source)}")
        if not message.flows or not message.accepted:
            return f"needs what {core_name(*source)} sends on '{route}'", message
    for (route, _, to), ordinal in one.given:
        if not network.takes((route, one.core, to), ordinal):
            posted = network.posted[route, one.core, to]
            if ordinal < len(posted):
                return f"needs {core_name(*to)} to take it on '{route}'", posted[ordinal]
            return _behind(network, to, f"needs {core_name(*to)} to receive on '{route}'")
    return "is not done", None


def _behind(network: Network, core: Core, need: str) -> tuple[str, Transfer | None]:
    if core not in network.stands:
        return f"{need}, which has come to its end", None
    return f"{need}, which waits at {network.steps[network.stands[core]]}", network.blocking(core)[0]

# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""No deadlock, by one schedule: all cores at once through the program, instruction by instruction.

If at each wait everything is under way that its transfers need, without a wavelet kept on the way, that schedule ends.
A program is a Kahn network, whose results and progress do not depend on the schedule (mlir-aie's deadlock model argues
so): then every schedule ends. Relays that stream from one to the next must begin at a core that sends from memory.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from tilewright.sim.coremesh.checks.field import Field
from tilewright.sim.coremesh.checks.messages import Messages, joined
from tilewright.sim.coremesh.program import Recv, Relay, Send, Wait
from tilewright.sim.coremesh.steps import Step


class ProgramOrder:
    """The schedule, up to the first wait that it cannot pass.

    Attributes:
        stuck: why it could not go on; None: it could.
    """

    def __init__(self, field: Field, messages: dict[str, Messages]) -> None:
        self.field, self.messages = field, messages
        self.stuck: str | None = None
        self.open: dict[str, list[Step]] = defaultdict(list)  # by token
        self.relays: dict[str, dict[str, np.ndarray]] = defaultdict(dict)  # outgoing: incoming: who ever relayed

    def run(self, steps: list[Step]) -> None:
        """Go through all steps; all messages are counted, also after the schedule is stuck.

        Raises:
            UserError: a send that nobody receives.
        """
        for step in steps:
            instruction = step.instruction
            if isinstance(instruction, Send):
                self.messages[instruction.route].send(step)
            elif isinstance(instruction, Recv):
                self.messages[instruction.route].take(step)
            elif isinstance(instruction, Relay):
                self._relay(instruction, step)
            if isinstance(instruction, Send | Recv | Relay):
                self.open[instruction.token].append(step)
            elif isinstance(instruction, Wait):
                self._wait(instruction, step)
        if self.stuck is None and (circle := self._circle()) is not None:
            self.stuck = circle

    def _relay(self, instruction: Relay, step: Step) -> None:
        self.messages[instruction.incoming].take(step)
        self.messages[instruction.outgoing].send(step)
        mask = self.field.mask(instruction.cores, step.loops)
        if not mask.any():
            return
        old = self.relays[instruction.outgoing].get(instruction.incoming, np.zeros((1, 1), dtype=bool))
        self.relays[instruction.outgoing][instruction.incoming] = old | mask

    def _wait(self, wait: Wait, step: Step) -> None:
        done = [started for token in wait.tokens for started in self.open.pop(token, ())]
        if self.stuck is not None:
            return
        seen: set[tuple[str, str, int]] = set()
        for started in done:
            mask = self.field.mask(started.instruction.cores, started.loops)
            for kind, route in _ends(started.instruction):
                if (kind, route, id(mask)) in seen:
                    continue
                seen.add((kind, route, id(mask)))
                problem = self._sent(route, mask) if kind == "out" else self._arrived(route, mask)
                if problem:
                    self.stuck = f"{step} waits for {started}: {problem}"
                    return

    def _sent(self, route: str, mask: np.ndarray) -> str | None:
        """Why what these cores have sent on a route may not all leave."""
        messages = self.messages[route]
        if messages.even():
            return None
        mine = messages.at_source(messages.turned(mask))
        if (mine & (messages.taken < messages.sent)).any():
            return f"not all of its receivers on route '{route}' have started to receive"
        return None

    def _arrived(self, route: str, mask: np.ndarray) -> str | None:
        """Why what these cores have started to receive on a route may not all arrive."""
        problem = self._reaches(route, mask)
        ahead, seen = [route], {route}
        while problem is None and ahead:
            for incoming, who in self.relays[ahead.pop()].items():
                problem = problem or self._reaches(incoming, who)
                if incoming not in seen:
                    seen.add(incoming)
                    ahead.append(incoming)
        return problem

    def _reaches(self, route: str, mask: np.ndarray) -> str | None:
        messages = self.messages[route]
        if messages.even():
            return None
        receiving = messages.turned(mask)[:, None, :] & (messages.taken > 0)
        if (receiving & (messages.sent < messages.taken)).any():
            return f"what arrives on route '{route}' is not sent before"
        slow = messages.taken < messages.sent  # a receiver that stops a multicast, or the messages before
        if not slow.any():
            return None
        if messages.moves:
            return f"route '{route}' still has an earlier message that nobody receives yet"
        sources = messages.sources(None)
        lines = max(slow.shape[0], sources.shape[0])
        blocked = np.zeros((lines, messages.length), dtype=bool)
        line, place = np.nonzero(np.broadcast_to(slow[:, 0, :], blocked.shape))
        blocked[line, np.broadcast_to(sources, blocked.shape)[line, place]] = True
        if (receiving & messages.at_source(blocked)).any():
            return f"another receiver on route '{route}' has not started to receive"
        return None

    def _circle(self) -> str | None:
        """Why streams of relays may run in a circle: some are left once all that begin at a send are taken out."""
        left = {
            (incoming, outgoing): joined(mask)
            for outgoing, by_route in self.relays.items()
            for incoming, mask in by_route.items()
        }
        if moving := sorted({route for pair in left for route in pair if self.messages[route].moves}):
            return f"relays receive or send on routes {moving}, whose sources move"
        while any(mask.any() for mask in left.values()):
            feeding: dict[str, np.ndarray] = {}
            for (_, outgoing), mask in left.items():
                feeding[outgoing] = mask | feeding.get(outgoing, np.zeros((1, 1), dtype=bool))
            after = {
                pair: mask & self.messages[pair[0]].upstream(feeding[pair[0]]) if pair[0] in feeding else mask & False
                for pair, mask in left.items()
            }
            if all(np.array_equal(after[pair], left[pair]) for pair in left):
                names = sorted({route for pair, mask in left.items() if mask.any() for route in pair})
                return f"relays on routes {names} feed each other in a circle"
            left = after
        return None


def _ends(instruction: Send | Recv | Relay) -> list[tuple[str, str]]:
    if isinstance(instruction, Relay):
        return [("in", instruction.incoming), ("out", instruction.outgoing)]
    return [("out" if isinstance(instruction, Send) else "in", instruction.route)]

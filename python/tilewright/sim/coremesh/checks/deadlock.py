# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whether a program's cores may wait for each other for ever: yes with the cycle, no, or undecided with the reason.

First one schedule for all cores at once, which costs as much as a line (`program_order`); where that one is stuck, and
the grid is small, each core by itself (`kahn`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tilewright.core.errors import UserError
from tilewright.sim.coremesh.checks.field import Field
from tilewright.sim.coremesh.checks.kahn import Network, cycle
from tilewright.sim.coremesh.checks.messages import TooMany, messages_of
from tilewright.sim.coremesh.checks.program_order import ProgramOrder
from tilewright.sim.coremesh.machine import Machine
from tilewright.sim.coremesh.program import Program
from tilewright.sim.coremesh.steps import Step, unroll

#: Steps times cores that are looked at one by one.
MOST_EVENTS = 400_000
#: Lines of a cycle that a message shows.
_SHOWN = 12


@dataclass(frozen=True)
class Verdict:
    """What is known about deadlocks.

    Attributes:
        why: the schedule that ends; the reason why nothing is known.
        cycle: of a deadlock, one line per transfer.
    """

    kind: Literal["accept", "deadlock", "undecided"]
    why: str = ""
    cycle: tuple[str, ...] = ()

    def check(self) -> None:
        """Raise UserError for a deadlock."""
        if self.kind != "deadlock":
            return
        shown = self.cycle if len(self.cycle) <= _SHOWN else (*self.cycle[:_SHOWN], f"... {len(self.cycle)} in all")
        raise UserError(
            f"Deadlock: {self.why}\n  " + "\n  ".join(shown) + "\nStart one of these before the wait that it stands "
            "behind, or let the cores of the cycle differ in the order of sending and receiving."
        )


def deadlock_verdict(
    program: Program, machine: Machine, field: Field | None = None, steps: list[Step] | None = None
) -> Verdict:
    """Whether a program ends on a machine, whatever the timing.

    Raises:
        UserError: a send that nobody receives, a receive that nobody sends for; it names route and cores.
    """
    field, steps = field or Field(program), steps if steps is not None else unroll(program)
    try:
        messages = messages_of(program, field, steps)
        order = ProgramOrder(field, messages)
        order.run(steps)
        for one in messages.values():
            one.check_balance()
    except TooMany as reason:
        return Verdict("undecided", f"{reason}: too many to count")
    if order.stuck is None:
        return Verdict("accept", "all cores can go through it side by side, with no buffer on the way")
    events = field.height * field.width * len(steps)
    if events > MOST_EVENTS:
        return Verdict(
            "undecided",
            f"side by side the cores are stuck where {order.stuck}; {events} steps of single cores are too many to "
            f"look at (at most {MOST_EVENTS}). Check the program on fewer cores or in fewer rounds.",
        )
    network = Network(program, field, steps, machine.mesh.queue_depth, max(1, int(machine.mesh.link_bytes_per_cycle)))
    if network.run():
        return Verdict("accept", f"each core by itself comes to its end ({events} steps)")
    waiting = len(network.stands) or len(network.transfers)
    return Verdict("deadlock", f"{waiting} cores wait for ever; these for each other:", tuple(cycle(network)))

# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A program's loops undone: one step per instruction that is started, in the order of the program."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tilewright.core.errors import UserError
from tilewright.sim.coremesh.program import Compute, Cores, Instruction, Loop, Program, Recv, Relay, Send, Slot, Wait

#: Steps of a program that a simulator undoes at most, before it says that the program is too long for it.
MOST_STEPS = 4_000_000


@dataclass(frozen=True)
class Step:
    """One instruction at one value of the loops around it.

    Attributes:
        path: index in the body, then in the bodies of the loops inside.
        loops: their indices, outermost first.
    """

    instruction: Instruction
    path: tuple[int, ...]
    loops: tuple[int, ...]

    def __str__(self) -> str:
        """How messages name it."""
        where = "body" + "".join(f"[{index}]" for index in self.path)
        at = f" at loop indices {self.loops}" if self.loops else ""
        return f"{_what(self.instruction)} ({where}{at})"


def unroll(program: Program) -> list[Step]:
    """All steps of a program.

    Raises:
        UserError: there are more than `MOST_STEPS`.
    """
    if (count := _count(program.body)) > MOST_STEPS:
        raise UserError(
            f"Program '{program.name}' has {count} steps, counted with all turns of its loops, and the functional and "
            f"the wavelet simulator take {MOST_STEPS}. Simulate fewer turns, or use the timing model of whole machines."
        )
    return list(_walk(program.body, (), ()))


def _count(body: tuple[Instruction, ...]) -> int:
    return sum(max(one.count, 0) * _count(one.body) if isinstance(one, Loop) else 1 for one in body)


def _walk(body: tuple[Instruction, ...], path: tuple[int, ...], loops: tuple[int, ...]) -> Iterator[Step]:
    for number, instruction in enumerate(body):
        here = (*path, number)
        if isinstance(instruction, Loop):
            for turn in range(instruction.count):
                yield from _walk(instruction.body, here, (*loops, turn))
        else:
            yield Step(instruction, here, loops)


def slots_of(instruction: Instruction) -> tuple[Slot, ...]:
    """All slots that an instruction touches."""
    if isinstance(instruction, Compute):
        return (*instruction.reads, *instruction.writes)
    return (instruction.slot,) if isinstance(instruction, Send | Recv | Relay) else ()


def cores_of(instruction: Instruction) -> Cores:
    """Who takes part in an instruction; a wait and a loop are everybody's."""
    return Cores() if isinstance(instruction, Wait | Loop) else instruction.cores


def incoming(instruction: Instruction) -> str | None:
    """The route that an instruction receives on."""
    if isinstance(instruction, Relay):
        return instruction.incoming
    return instruction.route if isinstance(instruction, Recv) else None


def outgoing(instruction: Instruction) -> str | None:
    """The route that an instruction sends on."""
    if isinstance(instruction, Relay):
        return instruction.outgoing
    return instruction.route if isinstance(instruction, Send) else None


def _what(instruction: Instruction) -> str:
    if isinstance(instruction, Compute):
        return f"Compute '{instruction.name}'"
    if isinstance(instruction, Relay):
        return f"Relay '{instruction.incoming}' -> '{instruction.outgoing}'"
    if isinstance(instruction, Send | Recv):
        return f"{type(instruction).__name__} on '{instruction.route}'"
    return f"Wait for {', '.join(repr(token) for token in getattr(instruction, 'tokens', ()))}"

# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tiles of an operand that go round a ring of cores: alignment, and one shift per round.

Along an axis of ``length`` cores the ring has ``length * held`` places, ``held`` per core. A shift moves each tile to
the next place; so one tile per core crosses to the next core. Memory is a circle of ``held + 1`` slots: what arrives
takes the slot that was sent the round before (double buffers where a core holds one tile). Which slot holds which place
is kept as an expression: after an odd number of shifts it is another one, and after an alignment it differs from line
to line.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from tilewright.plan.mesh.terms import P, Term, TermLike, X, Y, at_least, less, term
from tilewright.plan.mesh.writer import Axis, Writer, cores, slot
from tilewright.sim.coremesh.program import Order, Slot

#: What is done with a tile in a round, besides multiplying it: its slot, and how many shifts were made before.
Passing = Callable[[Slot, TermLike], None]


@dataclass(frozen=True)
class Rotation:
    """An operand on a ring.

    Attributes:
        buffer: its memory, of ``slots(length, held)`` slots.
        length: of the ring, in cores: those of the axis, or of neighbours along it that are a ring of their own;
            ``held``: tiles per core.
        base: place j of a core lies in slot ``j + base``, modulo the number of slots; of (y, x).
    """

    buffer: str
    axis: Axis
    order: Order
    length: int
    held: int
    base: Term = term(0)

    def at(self, place: TermLike, shifted: TermLike = 0) -> Slot:
        """Where a place of each core lies after a number of shifts."""
        return slot(self.buffer, (self.base + place - shifted) % slots(self.length, self.held))

    def start_shift(self, writer: Writer, shifted: TermLike) -> list[str]:
        """Send the tile of the last place on, receive one as the first. Returns tokens.

        Args:
            shifted: how many shifts were made before.
        """
        if self.length == 1:
            return []
        route = forward(writer, self)
        who = cores(order=self.order)
        return [
            writer.send(who, route, self.at(self.held - 1, shifted)),
            writer.recv(who, route, self.at(-1, shifted)),
        ]

    def after(self, shifts: int) -> Rotation:
        """The same operand after that many shifts."""
        return replace(self, base=(self.base - shifts) % slots(self.length, self.held))


def slots(length: int, held: int) -> int:
    """Slots of memory that a rotating operand needs per core: one more than tiles, where there is a neighbour."""
    return held + (length > 1)


def forward(writer: Writer, operand: Rotation) -> str:
    """The route to the next core of the ring."""
    source = (P - 1) % operand.length
    if operand.length < writer.length(operand.axis):
        source += P // operand.length * operand.length
    return writer.route(f"{operand.axis}_forward", operand.axis, source, operand.order)


def backward(writer: Writer, operand: Rotation) -> str:
    """The route to the core before."""
    return writer.route(f"{operand.axis}_backward", operand.axis, (P + 1) % operand.length, operand.order)


def align(writer: Writer, operands: list[tuple[Rotation, int]]) -> list[Rotation]:
    """Move operands so that place j of line I holds what was at place ``j + I * pace``: Cannon's skew.

    Each line takes the shorter way round, so that the worst distance is half a ring; operands move side by side.

    Args:
        operands: each with its pace. Lines are numbered across the operand's axis.

    Returns:
        the operands, with their slots as they are then.
    """
    rounds = max((_rounds(operand, pace, _across(writer, operand)) for operand, pace in operands), default=0)
    with writer.loop(rounds) as step:
        tokens = [
            token
            for operand, pace in operands
            if operand.length > 1 and _across(writer, operand) > 1
            for token in _align_step(writer, operand, pace, step)
        ]
        if rounds:
            writer.wait(tokens, "round")
    return [_aligned(operand, pace) for operand, pace in operands]


def _across(writer: Writer, operand: Rotation) -> int:
    return writer.length("y" if operand.axis == "x" else "x")


def _line(operand: Rotation) -> Term:
    return Y if operand.axis == "x" else X


def _rounds(operand: Rotation, pace: int, lines: int) -> int:
    places = operand.length * operand.held
    if operand.length == 1:
        return 0
    return max(min(line * pace, places - line * pace) if line else 0 for line in range(lines))


def _align_step(writer: Writer, operand: Rotation, pace: int, step: Term) -> list[str]:
    """One step of all lines that have not arrived: backward where the way is at most half a ring, else forward."""
    places = operand.length * operand.held
    distance = _line(operand) * pace
    back = cores(at_least(places // 2, distance), less(step, distance), order=operand.order)
    ahead = cores(less(places // 2, distance), less(step, places - distance), order=operand.order)
    to_before, to_next = backward(writer, operand), forward(writer, operand)
    return [
        writer.send(back, to_before, operand.at(step)),
        writer.recv(back, to_before, operand.at(step + operand.held)),
        writer.send(ahead, to_next, operand.at(operand.held - 1, step)),
        writer.recv(ahead, to_next, operand.at(-1, step)),
    ]


def _aligned(operand: Rotation, pace: int) -> Rotation:
    """Backward shifts advance the slots, forward ones set them back; both modulo the number of slots."""
    places = operand.length * operand.held
    distance = _line(operand) * pace
    went_ahead = distance // (places // 2 + 1)
    return replace(operand, base=operand.base + distance - went_ahead * places)

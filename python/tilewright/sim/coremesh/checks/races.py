# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Slots that are touched while a transfer still uses them, and slots that are read before they hold anything.

A core's accesses follow each other in the order of the program, whatever other cores do: what is in flight there is
known without time. From the start of an asynchronous instruction to the wait for its token its slot is in use.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.core.errors import UserError
from tilewright.sim.coremesh.checks.field import Field, core_name
from tilewright.sim.coremesh.program import Compute, Cores, Place, Program, Recv, Relay, Send, Slot, Wait
from tilewright.sim.coremesh.steps import Step, unroll


@dataclass(eq=False)
class _Flight:
    """An asynchronous access that no wait has ended yet, on the cores of ``mask``."""

    step: Step
    token: str
    kind: str  # "read", "write" or "combine"
    mask: np.ndarray


def check_races(program: Program, field: Field | None = None, steps: list[Step] | None = None) -> None:
    """Check that no core touches a slot in flight, and that none reads a slot that holds nothing.

    Raises:
        UserError: the first such access; it names core, slot, and both instructions. Also an unknown buffer, a slot
            that the buffer does not have, and an output that is still in flight, or holds nothing, at the end.
    """
    field = field or Field(program)
    Slots(program, field).run(steps if steps is not None else unroll(program))


#: Slots that are tried one by one.
_SHORT = 8


class Slots:
    """What the slots of all cores hold and what is in flight there, while a program is walked through."""

    def __init__(self, program: Program, field: Field) -> None:
        self.program, self.field = program, field
        self.buffers = {buffer.name: buffer for buffer in program.buffers}
        self.holds: dict[tuple[str, int], np.ndarray] = {}
        self.flights: dict[tuple[str, int], list[_Flight]] = {}
        self.waits: dict[str, list[tuple[tuple[str, int], _Flight]]] = {}

    def run(self, steps: list[Step]) -> None:
        """Walk through all steps; raises at the first access that breaks a rule."""
        everyone = np.ones((1, 1), dtype=bool)
        for place in self.program.inputs:
            for key, mask in self.slots(place.slot, everyone, Cores(order=place.order), (), f"input '{place.name}'"):
                self._hold(key, mask)
        for step in steps:
            self._step(step)
        for place in self.program.outputs:
            where = f"output '{place.name}'"
            self._access(None, place.slot, self.collected(place), Cores(order=place.order), (), "read", where)

    def collected(self, place: Place) -> np.ndarray:
        """Cores whose block of an output is one of the tensor: those behind it hold padding."""
        mask = np.ones((1, 1), dtype=bool)
        if place.slot.buffer not in self.buffers:
            return mask
        for expr, size, tile in zip(place.block, place.shape, self.buffers[place.slot.buffer].shape, strict=False):
            block = self.field.index(expr, place.order, ())
            mask = mask & (block >= 0) & (block * tile < size)
        return mask

    def _step(self, step: Step) -> None:
        instruction = step.instruction
        if isinstance(instruction, Wait):
            self._end(instruction)
            return
        mask = self.field.mask(instruction.cores, step.loops)
        for slot, kind in accesses(instruction):
            self._access(step, slot, mask, instruction.cores, step.loops, kind, str(step))

    def slots(
        self, slot: Slot, mask: np.ndarray, cores: Cores, loops: tuple[int, ...], where: str
    ) -> list[tuple[tuple[str, int], np.ndarray]]:
        """The slots that cores of a mask touch, each with those that touch it."""
        if slot.buffer not in self.buffers:
            raise UserError(
                f"Buffer '{slot.buffer}' is not a buffer of the program, which has {sorted(self.buffers)}.",
                location=where,
            )
        index = self.field.index(slot.index, cores.order, loops)
        have = self.buffers[slot.buffer].slots
        found = []
        one = index.size == 1
        for value in _values(index):
            touching = mask if one else mask & (index == value)
            if not touching.any():
                continue
            if not 0 <= value < have:
                raise UserError(
                    f"{core_name(*self.field.first(touching))} touches slot {value} of buffer '{slot.buffer}', which "
                    f"has {have}: slots 0 to {have - 1}. Give the buffer more slots, or take the index modulo {have}.",
                    location=where,
                )
            found.append(((slot.buffer, value), touching))
        return found

    def _access(
        self,
        step: Step | None,
        slot: Slot,
        mask: np.ndarray,
        cores: Cores,
        loops: tuple[int, ...],
        kind: str,
        where: str,
    ) -> None:
        if not mask.any():
            return
        for key, touching in self.slots(slot, mask, cores, loops, where):
            self._check_flights(key, touching, kind, where)
            if kind != "write":
                self._check_holds(key, touching, kind, where)
            else:
                self._hold(key, touching)
            if step is not None and not isinstance(step.instruction, Compute):
                flight = _Flight(step, step.instruction.token, kind, touching)
                self.flights.setdefault(key, []).append(flight)
                self.waits.setdefault(flight.token, []).append((key, flight))

    def _check_flights(self, key: tuple[str, int], mask: np.ndarray, kind: str, where: str) -> None:
        for flight in self.flights.get(key, ()):
            # Reads beside reads are safe; combining receives are put in the order of the program by the machine.
            if kind == flight.kind != "write" or not (both := mask & flight.mask).any():
                continue
            verb = {"read": "reads", "write": "writes", "combine": "combines into"}[kind]
            raise UserError(
                f"Race: {core_name(*self.field.first(both))} {verb} slot {key[1]} of buffer '{key[0]}' while "
                f"{flight.step} still {'reads' if flight.kind == 'read' else 'writes'} it: between the start of an "
                f"asynchronous instruction and the wait for its token the slot is in use. Wait for '{flight.token}' "
                "before, or use another slot.",
                location=where,
            )

    def _check_holds(self, key: tuple[str, int], mask: np.ndarray, kind: str, where: str) -> None:
        if _is_full(held := self.holds.get(key, np.zeros((1, 1), dtype=bool))):
            return
        empty = mask & ~held
        if empty.any():
            verb = "reads" if kind == "read" else "combines into"
            raise UserError(
                f"{core_name(*self.field.first(empty))} {verb} slot {key[1]} of buffer '{key[0]}' before anything was "
                f"written or received there ({self.field.size(empty)} cores do). Fill it before: by an input, a "
                "computation or a receive.",
                location=where,
            )

    def _hold(self, key: tuple[str, int], mask: np.ndarray) -> None:
        if _is_full(held := self.holds.get(key, np.zeros((1, 1), dtype=bool))):
            return
        holds = mask | held
        self.holds[key] = np.ones((1, 1), dtype=bool) if holds.all() else holds

    def _end(self, wait: Wait) -> None:
        for token in wait.tokens:
            for key, flight in self.waits.pop(token, ()):
                self.flights[key].remove(flight)


def _values(index: np.ndarray) -> Sequence[int]:
    """What is in an array, or a short range around it: sorting what all cores have takes longer."""
    low, high = int(index.min()), int(index.max())
    return range(low, high + 1) if high - low < _SHORT else np.unique(index).tolist()


def _is_full(holds: np.ndarray) -> bool:
    """Whether a slot holds something on all cores: full masks are kept as one element."""
    return holds.size == 1 and bool(holds[0, 0])


def accesses(instruction: Compute | Send | Recv | Relay) -> list[tuple[Slot, str]]:
    """The slots that an instruction touches, and how: ``read``, ``write``, or ``combine`` with what is there."""
    if isinstance(instruction, Compute):
        return [(slot, "read") for slot in instruction.reads] + [(slot, "write") for slot in instruction.writes]
    if isinstance(instruction, Recv):
        return [(instruction.slot, "combine" if instruction.combine else "write")]
    return [(instruction.slot, "read")]

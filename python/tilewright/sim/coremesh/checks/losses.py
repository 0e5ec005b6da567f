# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values that are lost: received and never used, or overwritten before anybody has read them.

What costs a link and memory is meant to be used: a loss is nearly always a wrong slot, a sum that was stored, or a core
too many. Three are errors, as the program contradicts itself:

- two receives store one after the other, with nobody reading between;
- what was combined on its way by relays is stored over an input that nobody has read: this core's part of the sum;
- what a message or a kernel put into one of several slots is never used, and an older value of another was read again
  after that (see `stale`).

Mere waste is a warning: what is left over at the end, what one receive in a loop takes past cores that do not use it,
an input that is overwritten, which may be room that is free (as in a cache, or before a broadcast).
"""

from __future__ import annotations

import numpy as np

from tilewright.core.errors import UserError
from tilewright.sim.coremesh.checks.field import Field, core_name
from tilewright.sim.coremesh.checks.races import Slots, accesses
from tilewright.sim.coremesh.checks.stale import Stale, Value
from tilewright.sim.coremesh.program import Cores, Program, Recv, Relay, Slot, Wait
from tilewright.sim.coremesh.steps import Step, unroll

#: Losses that are reported at most.
_MOST = 8


def lost_values(program: Program, field: Field | None = None, steps: list[Step] | None = None) -> tuple[str, ...]:
    """A sentence for each kind of loss, the first ones; it names core, slot, and both instructions.

    Raises:
        UserError: a receive stores over what another one took, or a sum over an input, and nobody has read that; or an
            older value is read again in the place of one that is never used.
    """
    losses = _Losses(program, field or Field(program))
    losses.run(steps if steps is not None else unroll(program))
    return tuple(losses.found)


class _Losses:
    def __init__(self, program: Program, field: Field) -> None:
        self.program, self.field = program, field
        self.slots = Slots(program, field)
        self.values: dict[tuple[str, int], list[Value]] = {}
        self.steps: list[Step] = []
        self.stale = Stale(field, [])
        self.summed: set[str] = set()
        self.found: dict[str, None] = {}

    def run(self, steps: list[Step]) -> None:
        self.steps, self.stale = steps, Stale(self.field, steps)
        self.summed = {one.instruction.outgoing for one in steps if isinstance(one.instruction, Relay)}
        everyone = np.ones((1, 1), dtype=bool)
        for place in self.program.inputs:
            where = f"input '{place.name}'"
            for key, mask in self.slots.slots(place.slot, everyone, Cores(order=place.order), (), where):
                self.values.setdefault(key, []).append(Value(where, mask, None))
        for number, step in enumerate(steps):
            if isinstance(step.instruction, Wait):
                self.stale.wait(step.instruction.tokens)
            else:
                self._step(number)
        for place in self.program.outputs:
            self._touch(len(steps), place.slot, everyone, Cores(order=place.order), (), "read")
        for key, values in self.values.items():
            for value in values:
                self.stale.check(key, value, value.mask)
                if value.received and value.mask.any():
                    self._report(value.mask, f"what {value.where} puts into {_slot(key)} is never used")

    def _step(self, number: int) -> None:
        step = self.steps[number]
        mask = self.field.mask(step.instruction.cores, step.loops)
        if mask.any():
            for slot, kind in accesses(step.instruction):
                self._touch(number, slot, mask, step.instruction.cores, step.loops, kind)

    def _touch(
        self, number: int, slot: Slot, mask: np.ndarray, cores: Cores, loops: tuple[int, ...], kind: str
    ) -> None:
        step = self.steps[number] if number < len(self.steps) else None
        for key, touching in self.slots.slots(slot, mask, cores, loops, str(step)):
            values, several = self.values.setdefault(key, []), self.slots.buffers[key[0]].slots > 1
            for value in values:
                lost = value.mask & touching
                if kind == "write" and lost.any():
                    self._overwritten(number, value, lost, key)
                if several:
                    self._use(number, key, value, touching, kind)
                value.mask = value.mask & ~touching
                if several and not value.mask.any():
                    self.stale.forget(key[0], value)
            values[:] = [value for value in values if value.mask.any() or value.used.any()]
            if kind != "read":
                taken = step.instruction if step else None
                values.append(Value(str(step), touching, taken if isinstance(taken, Recv) else None, number))
                if several:
                    self.stale.put(key[0], values[-1])

    def _use(self, number: int, key: tuple[str, int], value: Value, touching: np.ndarray, kind: str) -> None:
        """Note who reads a value of a buffer of several slots, and for whom it is not there any more."""
        if kind != "read":
            value.used = value.used & ~touching
            return
        if number < len(self.steps):
            self.stale.read(key, value, touching, number)
        value.used = value.used | (value.mask & touching)

    def _overwritten(self, number: int, value: Value, lost: np.ndarray, key: tuple[str, int]) -> None:
        step = self.steps[number]
        what = f"{step} overwrites what {value.where} put into {_slot(key)} before it is read"
        taking = step.instruction
        if isinstance(taking, Recv) and self._contradicts(taking, value):
            raise UserError(
                f"{core_name(*self.field.first(lost))}: {what}. Combine it (add or max) with what is there, take it "
                "into another slot, or let the core not receive what it does not use.",
                location=str(step),
            )
        self.stale.check(key, value, lost)
        self._report(lost, what)

    def _contradicts(self, taking: Recv, value: Value) -> bool:
        """Whether what was there must have been meant to be read: another's message, or this core's part of a sum."""
        if value.received is not None:
            return value.received is not taking
        return value.number < 0 and taking.route in self.summed

    def _report(self, mask: np.ndarray, what: str) -> None:
        if len(self.found) < _MOST:
            self.found[f"{core_name(*self.field.first(mask))}: {what}"] = None


def _slot(key: tuple[str, int]) -> str:
    return f"slot {key[1]} of buffer '{key[0]}'"

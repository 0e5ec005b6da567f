# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values that are lost: received and never used, or overwritten before anybody has read them.

What costs a link and memory is meant to be used: a loss is nearly always a wrong slot, a sum that was stored, or a core
too many. Two receives that store one after the other, with nobody reading between, are an error: they contradict each
other. Mere waste is a warning: what is left over at the end, what one receive in a loop takes past cores that do not
use it, an input that is overwritten, which may be room that is free (as in a cache).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewright.core.errors import UserError
from tilewright.sim.coremesh.checks.field import Field, core_name
from tilewright.sim.coremesh.checks.races import Slots, accesses
from tilewright.sim.coremesh.program import Cores, Program, Recv, Slot, Wait
from tilewright.sim.coremesh.steps import Step, unroll

#: Losses that are reported at most.
_MOST = 8


@dataclass(eq=False)
class _Value:
    """What ``where`` put into a slot, on the cores of ``mask`` that have not read it yet.

    Attributes:
        received: by which instruction, of messages.
    """

    where: str
    mask: np.ndarray
    received: Recv | None


def lost_values(program: Program, field: Field | None = None, steps: list[Step] | None = None) -> tuple[str, ...]:
    """A sentence for each kind of loss, the first ones; it names core, slot, and both instructions.

    Raises:
        UserError: a receive stores over what another one took and nobody has read.
    """
    losses = _Losses(program, field or Field(program))
    losses.run(steps if steps is not None else unroll(program))
    return tuple(losses.found)


class _Losses:
    def __init__(self, program: Program, field: Field) -> None:
        self.program, self.field = program, field
        self.slots = Slots(program, field)
        self.values: dict[tuple[str, int], list[_Value]] = {}
        self.found: dict[str, None] = {}

    def run(self, steps: list[Step]) -> None:
        everyone = np.ones((1, 1), dtype=bool)
        for place in self.program.inputs:
            where = f"input '{place.name}'"
            for key, mask in self.slots.slots(place.slot, everyone, Cores(order=place.order), (), where):
                self.values.setdefault(key, []).append(_Value(where, mask, None))
        for step in steps:
            if not isinstance(step.instruction, Wait):
                self._step(step)
        for place in self.program.outputs:
            self._touch(None, place.slot, everyone, Cores(order=place.order), (), "read")
        for key, values in self.values.items():
            for value in values:
                if value.received:
                    self._report(value.mask, f"what {value.where} puts into {_slot(key)} is never used")

    def _step(self, step: Step) -> None:
        mask = self.field.mask(step.instruction.cores, step.loops)
        if mask.any():
            for slot, kind in accesses(step.instruction):
                self._touch(step, slot, mask, step.instruction.cores, step.loops, kind)

    def _touch(
        self, step: Step | None, slot: Slot, mask: np.ndarray, cores: Cores, loops: tuple[int, ...], kind: str
    ) -> None:
        for key, touching in self.slots.slots(slot, mask, cores, loops, str(step)):
            values = self.values.setdefault(key, [])
            for value in values:
                lost = value.mask & touching
                if not lost.any():
                    continue
                if kind == "write":
                    self._overwritten(step, value, lost, key)
                value.mask = value.mask & ~touching
            values[:] = [value for value in values if value.mask.any()]
            if kind != "read":
                taken = step.instruction if step else None
                values.append(_Value(str(step), touching, taken if isinstance(taken, Recv) else None))

    def _overwritten(self, step: Step | None, value: _Value, lost: np.ndarray, key: tuple[str, int]) -> None:
        what = f"{step} overwrites what {value.where} put into {_slot(key)} before it is read"
        taking = step.instruction if step else None
        if isinstance(taking, Recv) and value.received is not None and value.received is not taking:
            raise UserError(
                f"{core_name(*self.field.first(lost))}: {what}. Combine it (add or max) with what is there, take it "
                "into another slot, or let the core not receive what it does not use.",
                location=str(step),
            )
        self._report(lost, what)

    def _report(self, mask: np.ndarray, what: str) -> None:
        if len(self.found) < _MOST:
            self.found[f"{core_name(*self.field.first(mask))}: {what}"] = None


def _slot(key: tuple[str, int]) -> str:
    return f"slot {key[1]} of buffer '{key[0]}'"

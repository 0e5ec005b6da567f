# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Old values that are read in the place of new ones: slots of a buffer that are taken in the wrong order.

Who keeps several slots lets the next tile arrive in one while another is used. Where a tile is never used, and an older
one of the same buffer, read already, is read again after it was there, the reader has the wrong slot.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tilewright.core.errors import UserError
from tilewright.sim.coremesh.checks.field import core_name
from tilewright.sim.coremesh.checks.races import Slots, accesses
from tilewright.sim.coremesh.program import Recv, Wait
from tilewright.sim.coremesh.steps import Step

_NONE = np.zeros((1, 1), dtype=bool)


@dataclass(frozen=True, eq=False)
class Arrival:
    """A tile that is never used.

    Attributes:
        number: of the step that received or computed it.
        key: buffer and slot.
        mask: cores that do not use it, bool; an axis on which it does not depend has length 1.
    """

    number: int
    key: tuple[str, int]
    mask: np.ndarray


class Stale:
    """Looks for such reads in a program of ``steps``."""

    def __init__(self, slots: Slots, steps: list[Step]) -> None:
        self.slots, self.steps = slots, steps
        self._of_buffer: dict[str, list[int]] = {}

    def check(self, lost: Arrival, end: int) -> None:
        """Check that no core reads an older tile again between the arrival of a lost one and step ``end``.

        Raises:
            UserError: one does; names core, both slots and both instructions.
        """
        buffer = lost.key[0]
        before: dict[int, np.ndarray] = {}  # cores that have read a slot since it was written
        newer: dict[int, np.ndarray] = {}  # cores that have written it after the lost tile
        arrived = self._arrival(lost.number)
        for number in self._touching(buffer):
            if number >= end:
                return
            step = self.steps[number]
            mask = lost.mask & self.slots.field.mask(step.instruction.cores, step.loops)
            for index, touching, kind in self._touched(step, buffer, mask):
                if kind != "read":
                    before[index] = before.get(index, _NONE) & ~touching
                    if number > lost.number:
                        newer[index] = newer.get(index, _NONE) | touching
                    continue
                old = touching & before.get(index, _NONE) & ~newer.get(index, _NONE)
                if number > arrived and index != lost.key[1] and old.any():
                    raise self._error(lost, step, index, old)
                before[index] = before.get(index, _NONE) | touching

    def _arrival(self, number: int) -> int:
        """The step behind which a tile is there: the wait for the message that brings it, or the kernel itself."""
        made = self.steps[number].instruction
        if not isinstance(made, Recv):
            return number
        for at in range(number + 1, len(self.steps)):
            wait = self.steps[at].instruction
            if isinstance(wait, Wait) and made.token in wait.tokens:
                return at
        return len(self.steps)

    def _touching(self, buffer: str) -> list[int]:
        if not self._of_buffer:
            for number, step in enumerate(self.steps):
                if not isinstance(step.instruction, Wait):
                    for name in dict.fromkeys(slot.buffer for slot, _ in accesses(step.instruction)):
                        self._of_buffer.setdefault(name, []).append(number)
        return self._of_buffer.get(buffer, [])

    def _touched(self, step: Step, buffer: str, mask: np.ndarray) -> Iterator[tuple[int, np.ndarray, str]]:
        instruction = step.instruction
        for slot, kind in accesses(instruction):
            if slot.buffer == buffer:
                for (_, index), touching in self.slots.slots(slot, mask, instruction.cores, step.loops, str(step)):
                    yield index, touching, kind

    def _error(self, lost: Arrival, step: Step, index: int, old: np.ndarray) -> UserError:
        return UserError(
            f"{core_name(*self.slots.field.first(old))}: {step} reads slot {index} of buffer '{lost.key[0]}' again, "
            f"which is older than what {self.steps[lost.number]} put into slot {lost.key[1]}, and that is never used: "
            f"an old tile is taken for the new one. Read slot {lost.key[1]}, or let the core not receive or compute "
            "what it does not use.",
            location=str(step),
        )

# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Old values that are read in the place of new ones: slots of a buffer that are taken in the wrong order.

Who keeps several slots lets the next tile arrive in one while another is used. Where a tile is never used, and an older
one of the same buffer, read already, is read again after it was there, the reader has the wrong slot.

Whether a tile will be used is not known yet when an older one is read again: each tile that nobody has read keeps what
was read in its place. One walk through the program is enough, however many tiles are wasted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tilewright.core.errors import UserError
from tilewright.sim.coremesh.checks.field import Field, core_name
from tilewright.sim.coremesh.program import Recv
from tilewright.sim.coremesh.steps import Step

_NONE = np.zeros((1, 1), dtype=bool)


@dataclass(eq=False)
class Value:
    """What an instruction or an input put into a slot. Masks are bool; an axis that does not matter has length 1.

    Attributes:
        where: the instruction or input, for messages.
        mask: cores that hold it and have not read it yet.
        received: by which instruction, of messages.
        number: of the step that put it there; -1: an input.
        used: cores that hold it and have read it, of buffers of several slots.
        again: steps, slots and cores that have read an older value again since this one was there.
    """

    where: str
    mask: np.ndarray
    received: Recv | None
    number: int = -1
    used: np.ndarray = field(default_factory=lambda: _NONE)
    again: list[tuple[int, int, np.ndarray]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._open = self.mask

    def read_again(self, number: int, slot: int, mask: np.ndarray) -> None:
        """Note that cores of a mask read an older value in another slot again; the first such read of each counts."""
        found = self._open & mask
        if found.any():
            self.again.append((number, slot, found))
            self._open = self._open & ~found


class Stale:
    """What old values are read again while others wait, in a program of ``steps``."""

    def __init__(self, field: Field, steps: Sequence[Step]) -> None:
        self.field, self.steps = field, steps
        # By buffer the values that are there, and that some cores have not read; by token those on their way.
        self._waiting: dict[str, dict[Value, None]] = {}
        self._on_way: dict[str, list[tuple[str, Value]]] = {}

    def put(self, buffer: str, value: Value) -> None:
        """A step put a value into a slot: a kernel's is there, a message's when its token has been waited for."""
        if value.received is None:
            self._waiting.setdefault(buffer, {})[value] = None
        else:
            self._on_way.setdefault(value.received.token, []).append((buffer, value))

    def wait(self, tokens: Sequence[str]) -> None:
        """Messages of these tokens are there."""
        for token in tokens:
            for buffer, value in self._on_way.pop(token, ()):
                self._waiting.setdefault(buffer, {})[value] = None

    def forget(self, buffer: str, value: Value) -> None:
        """No core waits for this value any more."""
        self._waiting.get(buffer, {}).pop(value, None)

    def read(self, key: tuple[str, int], value: Value, touching: np.ndarray, number: int) -> None:
        """Step ``number`` reads a value: newer ones of the buffer that wait note where this is not the first time.

        In a loop only those of the same turn: what a list hands down arrives in turns that some cores skip.
        """
        again = value.used & touching
        if again.any():
            turn = self.steps[number].loops
            for one in self._waiting.get(key[0], ()):
                if value.number < one.number < number and (not turn or self.steps[one.number].loops == turn):
                    one.read_again(number, key[1], again)

    def check(self, key: tuple[str, int], value: Value, lost: np.ndarray) -> None:
        """Check that no core that never uses a value has read an older one again since it was there.

        Raises:
            UserError: one has; names core, both slots and both instructions.
        """
        for number, slot, mask in value.again:
            if (old := mask & lost).any():
                step = self.steps[number]
                raise UserError(
                    f"{core_name(*self.field.first(old))}: {step} reads slot {slot} of buffer '{key[0]}' again, which "
                    f"is older than what {value.where} put into slot {key[1]}, and that is never used: an old tile is "
                    f"taken for the new one. Read slot {key[1]}, or let the core not receive or compute what it does "
                    "not use.",
                    location=str(step),
                )

# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How long lists of lengths of their own are at least, where a program reads an element of each: checked at a call.

Code reads the nearest element where one is missing; that is none of the program's, which in eager mode raises. Offsets
are on the host when a call begins, so the check is a difference of neighbours there, and nothing in a kernel.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewright.core.errors import UserError
from tilewright.runtime.manifest import Shortest, TensorSpec


class Lengths:
    """The inputs of a model that say how long lists are, of which the program needs so many elements.

    Attributes:
        any: whether there is something to check.
    """

    def __init__(self, inputs: Sequence[TensorSpec]) -> None:
        at = {spec.name: i for i, spec in enumerate(inputs)}
        self._needs = [
            (at[spec.name], at.get(_around(spec.name)), spec.name, spec.shortest) for spec in inputs if spec.shortest
        ]
        self.any = bool(self._needs)

    def check(self, arrays: Sequence[np.ndarray]) -> None:
        """Check the inputs of a call, in order.

        Raises:
            UserError: a list has no element where the program reads one.
        """
        for place, around, name, shortest in self._needs:
            lengths = np.diff(np.asarray(arrays[place]))
            # Offsets of further lists stand behind those that there are.
            count = len(lengths) if around is None else int(np.clip(arrays[around][-1], 0, len(lengths)))
            short = np.flatnonzero(lengths[:count] < shortest.length)
            if len(short):
                raise _too_short(name, int(short[0]), int(lengths[short[0]]), shortest)


def _around(name: str) -> str:
    """Offsets of the level around that of some offsets."""
    whole, _, level = name.rpartition(".offsets")
    return f"{whole}.offsets{int(level) - 1}"


def _too_short(name: str, which: int, length: int, shortest: Shortest) -> UserError:
    whole, _, level = name.rpartition(".offsets")
    return UserError(
        f"input {whole}: list {which} of level {int(level) + 1} has length {length}, but the program reads element "
        f"{shortest.element} of each, which only lists of at least {shortest.length} have: leave out shorter lists, "
        "or read a slice, which may be empty",
        location=shortest.location,
    )

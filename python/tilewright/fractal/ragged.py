# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lists of lengths of their own at the border of a compiled program: all tensors in a line, and offsets.

A list parameter `xss` whose inner lists have at most so many elements is the inputs `xss` [room, *leaf], which has room
for lists that are all as long as they may be, and `xss.offsets0`, `xss.offsets1`, ..., i64: one for each inner level,
as those of `ft.Lists`. What stands behind the last offset belongs to no list. A result is stored in the same way; where
only a run knows how many elements its outermost list has, `output0.length`, i64 [1], says it.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from tilewright.core.errors import UserError
from tilewright.dialects.fractal.values import Lists
from tilewright.fractal.types import RAGGED, ListType, Own, Size, TensorType, Type, most_in

NUMBERS = np.dtype(np.int64)


class Flat:
    """What stands for such lists while a program is traced.

    Attributes:
        kind: the type of the lists.
        tensors: all of them in a line.
        offsets: of each inner level.
    """

    def __init__(self, kind: ListType, parts: list[Any]) -> None:
        self.kind = kind
        self.tensors, *self.offsets = parts


def is_bounded(lengths: tuple[Size, ...]) -> bool:
    """Whether lists of some level have lengths of their own, of which the largest is known."""
    return any(isinstance(length, Own) for length in lengths)


def add(name: str, kind: ListType, inputs: list[tuple[str, Type]]) -> Any:
    """Add the inputs that stand for lists of a type; returns how they stand in a tuple."""
    lists = [most_in(kind.lengths[:level]) or 0 for level in range(1, kind.depth + 1)]
    inputs.append((name, ListType((lists[-1],), kind.leaf)))
    inputs += [(f"{name}.offsets{i}", TensorType((count + 1,), NUMBERS)) for i, count in enumerate(lists[:-1])]
    return functools.partial(Flat, kind), (None,) * len(lists)


def bounded(text: Any, level: int) -> Own | None:
    """The length that ``("ragged", 64)`` says; None for anything else."""
    if not isinstance(text, tuple | list) or len(text) != 2 or text[0] != RAGGED or not level:
        return None
    most = text[1]
    plain = isinstance(most, int | np.integer) and not isinstance(most, bool) and most >= 0
    return Own(int(most)) if plain else None


def unpacked(outputs: Mapping[str, Any] | Any) -> tuple[Any, ...]:
    """What a compiled program returns, with one `ft.Lists` for each list of lengths of its own.

    Args:
        outputs: what a call of the model gave.

    Raises:
        UserError: it is something else.
    """
    if not isinstance(outputs, Mapping) and not hasattr(outputs, "items"):
        raise UserError(
            f"ft.unpacked takes what a call of a compiled program returned, found {type(outputs).__name__}: pass all "
            "of its results"
        )
    found = dict(outputs.items())
    results = []
    for name, array in found.items():
        if "." in name:
            continue
        offsets = [np.asarray(found[part]) for part in found if part.startswith(f"{name}.offsets")]
        length = found.get(f"{name}.length")
        if length is None and not offsets:
            results.append(array)
        else:
            results.append(_lists(np.asarray(array), offsets, length))
    return tuple(results)


def _lists(flat: np.ndarray, offsets: list[np.ndarray], length: Any) -> Lists:
    count = len(offsets[0]) - 1 if length is None else int(np.asarray(length)[0])
    kept = []
    for offset in offsets:
        kept.append(offset[: count + 1])
        count = int(kept[-1][-1])
    return Lists(flat[:count], kept)


def room_for(name: str, kind: ListType, location: str) -> int:
    """How many tensors a result of a type has at most.

    Raises:
        UserError: that is not known.
    """
    room = most_in(kind.lengths)
    if room is None:
        raise UserError(
            f"{name} is {kind}, and how long its lists are at most is not known: a compiled program has room for so "
            "many tensors; return lists of which the program says how long they are at most, as xs[:64] is",
            location=location,
        )
    return room

# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Nested lists as arrays of sizes that are known: what a compiled model takes for a value with lengths of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from tilewright.core.errors import UserError

if TYPE_CHECKING:
    from tilewright.dialects.fractal.values import Lists

#: On an argument of @main that is offsets: how long their lists are at least, and what reads so far.
SHORTEST = "fractal.shortest"


def flat_inputs(lists: Lists, name: str, given: Mapping[str, tuple[int, ...]]) -> list[np.ndarray]:
    """All tensors in a line, then offsets, in the order of a model's inputs, whose shapes say what there is room for.

    Args:
        lists: a value.
        name: of the input.
        given: shapes of the input and of those that belong to it (`x`, `x.offsets0`, ...), by name.

    Raises:
        UserError: the model takes something else there, or the lists do not fit.
    """
    levels = len(given) - 1
    if list(given) != [name, *(f"{name}.offsets{level}" for level in range(levels))]:
        raise UserError(f"input {name} is no list; a {lists!r} was given")
    if not levels:
        return [lists.array()]
    if lists.depth != levels + 1:
        raise UserError(f"input {name} has {levels + 1} levels of lists, {lists!r} has {lists.depth}")
    room = [given[f"{name}.offsets{level}"][0] - 1 for level in range(levels)] + [given[name][0]]
    if len(lists) != room[0]:
        raise UserError(f"input {name} is a list of {room[0]}, got {len(lists)} lists; the model was compiled for them")
    offsets = []
    for level, offset in enumerate(lists.offsets):
        most = room[level + 1] // max(room[level], 1)
        longest = int(np.diff(offset).max(initial=0))
        if longest > most:
            where = int(np.diff(offset).argmax())
            raise UserError(
                f"input {name}: list {where} of level {level + 1} has {longest} elements; the model was compiled for "
                f'lists of up to {most}: compile it with ("ragged", {longest}) in shapes=, or cut the list'
            )
        offsets.append(np.pad(offset, (0, room[level] + 1 - len(offset)), mode="edge"))
    flat = np.zeros((room[-1], *lists.leaf_shape), lists.dtype)
    flat[: lists.numel] = lists.flat
    return [flat, *offsets]

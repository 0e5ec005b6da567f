# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parameters that are trees: what a call may give for one, and the inputs of a traced program that stand for it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, get_args

import numpy as np

from tilewright.core.errors import UserError
from tilewright.fractal import schedule
from tilewright.fractal.mode import current
from tilewright.fractal.tree import Tree, TreeType
from tilewright.fractal.types import ListType, TensorType, Type
from tilewright.fractal.where import wrong

_NUMBERS = np.dtype(np.int32)


def among(kinds: Iterable[Any]) -> bool:
    """Whether some annotation is a tree, or a tuple with one."""
    return any(isinstance(kind, TreeType) or among(get_args(kind)) for kind in kinds)


def taken(kind: TreeType, value: Any) -> Any:
    """A tree in the form of the mode.

    Raises:
        UserError: it is none.
    """
    if not current().tracing:
        tree = Tree(value)
        if kind.everywhere and not tree.is_leaf and not tree.type.everywhere:
            raise UserError("inner nodes have no values: give them as (left, right, value)")
        return tree
    if isinstance(value, schedule.Schedule):
        return current().tree(kind, value)
    if not isinstance(getattr(value, "type", None), TreeType):
        raise UserError(f"expected a tree, found a {type(value).__name__}")
    return value


def fits(kind: TreeType, found: Any) -> bool:
    """Whether a tree with such tensors may be given; inner nodes' values that nobody asks for may be there."""
    return isinstance(found, TreeType) and found.leaf == kind.leaf


def add(kind: TreeType, name: str, given: Any, inputs: list[tuple[str, Type]], function: str) -> Any:
    """Add the inputs that stand for a tree of a given size; returns how they stand in a tuple."""
    nodes, depth = _sizes(name, given, function)
    shapes = schedule.shapes(nodes, depth, kind.leaf.shape, kind.everywhere)
    inputs.append((name, ListType((shapes.values[0],), kind.leaf)))
    for part in schedule.Schedule._fields[1:]:
        inputs.append((f"{name}.{part}", TensorType(getattr(shapes, part), _NUMBERS)))
    return schedule.Schedule, (None,) * len(shapes)


def _sizes(name: str, given: Any, function: str) -> tuple[int, int]:
    sizes = given if isinstance(given, tuple | list) else (given,)
    plain = all(isinstance(n, int | np.integer) and not isinstance(n, bool) and n > 0 for n in sizes)
    if not plain or len(sizes) not in (1, 2):
        raise wrong(
            f"{function}.trace",
            f"the size of the tree {name} is {given!r}: say how many nodes it has at most, or (nodes, depth), as in "
            f'{{"{name}": (127, 7)}}',
        )
    nodes = int(sizes[0])
    deepest = schedule.deepest(nodes)
    return nodes, min(int(sizes[1]), deepest) if len(sizes) == 2 else deepest

# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The ops of `fractal` between lists and the tensors that hold them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.dialects.fractal.values import Lists
from tilewright.reference import types
from tilewright.reference.errors import InterpreterError
from tilewright.reference.fractal.registry import kinds, op
from tilewright.reference.program import Node


@op("from_tensor")
def from_tensor(_frame: Any, node: Node, tensor: np.ndarray) -> Lists:
    """The lists that leading dimensions are."""
    (kind,) = kinds(node)
    assert kind is not None
    return Lists.from_array(tensor, len(kind.lengths))


@op("to_tensor")
def to_tensor(_frame: Any, node: Node, xs: Lists) -> np.ndarray:
    """Lists of equal lengths as dimensions; one that no list tells has the type's size, or 0.

    Raises:
        InterpreterError: lists of some level differ in length, or the type says another length.
    """
    array, said = xs.array(), types.shape_of(node.result_type())
    if not array.size:
        counted = [True, *(len(offset) > 1 for offset in xs.offsets)]
        known = [n if held or s == types.DYNAMIC else s for n, held, s in zip(array.shape, counted, said, strict=False)]
        array = array.reshape(*known, *xs.leaf_shape)
    if any(s not in (types.DYNAMIC, n) for s, n in zip(said, array.shape, strict=True)):
        raise InterpreterError(f"{xs!r} has no {node.result_type()}: the lengths differ")
    return array


@op("from_ragged")
def from_ragged(_frame: Any, node: Node, flat: Lists, *offsets: np.ndarray) -> Lists:
    """A list of tensors, cut into lists by offsets; what stands behind the last offset belongs to no list.

    Raises:
        InterpreterError: a list is longer than is said.
    """
    kept, count = [], len(offsets[0]) - 1
    for offset in offsets:
        kept.append(offset[: count + 1])
        count = int(kept[-1][-1])
    lists, said = Lists(flat.flat[:count], kept), node.attribute("most")
    for level, (offset, most) in enumerate(zip(kept, said or (), strict=False)):
        longest = int(np.diff(offset).max(initial=0))
        if longest > most:
            raise InterpreterError(f"a list of level {level + 1} has {longest} elements; most says {most}")
    return lists


@op("to_ragged")
def to_ragged(_frame: Any, node: Node, xs: Lists) -> Any:
    """The tensors in a list, and where the lists of each inner level begin among the elements of the next.

    Raises:
        InterpreterError: a level has another number of lists than the type of its offsets says.
    """
    offsets = []
    for number, offset in enumerate(xs.offsets, 1):
        (said,) = types.shape_of(node.result_type(number))
        more = 0 if said == types.DYNAMIC else said - len(offset)
        if more < 0 or (more and number == 1):
            raise InterpreterError(f"result {number} has {len(offset)} offsets, but is {node.result_type(number)}")
        offsets.append(np.pad(offset, (0, more), mode="edge"))
    kind = kinds(node)[0]
    assert kind is not None
    said = kind.lengths[0]
    more = said - len(xs.flat) if isinstance(said, int) and said >= 0 else 0
    if more < 0:
        raise InterpreterError(f"the lists have {len(xs.flat)} tensors, but result 0 is {node.result_type(0)}")
    rest = np.zeros((more, *xs.leaf_shape), xs.dtype)
    return [Lists(np.concatenate([xs.flat, rest])), *offsets]

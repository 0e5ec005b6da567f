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
def from_ragged(_frame: Any, _node: Node, flat: Lists, *offsets: np.ndarray) -> Lists:
    """A list of tensors, cut into lists by offsets."""
    return Lists(flat.flat, offsets)


@op("to_ragged")
def to_ragged(_frame: Any, node: Node, xs: Lists) -> Any:
    """The tensors in a list, and where the lists of each inner level begin among the elements of the next.

    Raises:
        InterpreterError: a level has another number of lists than the type of its offsets says.
    """
    for number, offset in enumerate(xs.offsets, 1):
        (said,) = types.shape_of(node.result_type(number))
        if said not in (types.DYNAMIC, len(offset)):
            raise InterpreterError(f"result {number} has {len(offset)} offsets, but is {node.result_type(number)}")
    return [Lists(xs.flat), *xs.offsets]

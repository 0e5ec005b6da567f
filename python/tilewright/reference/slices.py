# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Slices with offsets, sizes and strides: bounds checked, and always views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.reference import types
from tilewright.reference.errors import InterpreterError
from tilewright.reference.program import Node


def span(offset: int, size: int, stride: int, limit: int) -> slice:
    """Return the slice of ``size`` positions from ``offset`` by ``stride`` within ``limit`` elements.

    Raises:
        InterpreterError: a position lies outside.
    """
    if size == 0:
        return slice(0, 0)
    last = offset + (size - 1) * stride
    if min(offset, last) < 0 or max(offset, last) >= limit:
        raise InterpreterError(f"positions {offset}..{last} are outside a dimension of {limit}")
    if stride == 0:
        raise InterpreterError("a slice needs a stride other than 0")
    end = last + (1 if stride > 0 else -1)
    return slice(offset, None if end < 0 else end, stride)


def check_index(index: Sequence[Any], shape: Sequence[int]) -> tuple[Any, ...]:
    """Return ``index`` (integers or index arrays) when it lies within ``shape``.

    Raises:
        InterpreterError: a position lies outside, or the rank differs.
    """
    if len(index) != len(shape):
        raise InterpreterError(f"{len(index)} indices for rank {len(shape)}")
    for dim, (position, size) in enumerate(zip(index, shape, strict=True)):
        if np.ndim(position) == 0:
            legal = 0 <= position < size
        else:
            legal = not position.size or (position.min() >= 0 and position.max() < size)
        if not legal:
            raise InterpreterError(f"index {position} is outside dimension {dim} of size {size}")
    return tuple(index)


def mixed(node: Node, groups: Sequence[tuple[Any, ...]]) -> tuple[list[int], list[int], list[int]]:
    """Return offsets, sizes and strides of an op with static ones in attributes and dynamic ones in ``groups``."""
    names = ("static_offsets", "static_sizes", "static_strides")
    static = node.once("static", lambda: [types.integers(node.op.attributes[name]) for name in names])
    offsets, sizes, strides = (types.fill_dynamic(s, g) for s, g in zip(static, groups, strict=True))
    return offsets, sizes, strides


def sliced(array: np.ndarray, offsets: Sequence[int], sizes: Sequence[int], strides: Sequence[int]) -> np.ndarray:
    """Return the slice of ``array`` as a view.

    Raises:
        InterpreterError: it does not lie within ``array``.
    """
    return array[tuple(map(span, offsets, sizes, strides, array.shape))]


def drop_units(array: np.ndarray, sizes: Sequence[int], shape: Sequence[int]) -> np.ndarray:
    """Return a view of ``array`` without some dimensions of size 1, so that it fits the (maybe dynamic) ``shape``.

    Types alone say which: a dimension of a dynamic size is never dropped, whatever its size turns out to be.

    Args:
        array: a slice.
        sizes: its sizes as the op states them, see static_sizes.
        shape: of the type that it gets.

    Raises:
        InterpreterError: no such view exists.
    """
    wanted, index = list(shape), []
    for size in sizes:
        keep = bool(wanted) and wanted[0] == size
        if keep:
            wanted.pop(0)
        elif size != 1:
            raise InterpreterError(f"a slice of shape {array.shape} is no {list(shape)}")
        index.append(slice(None) if keep else 0)
    if wanted:
        raise InterpreterError(f"a slice of shape {array.shape} is no {list(shape)}")
    return array[(*index, ...)]  # a view, even of one element


def static_sizes(node: Node) -> list[int]:
    """Return the sizes that an op states, dynamic ones as such."""
    return node.once("static sizes", lambda: types.integers(node.op.attributes["static_sizes"]))


def reassociation(node: Node) -> list[list[int]]:
    """Return the groups of dimensions of an expand_shape or collapse_shape."""
    attribute = node.op.attributes["reassociation"]
    return [[i.value for i in group] for group in attribute]


def collapsed_shape(shape: Sequence[int], groups: list[list[int]]) -> tuple[int, ...]:
    """Return the shape after each group of dimensions has become one."""
    return tuple(int(np.prod([shape[d] for d in group], dtype=np.int64)) for group in groups)


def put_slice(node: Node, *operands: Any) -> None:
    """Replace the slice of an `insert_slice` in its target itself."""
    (source,), (target,), *groups = node.groups(operands)
    slot = sliced(target, *mixed(node, groups))
    drop_units(slot, static_sizes(node), types.shape_of(node.operand_type(0)))[...] = source

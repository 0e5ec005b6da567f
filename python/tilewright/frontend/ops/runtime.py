# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parameters of operators that are inputs of the model: sizes and axes known at run time only."""

from __future__ import annotations

from collections.abc import Sequence

from ..dims import Dim, Size, is_static, nonnegative, same
from ..registry import Builder, Node
from ..scalars import BOOL, Scalar
from ..tensor import Tensor


def sizes(b: Builder, node: Node, x: Tensor | None, what: str) -> list[Size]:
    """The integers of an input, as many as its static length says."""
    if x is None:
        node.wrong(f"the input for {what} is missing")
    if not x.is_static:
        node.unsupported(f"the number of elements of {what} is known at run time only, and with it the result's rank")
    return b.shape_values(x)


def optional_sizes(b: Builder, node: Node, x: Tensor | None, what: str) -> list[Size] | None:
    """The same of an optional input; None where it is absent."""
    return None if x is None else sizes(b, node, x, what)


def choose(b: Builder, condition: Scalar | bool, a: Size, c: Size) -> Size:
    """a where the condition holds, else c."""
    if isinstance(condition, bool):
        return a if condition else c
    if same(a, c):
        return a
    return Dim(b.math.where(condition, b.idx(a), b.idx(c)).value, nonnegative(a) and nonnegative(c))


def is_equal(b: Builder, a: Size, c: Size) -> Scalar:
    """Whether two sizes are equal at run time."""
    return b.math.eq(b.idx(a), b.idx(c))


def wrap_negative(b: Builder, index: Size, extent: Size) -> Size:
    """An index that counts from the end where it is negative."""
    if isinstance(index, int):
        return index + extent if index < 0 else index
    return index if index.nonneg else choose(b, b.idx(index) < b.idx(0), index + extent, index)


def any_of(b: Builder, conditions: Sequence[Scalar]) -> Scalar:
    """Whether one of them holds."""
    result = b.math.scalar(False, BOOL)
    for condition in conditions:
        result = b.math.logical_or(result, condition)
    return result


def axis_masks(b: Builder, axes: Sequence[Size], rank: int) -> list[Scalar]:
    """For each dimension, whether it is among the axes."""
    wrapped = [wrap_negative(b, a, rank) for a in axes]
    for a in wrapped:
        place = b.idx(a)
        b.require(
            b.math.logical_and(place > b.idx(-1), place < b.idx(rank)), f"an axis is out of range for rank {rank}"
        )
    return [any_of(b, [is_equal(b, a, d) for a in wrapped]) for d in range(rank)]


def spread(
    b: Builder, node: Node, axes: Sequence[Size] | None, rank: int, *columns: tuple[Sequence[Size], Sequence[Size]]
) -> list[list[Size]]:
    """Values that are given per axis, per dimension instead.

    Args:
        b: the builder.
        node: for errors.
        axes: the dimension of each value (default: the first ones in order).
        rank: number of dimensions.
        columns: pairs of values per axis and defaults per dimension.
    """
    along = list(range(len(columns[0][0]))) if axes is None else list(axes)
    if any(len(given) != len(along) for given, _ in columns):
        node.wrong(f"{[len(given) for given, _ in columns]} values for {len(along)} axes")
    if is_static(along):
        fixed = [node.axis(a, rank) for a in along]
        return [_placed(given, default, fixed) for given, default in columns]
    wrapped = [wrap_negative(b, a, rank) for a in along]
    result = [list(default) for _, default in columns]
    for j, axis in enumerate(wrapped):
        for d in range(rank):
            here = is_equal(b, axis, d)
            for column, (given, _) in zip(result, columns, strict=True):
                column[d] = choose(b, here, given[j], column[d])
    return result


def _placed(given: Sequence[Size], default: Sequence[Size], axes: Sequence[int]) -> list[Size]:
    result = list(default)
    for axis, value in zip(axes, given, strict=True):
        result[axis] = value
    return result


def without(b: Builder, shape: Sequence[Size], dropped: Sequence[Scalar], rank: int) -> list[Size]:
    """The first `rank` sizes of those that are not dropped."""
    result: list[Size] = [1] * rank
    place: Size = 0
    for size, drop in zip(shape, dropped, strict=True):
        for j in range(rank):
            here = b.math.logical_and(is_equal(b, place, j), b.math.logical_not(drop))
            result[j] = choose(b, here, size, result[j])
        place = place + choose(b, drop, 0, 1)
    return result


def with_ones(b: Builder, shape: Sequence[Size], inserted: Sequence[Scalar]) -> list[Size]:
    """Sizes with ones where they are inserted."""
    result: list[Size] = []
    place: Size = 0
    for is_new in inserted:
        size: Size = 1
        for j, n in enumerate(shape):
            size = choose(b, b.math.logical_and(is_equal(b, place, j), b.math.logical_not(is_new)), n, size)
        result.append(size)
        place = place + choose(b, is_new, 0, 1)
    return result

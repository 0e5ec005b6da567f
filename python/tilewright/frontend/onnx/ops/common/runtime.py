# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parameters of operators that are inputs of the model: sizes and axes known at run time only."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from tilewright.frontend.builder.dims import Dim, Size, equal, is_static, nonnegative, same
from tilewright.frontend.builder.scalars import Scalar
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.registry import Builder, Node

Truth = Scalar | bool  # a condition, maybe known at compile time


def sizes(b: Builder, node: Node, x: Tensor | None, what: str) -> list[Size]:
    """The integers of an input, as many as its static length says."""
    if x is None:
        node.wrong(f"the input for {what} is missing")
    if not x.is_static:
        node.unsupported(
            f"the number of elements of {what} is known at run time only, and with it the result's rank; "
            "state its shape in the model (value_info)"
        )
    return b.shape_values(x)


def require_sizes(b: Builder, shape: Sequence[Size]) -> None:
    """A negative size stops the run."""
    for n in shape:
        if not isinstance(n, int) and not n.nonneg:
            b.require(b.idx(n) > b.idx(-1), "a size is negative")


def optional_sizes(b: Builder, node: Node, x: Tensor | None, what: str) -> list[Size] | None:
    """The same of an optional input; None where it is absent."""
    return None if x is None else sizes(b, node, x, what)


def choose(b: Builder, condition: Truth, a: Size, c: Size) -> Size:
    """a where the condition holds, else c."""
    if isinstance(condition, bool):
        return a if condition else c
    if same(a, c):
        return a
    return Dim(b.math.where(condition, b.idx(a), b.idx(c)).value, nonnegative(a) and nonnegative(c))


def is_equal(b: Builder, a: Size, c: Size) -> Truth:
    """Whether two sizes are equal."""
    known = equal(a, c)
    return b.math.eq(b.idx(a), b.idx(c)) if known is None else known


def both(b: Builder, p: Truth, q: Truth) -> Truth:
    """p and q."""
    if isinstance(p, bool):
        return q if p else False
    if isinstance(q, bool):
        return p if q else False
    return b.math.logical_and(p, q)


def negated(b: Builder, p: Truth) -> Truth:
    """Not p."""
    return not p if isinstance(p, bool) else b.math.logical_not(p)


def either(b: Builder, conditions: Sequence[Truth]) -> Truth:
    """Whether one of them holds."""
    if any(c is True for c in conditions):
        return True
    unknown = [c for c in conditions if isinstance(c, Scalar)]
    return functools.reduce(b.math.logical_or, unknown) if unknown else False


def wrap_negative(b: Builder, index: Size, extent: Size) -> Size:
    """An index that counts from the end where it is negative."""
    if nonnegative(index):
        return index
    return index + extent if isinstance(index, int) else choose(b, b.idx(index) < b.idx(0), index + extent, index)


def axis_masks(b: Builder, axes: Sequence[Size], rank: int) -> list[Truth]:
    """For each dimension, whether it is among the axes."""
    wrapped = [wrap_negative(b, a, rank) for a in axes]
    for a in wrapped:
        place = b.idx(a)
        b.require(
            b.math.logical_and(place > b.idx(-1), place < b.idx(rank)), f"an axis is out of range for rank {rank}"
        )
    return [either(b, [is_equal(b, a, d) for a in wrapped]) for d in range(rank)]


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


def without(b: Builder, shape: Sequence[Size], dropped: Sequence[Truth], rank: int) -> list[Size]:
    """The first `rank` sizes of those that are not dropped."""
    result: list[Size] = [1] * rank
    place: Size = 0
    for d, (size, drop) in enumerate(zip(shape, dropped, strict=True)):
        for j in range(max(0, d - len(shape) + rank), min(d + 1, rank)):
            here = both(b, is_equal(b, place, j), negated(b, drop))
            result[j] = choose(b, here, size, result[j])
        place = place + choose(b, drop, 0, 1)
    return result


def with_ones(b: Builder, shape: Sequence[Size], inserted: Sequence[Truth]) -> list[Size]:
    """Sizes with ones where they are inserted."""
    result: list[Size] = []
    place: Size = 0
    for d, is_new in enumerate(inserted):
        size: Size = 1
        for j in range(max(0, d - len(inserted) + len(shape)), min(d + 1, len(shape))):
            size = choose(b, both(b, is_equal(b, place, j), negated(b, is_new)), shape[j], size)
        result.append(size)
        place = place + choose(b, is_new, 0, 1)
    return result

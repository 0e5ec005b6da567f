# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions that say which elements are read: they take lists, or tuples of lists that are read alike."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

from tilewright.core.errors import UserError
from tilewright.fractal import trees
from tilewright.fractal.mode import current
from tilewright.fractal.trees import Shape, describe, rebuild, unzipped
from tilewright.fractal.types import TensorType, type_of
from tilewright.fractal.where import public


def as_lists(value: Any) -> Any:
    """The lists in nested tuples, each in the form of the mode; a list of tuples is a tuple of lists."""
    values, shape = trees.flatten(unzipped(value))
    return rebuild(shape, [current().as_list(value) for value in values])


def flat_lists(lists: Sequence[Any]) -> tuple[list[Any], Shape]:
    """All lists, which are read at one place each; at least one, and of one length.

    Raises:
        UserError: no list, or their lengths differ.
    """
    values, shape = trees.flatten(as_lists(tuple(lists)))
    if not values:
        raise UserError("at least one list is needed, found none")
    known = [length for value in values if isinstance(length := type_of(value).lengths[0], int)]
    if len(set(known)) > 1:
        raise UserError(f"the lists have lengths {known}: lists that are read together have one length")
    return values, shape


def _each(value: Any, read: Callable[[Any], Any]) -> Any:
    values, shape = trees.flatten(as_lists(value))
    return rebuild(shape, [read(xs) for xs in values])


def item(xs: Any, index: Any) -> Any:
    """xs[index] of each list in nested tuples."""
    mode = current()
    return _each(xs, lambda x: mode.cut(x, index) if isinstance(index, slice) else mode.at(x, index))


@public
def zip(*lists: Any) -> tuple:
    """Lists that are read together, as a tuple: an element of it is the tuple of their elements."""
    values, shape = flat_lists(lists)
    return rebuild(shape, values)


@public
def enumerate(xs: Any) -> tuple:
    """The places of the elements (i64, from 0) and the elements, zipped."""
    values = as_lists(xs)
    return current().places(trees.flatten(values)[0][0]), values


@public
def product(xs: Any, ys: Any) -> tuple:
    """Two lists of lists: at [i][k] the one has xs[i], the other ys[k]."""
    mode = current()
    rows, row_shape = trees.flatten(as_lists(xs))
    columns, column_shape = trees.flatten(as_lists(ys))
    first = rebuild(row_shape, [mode.product(row, columns[0])[0] for row in rows])
    return first, rebuild(column_shape, [mode.product(rows[0], column)[1] for column in columns])


@public
def repeat(x: Any, times: Any) -> Any:
    """A list of `times` equal elements."""
    mode = current()
    values, shape = trees.flatten(unzipped(x))
    return rebuild(shape, [mode.repeat(value, times) for value in values])


@public
def join(*lists: Any) -> Any:
    """The elements of the first list, then those of the next, ..."""
    if not lists:
        raise UserError("at least one list is needed, found none")
    parts = [trees.flatten(as_lists(xs)) for xs in lists]
    shape = parts[0][1]
    for _, other in parts[1:]:
        if other != shape:
            raise UserError(f"{describe(other)} does not go on after {describe(shape)}: joined lists have one type")
    columns = [list(column) for column in builtins.zip(*(values for values, _ in parts), strict=True)]
    return rebuild(shape, [current().join(column) for column in columns])


@public
def window(
    xs: Any,
    size: int,
    stride: int = 1,
    dilation: int = 1,
    padding: int | tuple[int, int] = 0,
    fill: Any = None,
    wrap: bool = False,
) -> Any:
    """Lists of `size` elements: at [i][u] element stride * i + dilation * u - padding[0].

    Args:
        xs: a list.
        size: of a window.
        stride: from a window to the next.
        dilation: from an element of a window to the next.
        padding: elements before and behind the list, read by windows.
        fill: what those are; a number: a tensor of it.
        wrap: those are counted on from the other end.
    """
    low, high = (padding, padding) if isinstance(padding, int) else padding
    if size < 1 or stride < 1 or dilation < 1 or low < 0 or high < 0:
        raise UserError(
            f"size {size}, stride {stride} and dilation {dilation} are positive, padding {padding} not negative"
        )
    mode = current()
    _one_filling(fill, wrap, bool(low or high))

    def read(x: Any) -> Any:
        filler = None if fill is None else mode.filler(x, fill)
        return mode.window(x, size, stride, dilation, (low, high), filler, wrap)

    return _each(xs, read)


@public
def shifted_slide(xs: Any, size: int, dilation: int = 1) -> Any:
    """For each element the window around it, counted on from the other end: (i + dilation * (u - size // 2)) mod L."""
    before = dilation * (size // 2)
    return window(xs, size, 1, dilation, (before, dilation * (size - 1) - before), wrap=True)


@public
def shift(xs: Any, by: int, fill: Any = None, wrap: bool = False) -> Any:
    """At i the element i + by; outside: `fill` (a number: a tensor of it), or counted on from the other end."""
    mode = current()
    _one_filling(fill, wrap, True)
    return _each(xs, lambda x: mode.shift(x, by, None if wrap else mode.filler(x, fill)))


def _one_filling(fill: Any, wrap: bool, needed: bool) -> None:
    if fill is not None and wrap:
        raise UserError("fill= and wrap=True are both given: elements outside are one or the other")
    if needed and fill is None and not wrap:
        raise UserError("elements outside of the list are read: say what they are with fill=, or wrap=True")


@public
def reverse(xs: Any) -> Any:
    """The elements from the last to the first."""
    return _each(xs, current().reverse)


@public
def interleave(xs: Any, by: int) -> Any:
    """Deal the elements to `by` lists: at [g][p] element p * by + g."""
    return _each(xs, lambda x: current().interleave(x, by))


@public
def deinterleave(xss: Any) -> Any:
    """The inverse of interleave."""
    return _each(xss, lambda x: current().deinterleave(nested(x)))


@public
def gather(xs: Any, places: Any) -> Any:
    """The elements at some places (a list of integers from 0)."""
    return _each(xs, lambda x: current().gather(x, places))


@public
def scatter(xs: Any, places: Any, elements: Any) -> Any:
    """The list with elements[i] at places[i] (integers from 0); of several for one place the last one is kept."""
    (values, shape), (given, other) = (trees.flatten(as_lists(lists)) for lists in (xs, elements))
    if other != shape:
        raise UserError(f"{describe(other)} is not written into {describe(shape)}: both have one type")
    pairs = builtins.zip(values, given, strict=True)
    return rebuild(shape, [current().scatter(x, places, written) for x, written in pairs])


@public
def flatten(xss: Any) -> Any:
    """The elements of all inner lists, one after the other."""
    return _each(xss, lambda x: current().flatten(nested(x)))


@public
def split(xs: Any, into: int) -> Any:
    """So many lists of equal length."""
    return _each(xs, lambda x: current().split(x, into))


@public
def stack(values: Sequence[Any]) -> Any:
    """The list of some values (tuples: a tuple of lists)."""
    return as_lists(list(values))


@public
def slices(x: Any, dim: int = 0, keepdims: bool = False) -> Any:
    """The slices of a tensor along a dimension, as a list; with keepdims each has a 1 in its place."""
    mode = current()
    value = mode.as_value(x)
    kind = type_of(value)
    if not isinstance(kind, TensorType) or not -len(kind.shape) <= dim < len(kind.shape):
        raise UserError(f"a tensor with a dimension {dim} is needed, found {kind}")
    dim %= len(kind.shape)
    order = (dim, *(d for d in range(len(kind.shape)) if d != dim))
    moved = value.transpose(order)
    if keepdims:
        shape = kind.shape
        moved = moved.reshape((shape[dim], *shape[:dim], 1, *shape[dim + 1 :]))
    return mode.from_tensor(moved, 1)


@public
def tensor(xs: Any) -> Any:
    """Lists of equal lengths as one tensor, their levels as its first dimensions."""
    return _each(xs, current().tensor)


@public
def length(xs: Any) -> Any:
    """The number of elements: an int, or while tracing a tensor (i64) where only a run knows it."""
    return current().length(trees.flatten(as_lists(xs))[0][0])


@public
def head(xs: Any) -> Any:
    """The first element."""
    return item(xs, 0)


@public
def last(xs: Any) -> Any:
    """The last element."""
    return item(xs, -1)


@public
def tail(xs: Any) -> Any:
    """All elements but the first."""
    return item(xs, slice(1, None))


def nested(xs: Any) -> Any:
    """A list of lists.

    Raises:
        UserError: its elements are tensors.
    """
    if type_of(xs).depth < 2:
        raise UserError(f"a list of lists is needed, found {type_of(xs)}")
    return xs

# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the access ops of `fractal` give, on values: each says which elements of a list are read, and in which order.

Undefined behaviour of an op is a ``UserError`` here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.core.errors import UserError
from tilewright.dialects.fractal.values import Lists, join


def at(xs: Lists, place: int) -> Any:
    """One element; unlike ``xs[place]`` none counted from the end."""
    return xs[int(_within(xs, np.asarray([place]))[0])]


def slice(xs: Lists, offset: int, size: int, stride: int) -> Lists:
    """The elements offset + stride * i."""
    if size < 0:
        raise UserError(f"a slice of size {size}: none is negative")
    return xs.take(_within(xs, offset + stride * np.arange(size)))


def reverse(xs: Lists) -> Lists:
    """The elements from the last to the first."""
    return xs.take(np.arange(len(xs))[::-1])


def shift(xs: Lists, by: int, fill: Any = None) -> Lists:
    """Element i + by at i; one that is outside is ``fill``, or counted on from the other end where there is none."""
    places = np.arange(len(xs)) + by
    return _wrapped(xs, places) if fill is None else _filled(xs, places, fill)


def window(
    xs: Lists,
    size: int,
    stride: int = 1,
    dilation: int = 1,
    padding: tuple[int, int] = (0, 0),
    fill: Any = None,
    wrap: bool = False,
) -> Lists:
    """Lists of ``size`` elements: stride * i + dilation * u - padding[0] at [i][u]."""
    low, high = padding
    if fill is None and not wrap and any(padding):
        raise UserError(f"a window with padding {list(padding)} needs an element to fill it with, or wrap")
    room = len(xs) + low + high - dilation * (size - 1) - 1
    count = max(0, room // stride + 1)
    places = (stride * np.arange(count)[:, None] + dilation * np.arange(size) - low).reshape(-1)
    if wrap:
        elements = _wrapped(xs, places)
    elif fill is None:
        elements = xs.take(_within(xs, places))
    else:
        elements = _filled(xs, places, fill)
    return elements.nest(np.full(count, size))


def interleave(xs: Lists, by: int) -> Lists:
    """Groups of every ``by``-th element: element p * by + g at [g][p]; as many groups as have an element, at most."""
    if by < 1:
        raise UserError(f"elements are dealt to at least one group, got {by}")
    group = np.arange(len(xs)) % by
    return xs.take(np.argsort(group, kind="stable")).nest(np.bincount(group, minlength=min(by, len(xs))))


def deinterleave(xss: Lists) -> Lists:
    """The list that was dealt to groups: element [g][p] at p * groups + g."""
    elements, groups = xss.flatten(), len(xss)
    sizes = np.diff(xss.offsets[0])
    dealt = (len(elements) - np.arange(groups) + groups - 1) // max(groups, 1)
    wrong = np.flatnonzero(sizes != dealt)
    if len(wrong):
        g = wrong[0]
        raise UserError(
            f"group {g} has {sizes[g]} elements, not {dealt[g]}: so many has each {groups}-th of {len(elements)}"
        )
    place = np.arange(len(elements))
    return elements.take(xss.offsets[0][place % groups] + place // groups) if groups else elements


def product(xs: Lists, ys: Lists) -> tuple[Lists, Lists]:
    """xs[i] at [i][k], and ys[k] at [i][k]."""
    rows, columns = len(xs), len(ys)
    sizes = np.full(rows, columns)
    first = xs.take(np.repeat(np.arange(rows), columns))
    return first.nest(sizes), ys.take(np.tile(np.arange(columns), rows)).nest(sizes)


def repeat(x: Any, times: int) -> Lists:
    """A list of ``times`` equal elements."""
    if times < 0:
        raise UserError(f"an element repeated {times} times: none is negative")
    if isinstance(x, Lists):
        return Lists.stack([x]).take(np.zeros(times, np.int64))
    return Lists(np.broadcast_to(x, (times, *np.shape(x))))


def gather(xs: Lists, places: Any) -> Lists:
    """The elements at some places."""
    return xs.take(_within(xs, np.asarray(places)))


def scatter(xs: Lists, into: Lists, places: Any) -> Lists:
    """``into`` with element i of ``xs`` at places[i]; of several for one place the last one."""
    numbers = _within(into, np.asarray(places))
    if len(numbers) != len(xs):
        raise UserError(f"{len(xs)} elements for {len(numbers)} places: each element has one")
    order = np.arange(len(into)) + len(xs)
    order[numbers] = np.arange(len(xs))
    return join([xs, into]).take(order)


def split(xs: Lists, into: int) -> Lists:
    """So many lists of equal length."""
    if into < 1 or len(xs) % into:
        raise UserError(f"a list of length {len(xs)} has no {into} equal parts")
    return xs.nest(np.full(into, len(xs) // into))


def _within(xs: Lists, places: np.ndarray) -> np.ndarray:
    """The places; UserError where one is outside the list."""
    outside = np.flatnonzero((places < 0) | (places >= len(xs)))
    if len(outside):
        of_many = f" (number {outside[0]} of {len(places)})" if len(places) > 1 else ""
        raise UserError(f"index {places[outside[0]]}{of_many} is outside a list of length {len(xs)}")
    return places


def _wrapped(xs: Lists, places: np.ndarray) -> Lists:
    if len(places) and not len(xs):
        raise UserError(f"{len(places)} elements are read around an empty list, which has none")
    return xs.take(places % max(len(xs), 1))


def _filled(xs: Lists, places: np.ndarray, fill: Any) -> Lists:
    outside = (places < 0) | (places >= len(xs))
    return join([xs, Lists.stack([fill])]).take(np.where(outside, len(xs), places))

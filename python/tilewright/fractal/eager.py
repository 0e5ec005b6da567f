# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The eager mode: functions run as Python has them, on NumPy arrays and nested lists of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilewright.core.errors import UserError
from tilewright.dialects.fractal import access
from tilewright.dialects.fractal.values import Lists, join
from tilewright.dialects.sparse_tile.formats import Format
from tilewright.fractal.types import ListType, Type, alike, is_number, number_dtype, type_of

Body = Callable[[list[Any]], list[Any]]


def as_list(value: Any, dtype: np.dtype | None = None) -> Lists:
    """A list from what a user may give for one; numbers get `dtype`.

    Raises:
        UserError: it is none.
    """
    if isinstance(value, Lists):
        return value
    if isinstance(value, list):
        return Lists.of(numbered(value, dtype))
    if isinstance(value, np.ndarray) and value.ndim:
        return Lists.from_array(value, 1)
    found = f"a tensor of shape {value.shape}" if isinstance(value, np.ndarray) else f"a {type(value).__name__}"
    raise UserError(f"expected a list (Lists, a Python list, or an array as the list of its rows), found {found}")


def numbered(value: Any, dtype: np.dtype | None) -> Any:
    """Nested lists with tensors of rank 0 for numbers."""
    if isinstance(value, list):
        return [numbered(element, dtype) for element in value]
    return np.asarray(value, dtype or number_dtype(value)) if is_number(value) else value


def as_value(value: Any) -> Any:
    """A tensor or lists from what a user's function may return.

    Raises:
        UserError: it is neither.
    """
    if isinstance(value, np.ndarray | Lists):
        return value
    if isinstance(value, np.generic):
        return np.asarray(value)
    if is_number(value):
        return np.asarray(value, number_dtype(value))
    if isinstance(value, list):
        return as_list(value)
    raise UserError(f"expected a tensor, a list, or a tuple of them, found a {type(value).__name__}")


def _sample(xs: Lists) -> Any:
    """An element like those of a list that may have none."""
    if xs.depth == 1:
        return np.zeros(xs.leaf_shape, xs.dtype)
    return Lists.from_array(np.zeros((1,) * (xs.depth - 1) + xs.leaf_shape, xs.dtype), xs.depth - 1)


def _listed(elements: Sequence[Any], like: Any) -> Lists:
    """The list of some elements, `like` says of which type."""
    if elements:
        return Lists.stack(elements)
    kind = type_of(like)
    if isinstance(kind, ListType):
        return Lists.empty(kind.depth + 1, kind.leaf.shape, kind.leaf.dtype)
    return Lists.empty(1, kind.shape, kind.dtype)


class Eager:
    """What the functions of the front end do with values."""

    tracing = False
    as_list, as_value = staticmethod(as_list), staticmethod(as_value)
    reverse, shift, window = staticmethod(access.reverse), staticmethod(access.shift), staticmethod(access.window)
    interleave, deinterleave = staticmethod(access.interleave), staticmethod(access.deinterleave)
    product, split, join = staticmethod(access.product), staticmethod(access.split), staticmethod(join)
    flatten = staticmethod(Lists.flatten)

    def map(self, body: Body, lists: Sequence[Lists]) -> list[Lists]:
        """Each element's results; of no elements, the function is asked for their types with an element of zeros."""
        rows = [body(list(elements)) for elements in zip(*lists, strict=True)]
        if rows:
            return [Lists.stack(column) for column in zip(*rows, strict=True)]
        with np.errstate(all="ignore"):
            return [_listed([], value) for value in body([_sample(xs) for xs in lists])]

    def scan(self, body: Callable, states: list[Any], lists: Sequence[Lists], left: bool) -> list[Lists]:
        """All states, each at its element's place."""
        kinds, rows = [type_of(state) for state in states], []
        places = range(len(lists[0]))
        current = states
        for i in places if left else reversed(places):
            current = _checked(body(current, [xs[i] for xs in lists]), kinds)
            rows.append(current)
        ordered = rows if left else rows[::-1]
        return [_listed([row[k] for row in ordered], state) for k, state in enumerate(states)]

    def fold(self, body: Callable, states: list[Any], lists: Sequence[Lists], left: bool) -> list[Any]:
        """The last state."""
        kinds = [type_of(state) for state in states]
        places = range(len(lists[0]))
        for i in places if left else reversed(places):
            states = _checked(body(states, [xs[i] for xs in lists]), kinds)
        return states

    def reduce(self, body: Callable, inits: list[Any], lists: Sequence[Lists]) -> list[Any]:
        """From the left, the init first: one of the orders that are allowed."""
        for init, xs in zip(inits, lists, strict=True):
            if not alike(type_of(init), type_of(xs).element(0)):
                raise UserError(f"the init is {type_of(init)}, the elements are of {type_of(xs)}: both have one type")
        return self.fold(body, inits, lists, True)

    def filter(self, body: Body, lists: Sequence[Lists]) -> list[Lists]:
        """The elements for which the function holds."""
        kept = [i for i in range(len(lists[0])) if _truth(body([xs[i] for xs in lists]))]
        return [xs.take(np.asarray(kept, np.int64)) for xs in lists]

    def at(self, xs: Lists, place: int) -> Any:
        """One element; negative places count from the end."""
        try:
            return xs[place]
        except IndexError as error:
            raise UserError(str(error)) from None

    def cut(self, xs: Lists, bounds: slice) -> Lists:
        """The elements of a Python slice."""
        return xs[bounds]

    def as_long_as(self, xs: Lists, other: Lists) -> Lists:
        """A list that is known to have the length of another one."""
        return xs

    def length(self, xs: Lists) -> int:
        """How many elements the outermost list has."""
        return len(xs)

    def gather(self, xs: Lists, places: Any) -> Lists:
        """The elements at some places."""
        return access.gather(xs, _numbers(places))

    def scatter(self, xs: Lists, places: Any, elements: Lists) -> Lists:
        """A list with the elements at some places replaced."""
        return access.scatter(elements, xs, _numbers(places))

    def repeat(self, x: Any, times: Any) -> Lists:
        """A list of one value."""
        return access.repeat(as_value(x), int(times))

    def places(self, xs: Lists) -> Lists:
        """The place of each element, i64."""
        return Lists(np.arange(len(xs)))

    def from_tensor(self, x: Any, depth: int) -> Lists:
        """The first dimensions of a tensor as lists."""
        return Lists.from_array(x, depth)

    def tensor(self, xs: Lists) -> np.ndarray:
        """Rectangular lists as one tensor."""
        return xs.array()

    def dequantize(self, codes: np.ndarray, format: Format, numbers: Sequence[np.ndarray], dtype: np.dtype) -> Any:
        """The elements that codes stand for."""
        scales, *zeros = numbers
        return format.dequantize(codes, scales, zeros[0] if zeros else None, dtype)

    def quantize(self, x: np.ndarray, format: Format, numbers: Sequence[np.ndarray]) -> Any:
        """The codes of elements."""
        return format.quantize(x, *numbers)

    def filler(self, xs: Lists, value: Any) -> Any:
        """An element to fill a list with."""
        kind = type_of(xs).element(0)
        if is_number(value) and not isinstance(kind, ListType):
            return np.full(kind.shape, value, kind.dtype)
        return _alike(as_value(value), kind, "the fill")


def _alike(value: Any, kind: Type, what: str) -> Any:
    if not alike(type_of(value), kind):
        raise UserError(f"{what} is {type_of(value)}, the list's elements are {kind}")
    return value


def _checked(values: list[Any], kinds: Sequence[Type]) -> list[Any]:
    for value, kind in zip(values, kinds, strict=True):
        if not alike(type_of(value), kind):
            raise UserError(f"the state begins as {kind} and becomes {type_of(value)}: its type must stay the same")
    return values


def _truth(values: list[Any]) -> bool:
    if len(values) != 1 or np.shape(values[0]) != () or values[0].dtype != np.bool_:
        found = " and ".join(str(type_of(value)) for value in values)
        raise UserError(f"the function says yes or no, a bool of rank 0; it gave {found}")
    return bool(values[0])


def _numbers(places: Any) -> np.ndarray:
    numbers = places.array() if isinstance(places, Lists) else np.asarray(places)
    if numbers.ndim != 1 or (numbers.size and numbers.dtype.kind not in "iu"):
        raise UserError(f"places are a list of integers, found {numbers.dtype} of shape {numbers.shape}")
    return numbers.astype(np.int64)

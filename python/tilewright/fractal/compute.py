# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions that take functions: map, scan, fold, reduce, filter."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

from tilewright.core.errors import UserError
from tilewright.fractal import access
from tilewright.fractal.mode import current
from tilewright.fractal.trees import Shape, describe, flatten, rebuild, unzipped
from tilewright.fractal.types import type_of
from tilewright.fractal.where import public

_UNKNOWN = object()


class _Body:
    """A user's function on flat values; it remembers in which tuples it returns them."""

    def __init__(self, function: Callable, shape: Shape = _UNKNOWN) -> None:
        if not callable(function):
            raise UserError(f"the first argument is a function, found a {type(function).__name__}")
        self.function, self.shape, self.is_state = function, shape, shape is not _UNKNOWN

    def __call__(self, *arguments: Any) -> list[Any]:
        mode = current()
        values, shape = flatten(unzipped(self.function(*arguments)))
        if self.shape is _UNKNOWN:
            self.shape = shape
        if shape != self.shape:
            was = "the state is" if self.is_state else "an element before gave"
            raise UserError(f"the function returned {describe(shape)}, but {was} {describe(self.shape)}")
        return [mode.as_value(value) for value in values]


def _mapped(function: Callable, lists: tuple, apply: str) -> Any:
    xs, shape = access.flat_lists(lists)
    body = _Body(function)
    results = getattr(current(), apply)(lambda elements: body(*rebuild(shape, elements)), xs)
    return rebuild(body.shape, results) if apply == "map" else results


@public
def map(function: Callable, *lists: Any) -> Any:
    """The list of function(x) for each x; with several lists, of function(x, y, ...) for elements at one place.

    Args:
        function: may return a tuple; the result is then a tuple of lists.
        lists: of equal length. An element of `ft.zip(xs, ys)` is a tuple.
    """
    return _mapped(function, lists, "map")


@public
def forall(function: Callable, *lists: Any) -> Any:
    """Apply to the leaves, at whatever depth they are."""
    xs, shape = access.flat_lists(lists)
    depths = {type_of(x).depth for x in xs}
    if len(depths) != 1:
        raise UserError(f"the lists have depths {sorted(depths)}: leaves are met at one depth")

    def down(depth: int) -> Callable:
        return function if depth == 0 else lambda *inner: map(down(depth - 1), *inner)

    return down(depths.pop())(*rebuild(shape, xs))


@public
def filter(function: Callable, xs: Any) -> Any:
    """The elements for which the function holds, in order."""
    _, shape = access.flat_lists((xs,))
    return rebuild(shape, _mapped(function, (xs,), "filter"))[0]


def _stateful(apply: str, left: bool, function: Callable, init: Any, lists: tuple) -> Any:
    mode = current()
    if init is None:
        return _from_first(apply, left, function, lists)
    xs, shape = access.flat_lists(lists)
    states, state_shape = flatten(unzipped(init))
    body = _Body(function, state_shape)

    def step(values: list[Any], elements: list[Any]) -> list[Any]:
        return body(rebuild(state_shape, values), *rebuild(shape, elements))

    results = getattr(mode, apply)(step, [mode.as_value(state) for state in states], xs, left)
    return rebuild(state_shape, results)


def _from_first(apply: str, left: bool, function: Callable, lists: tuple) -> Any:
    """The state starts as the first element (from the right: as the last one), which a scan also gives."""
    if len(lists) != 1:
        raise UserError("without init the state is an element: give one list (ft.zip makes one of several)")
    init, rest = _first_and_rest(access.as_lists(lists[0]), left)
    result = _stateful(apply, left, function, init, (rest,))
    if apply == "fold":
        return result
    first = access.stack([init])
    return access.join(*((first, result) if left else (result, first)))


def _first_and_rest(xs: Any, left: bool) -> tuple[Any, Any]:
    """The element that stands for init, and the list of the others."""
    if type_of(flatten(xs)[0][0]).lengths[0] == 0:
        raise UserError("without init there must be an element, the list is empty")
    return access.item(xs, 0 if left else -1), access.item(xs, slice(1, None) if left else slice(None, -1))


@public
def scanl(function: Callable, init: Any, *lists: Any) -> Any:
    """All states s[i] = function(s[i-1], x[i]), from the first element to the last; s[-1] is `init`, not in the result.

    Args:
        function: of the state and an element of each list; returns the next state.
        init: the first state, a value or a tuple; None: the state begins as the first element.
        lists: of equal length.
    """
    return _stateful("scan", True, function, init, lists)


@public
def scanr(function: Callable, init: Any, *lists: Any) -> Any:
    """As scanl from the last element to the first; the result has the order of the list."""
    return _stateful("scan", False, function, init, lists)


@public
def foldl(function: Callable, init: Any, *lists: Any) -> Any:
    """The last state of scanl; `init` for an empty list."""
    return _stateful("fold", True, function, init, lists)


@public
def foldr(function: Callable, init: Any, *lists: Any) -> Any:
    """The last state of scanr: that at the first element; `init` for an empty list."""
    return _stateful("fold", False, function, init, lists)


@public
def reduce(function: Callable, init: Any, xs: Any) -> Any:
    """All elements joined by an associative function(left, right), in order, with any bracketing.

    Args:
        function: takes two values like an element, gives one.
        init: its neutral element, which an empty list gives; None: the first element.
        xs: a list.
    """
    mode = current()
    values, first = access.as_lists(xs), init is None
    if first:
        init, values = _first_and_rest(values, True)
    flat, shape = flatten(values)
    inits, init_shape = flatten(unzipped(init))
    if init_shape != shape:
        raise UserError(f"the init is {describe(init_shape)}, but an element is {describe(shape)}")
    body = _Body(function, shape)

    def combine(left: list[Any], right: list[Any]) -> list[Any]:
        return body(rebuild(shape, left), rebuild(shape, right))

    starts = [mode.as_value(value) for value in inits]
    if first:  # an element is not neutral, so that it may not be combined again: that is a fold
        return rebuild(shape, mode.fold(combine, starts, flat, True))
    return rebuild(shape, mode.reduce(combine, starts, flat))


@public
def dilated_map(function: Callable, xs: Any, dilation: int) -> Any:
    """Deal the elements to `dilation` lists (every dilation-th goes to one), map each of these lists, deal back.

    A list of fewer elements than that is dealt to as many lists of one.
    """
    if not isinstance(dilation, builtins.int) or dilation < 1:
        raise UserError(f"the dilation is {dilation!r}: it is a positive number, known when the program is written")
    if dilation == 1:
        return function(access.as_lists(xs))
    lists, kept = access.as_lists(xs), []

    def group(inner: Any) -> Any:
        result = access.as_lists(function(inner))
        lengths = {type_of(value).lengths[0] for tree in (inner, result) for value in flatten(tree)[0]}
        kept.append(len(lengths) == 1)
        return result

    result = access.deinterleave(map(group, access.interleave(lists, dilation)))
    if not all(kept):
        return result
    values, shape = flatten(result)
    return rebuild(shape, [current().as_long_as(value, flatten(lists)[0][0]) for value in values])

# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions over lists: a user's function runs once, in a region, on the symbolic values of any element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilewright.core.errors import UserError
from tilewright.fractal.tracing.access import Access
from tilewright.fractal.tracing.values import ListValue, Value
from tilewright.fractal.types import (
    RAGGED,
    Length,
    ListType,
    Own,
    Size,
    TensorType,
    Type,
    alike,
    list_of,
    longest,
    most_of,
)
from tilewright.mlir import ir

Body = Callable[..., list[Any]]
_VERDICT = TensorType((), np.dtype(np.bool_))


class _Region:
    """A region before the op that it will belong to: result types are known only once it is traced."""

    def __init__(self, holder: ir.Operation, block: ir.Block, number: int, values: list[Value]) -> None:
        self.holder, self.block, self.number, self.values = holder, block, number, values

    def inner(self, kind: Type) -> Type:
        """A yielded type as that of a list's elements: what has a length of its own in each run is ragged."""
        if isinstance(kind, TensorType):
            return kind
        return ListType(tuple(Own(most_of(n)) if self.owns(n) else n for n in kind.lengths), kind.leaf)

    def owns(self, length: Size) -> bool:
        """Whether each run of the region has its own."""
        return isinstance(length, Length) and length.scope == self.number


class Tracer(Access):
    """All that a traced program can do."""

    def _region(self, kinds: Callable[[int], list[Type]], body: Callable[[list[Value]], list[Any]]) -> _Region:
        """Trace a body on arguments of the types that `kinds` gives for the region's number."""
        self._regions += 1
        number = self._regions
        types = kinds(number)
        holder = ir.Operation.create("builtin.module", regions=1, loc=self.here())
        block = ir.Block.create_at_start(holder.regions[0], [self.mlir(t) for t in types], [self.here()] * len(types))
        self.scopes.append(number)
        try:
            with ir.InsertionPoint(block):
                arguments = [self.symbol(a, t) for a, t in zip(block.arguments, types, strict=True)]
                values = body(arguments)
        finally:
            self.scopes.pop()
        return _Region(holder, block, number, values)

    def _finish(
        self,
        name: str,
        region: _Region,
        operands: Sequence[Value],
        kinds: Sequence[Type],
        attributes: dict[str, ir.Attribute] | None = None,
    ) -> list[Any]:
        """The op that the region belongs to."""
        with ir.InsertionPoint(region.block):
            self.op("fractal.yield", [value.value for value in region.values], [])
        op = ir.Operation.create(
            name, [self.mlir(k) for k in kinds], [x.value for x in operands], attributes, regions=1, loc=self.here()
        )
        region.block.append_to(op.regions[0])
        region.holder.erase()
        return [self.symbol(result, kind) for result, kind in zip(op.results, kinds, strict=True)]

    def map(self, body: Body, lists: Sequence[ListValue]) -> list[ListValue]:
        """fractal.map."""
        region = self._region(lambda number: [xs.type.element(number) for xs in lists], body)
        length = _common_length(lists)
        kinds = [list_of(length, region.inner(value.type)) for value in region.values]
        return self._finish("fractal.map", region, lists, kinds)

    def scan(self, body: Body, states: list[Value], lists: Sequence[ListValue], left: bool) -> list[ListValue]:
        """fractal.scan."""
        region, inits = self._recurrence(body, states, lists)
        length = _common_length(lists)
        kinds = [list_of(length, region.inner(value.type)) for value in region.values]
        return self._finish("fractal.scan", region, [*inits, *lists], kinds, _recurring(inits, lists, left))

    def fold(self, body: Body, states: list[Value], lists: Sequence[ListValue], left: bool) -> list[Value]:
        """fractal.fold."""
        region, inits = self._recurrence(body, states, lists)
        kinds = [self._outer(init.type) for init in inits]
        return self._finish("fractal.fold", region, [*inits, *lists], kinds, _recurring(inits, lists, left))

    def _recurrence(self, body: Body, states: list[Value], lists: Sequence[ListValue]) -> tuple[_Region, list[Value]]:
        """The region of a step, and the inits; both with as little knowledge of lengths as all steps share."""
        count = len(states)

        def arguments(kinds: list[Type], number: int) -> list[Type]:
            return [*(_entered(kind, number) for kind in kinds), *(xs.type.element(number) for xs in lists)]

        region, kinds = self._settled([state.type for state in states], arguments, body, count)
        return region, [self.cast_list(state, kind) for state, kind in zip(states, kinds, strict=True)]

    def _settled(
        self, kinds: list[Type], arguments: Callable[[list[Type], int], list[Type]], body: Body, count: int
    ) -> tuple[_Region, list[Type]]:
        """The region that yields what it takes: traced again while it shows that less is known of lengths."""
        while True:
            taken = kinds
            region = self._region(
                lambda number, taken=taken: arguments(taken, number),
                lambda values: body(values[:count], values[count:]),
            )
            kinds = [_shared(kind, value.type) for kind, value in zip(taken, region.values, strict=True)]
            if kinds == taken:
                break
            region.holder.erase()
        with ir.InsertionPoint(region.block):
            region.values = [
                self.cast_list(value, _entered(kind, region.number)) if _is_open(kind) else self.cast_list(value, kind)
                for value, kind in zip(region.values, kinds, strict=True)
            ]
        return region, kinds

    def _outer(self, kind: Type) -> Type:
        """The type of the last state."""
        return ListType((self.fresh(), *kind.lengths[1:]), kind.leaf) if _is_open(kind) else kind

    def reduce(self, body: Body, inits: list[Value], lists: Sequence[ListValue]) -> list[Value]:
        """fractal.reduce."""
        for init, xs in zip(inits, lists, strict=True):
            if not alike(init.type, xs.type.element(0)):
                raise UserError(f"the init is {init.type}, the elements are of {xs.type}: both have one type")
        elements = [xs.type.element(-1) for xs in lists]
        first = [_shared(init.type, element) for init, element in zip(inits, elements, strict=True)]

        def arguments(kinds: list[Type], number: int) -> list[Type]:
            return [_entered(kind, number) for kind in (*kinds, *kinds)]

        region, kinds = self._settled(first, arguments, body, count := len(inits))
        starts = [self.cast_list(init, kind) for init, kind in zip(inits, kinds, strict=True)]
        sources = [
            self.cast_list(xs, list_of(xs.type.lengths[0], _inside(kind)))
            for xs, kind in zip(lists, kinds, strict=True)
        ]
        results = [self._outer(kind) for kind in kinds]
        segments = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(lists), count])}
        return self._finish("fractal.reduce", region, [*sources, *starts], results, segments)

    def filter(self, body: Body, lists: Sequence[ListValue]) -> list[ListValue]:
        """fractal.filter; of several lists it gives the places, at which the lists are then read."""
        if len(lists) == 1:
            region = self._region(lambda number: [lists[0].type.element(number)], body)
            kept = self.fresh(most_of(lists[0].type.lengths[0]))
            kind = ListType((kept, *lists[0].type.lengths[1:]), lists[0].type.leaf)
            return self._finish("fractal.filter", _judging(region), lists, [kind])
        places = self.places(lists[0])
        kept = self.filter(lambda values: body([self.at(xs, values[0]) for xs in lists]), [places])[0]
        return [self.gather(xs, kept) for xs in lists]


class _Open(Length):
    """The length of a state that steps may change: each step has its own."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Open)

    def __hash__(self) -> int:
        return 0


def _is_open(kind: Type) -> bool:
    return isinstance(kind, ListType) and isinstance(kind.lengths[0], _Open)


def _inside(kind: Type) -> Type:
    return ListType((RAGGED, *kind.lengths[1:]), kind.leaf) if _is_open(kind) else kind


def _entered(kind: Type, number: int) -> Type:
    """The type of a state within the region: an open length is one of each run."""
    return ListType((Length(number), *kind.lengths[1:]), kind.leaf) if _is_open(kind) else kind


def _shared(state: Type, given: Type) -> Type:
    """What a state's type and that of the next state have in common.

    Raises:
        UserError: depth or leaf.
    """
    if not alike(state, given):
        raise UserError(f"the state begins as {state} and becomes {given}: its type must stay the same")
    if isinstance(state, TensorType) or isinstance(given, TensorType):
        return state
    first, *inner = zip(state.lengths, given.lengths, strict=True)
    levels = (a if a == b and a != RAGGED else Own(longest(a, b)) for a, b in inner)
    return ListType((first[0] if first[0] == first[1] else _Open(), *levels), state.leaf)


def _common_length(lists: Sequence[ListValue]) -> Size:
    lengths = [xs.type.lengths[0] for xs in lists]
    return next((n for n in lengths if isinstance(n, int)), lengths[0])


def _recurring(inits: Sequence[Value], lists: Sequence[ListValue], left: bool) -> dict[str, ir.Attribute]:
    segments = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(inits), len(lists)])}
    return segments if left else {**segments, "right": ir.UnitAttr.get()}


def _judging(region: _Region) -> _Region:
    if [value.type for value in region.values] != [_VERDICT]:
        found = " and ".join(str(value.type) for value in region.values)
        region.holder.erase()
        raise UserError(f"the function says yes or no, a bool of rank 0; it gave {found}")
    return region

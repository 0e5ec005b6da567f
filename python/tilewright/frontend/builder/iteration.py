# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops over tensors whose body is written with builder methods: carried states, and results stacked per iteration.

What a loop carries must have one type, and what the body makes of it is only known once the body is built. So a loop is
built under a *layout*: which sizes of states vary, what the stacked elements are, whether iterations end early. Where
the body turns out not to fit, what was built is thrown away and built again under the layout that it asks for; layouts
only ever become more general, so this ends (nearly always with the second).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from tilewright.core.errors import UnsupportedError, UserError
from tilewright.frontend.builder.builder import Builder
from tilewright.frontend.builder.dims import Dim, Size, same
from tilewright.frontend.builder.dtypes import BOOL
from tilewright.frontend.builder.scalars import Scalar
from tilewright.frontend.builder.stacking import Element, Stack
from tilewright.frontend.builder.tensor import Tensor, nothing
from tilewright.mlir import ir

T = TypeVar("T")

_ROOM = 1 << 24  # bytes: stacked results of a loop that may end early get room for all iterations up to so many


@dataclass
class Iterated:
    """What one iteration gives: the next states, elements to stack, and whether to go on (None: always)."""

    states: Sequence[Tensor]
    stacked: Sequence[Tensor] = ()
    proceed: Tensor | None = None


Step = Callable[[int | Scalar, Sequence[Tensor]], Iterated]
Results = tuple[list[Tensor], list[Tensor]]
Ended = tuple[Scalar | None, list[Tensor]]  # how many iterations, where the body may end them; what is carried


@dataclass(frozen=True)
class _Layout:
    loose: tuple[frozenset[int], ...]  # per state: the axes along which its size may change
    elements: tuple[Element, ...] | None  # None: not known yet
    early: bool  # whether the body may end the loop

    @property
    def varying(self) -> bool:
        return any(self.loose)


class _Misfit(Exception):
    def __init__(self, layout: _Layout) -> None:
        super().__init__("the body asks for another layout")
        self.layout = layout


def attempt(b: Builder, emit: Callable[[ir.Operation], T]) -> T:
    """What `emit` builds and returns; where it raises, nothing of it stays. It gets the op that it builds in.

    What was built in vain lives on outside the module until the import ends: the builder knows values by their
    identity, which must not pass to new ones.
    """
    draft = ir.Operation.create("scf.execute_region", regions=1)
    block = ir.Block.create_at_start(draft.regions[0], [])
    try:
        with ir.InsertionPoint(block):
            result = emit(draft)
    except BaseException:
        draft.detach_from_parent()
        b.discarded.append(draft)
        raise
    for op in list(block.operations):
        op.operation.move_before(draft)
    draft.erase()
    return result


def erase_discarded(b: Builder) -> None:
    """End the life of what was built in vain."""
    for op in b.discarded:  # inner ones, which read values of outer ones, come first
        op.erase()
    b.discarded.clear()


@dataclass
class Iteration:
    """A loop.

    Args:
        b: the builder.
        count: how many iterations; None where only the body ends the loop.
        states: initial values of what is carried.
        step: one iteration: from (counter, states).
        start: whether to begin at all (None: yes).
        backward: per stacked result: whether the first iteration makes the last row.
        room: the length of stacked results, which zeros fill up (default: the number of iterations).
        unroll: up to how many iterations are written out where that keeps sizes static.
    """

    b: Builder
    count: Size | Scalar | None
    states: Sequence[Tensor]
    step: Step
    start: Scalar | None = None
    backward: Sequence[bool] = ()
    room: Size | None = None
    unroll: int = 0

    def run(self) -> Results:
        """Build the loop. Returns the last states and the stacked results."""
        early = self.count is None or self.start is not None
        layout = _Layout(tuple(frozenset() for _ in self.states), None, early)
        if not early and self.room is None and isinstance(self.count, int) and self.count <= 1:
            return self._never(layout) if self.count < 1 else self.unrolled()
        while True:
            try:
                return attempt(self.b, lambda draft, layout=layout: self._build(draft, layout))
            except _Misfit as misfit:
                layout = misfit.layout
            if layout.varying and not layout.early and self.room is None and self._is_short():
                return self.unrolled()

    def _is_short(self) -> bool:
        return isinstance(self.count, int) and self.count <= self.unroll

    def unrolled(self) -> Results:
        """All iterations one after the other; the number of them is known, and the body does not end the loop."""
        assert isinstance(self.count, int)
        states, rows = list(self.states), []
        for i in range(self.count):
            result = self.step(i, states)
            states = list(result.states)
            rows.append(result.stacked)
        columns = [[x.unsqueeze([0]) for x in column] for column in zip(*rows, strict=True)]
        return states, [self.b.concat(c[::-1] if self._backward(k) else c, 0) for k, c in enumerate(columns)]

    def _never(self, layout: _Layout) -> Results:
        """No iteration: the body only tells what would have been stacked."""

        def probe(draft: ir.Operation) -> _Layout:
            result = self.step(self.b.idx(0), [self.b.array(s) for s in self.states])
            elements = tuple(Element.of(x, draft) for x in result.stacked)
            raise _Misfit(_Layout(layout.loose, elements, layout.early))

        try:
            attempt(self.b, probe)
        except _Misfit as misfit:
            layout = misfit.layout
        shapes = [[0, *map(_or_zero, e.shape)] for e in layout.elements or ()]
        empty = [nothing(s, e.dtype) for s, e in zip(shapes, layout.elements or (), strict=True)]
        return list(self.states), empty

    def _backward(self, k: int) -> bool:
        return k < len(self.backward) and self.backward[k]

    # One layout -----------------------------------------------------------------------------------------------

    def _build(self, draft: ir.Operation, layout: _Layout) -> Results:
        b = self.b
        pairs = zip(self.states, layout.loose, strict=True)
        start = [b.loosen(s, sorted(axes)) if axes else b.array(s) for s, axes in pairs]
        stacks = [self._stack(k, element, layout) for k, element in enumerate(layout.elements or ())]
        carried = [*start, *(s.buffer() for s in stacks)]

        def body(counter: Scalar, *now: Tensor) -> Iterated:
            result = self.step(counter, now[: len(start)])
            self._check(draft, layout, now[: len(start)], result)
            buffers = zip(stacks, now[len(start) :], result.stacked, strict=True)
            filled = [s.put(buffer, x, counter, self.count) for s, buffer, x in buffers]
            return Iterated([*result.states, *filled], proceed=result.proceed)

        varying = layout.varying or any(s.grows for s in stacks)
        build = self._while if layout.early else self._for
        done, found = build(carried, body, varying)
        states, buffers = found[: len(start)], found[len(start) :]
        return states, [s.finished(buffer, done) for s, buffer in zip(stacks, buffers, strict=True)]

    def _stack(self, k: int, element: Element, layout: _Layout) -> Stack:
        rows = self.count if self.room is None else self.room
        if layout.early and not (isinstance(rows, int) and rows * element.bytes <= _ROOM):
            rows = None
        return Stack(self.b, element, rows, self._backward(k), self.room is not None)

    def _for(self, carried: list[Tensor], body: Callable[..., Iterated], varying: bool) -> Ended:
        count = self.count
        assert count is not None
        return None, self.b.for_(0, count, carried, lambda *now: body(*now).states, varying=varying)

    def _while(self, carried: list[Tensor], body: Callable[..., Iterated], varying: bool) -> Ended:
        b, m = self.b, self.b.math
        limit = None if self.count is None else b.idx(self.count)
        first = m.scalar(1, BOOL) if self.start is None else self.start

        # States come first: what canonicalization takes from behind them leaves each where bufferization looks for it.
        def holds(*now: Any) -> Scalar:
            *_, counter, going = now
            return going if limit is None else m.logical_and(going, counter < limit)

        def iterate(*now: Any) -> list[Scalar | Tensor]:
            *states, counter, _ = now
            result = body(counter, *states)
            going = m.scalar(1, BOOL) if result.proceed is None else b.item(result.proceed)
            return [*result.states, counter + 1, going]

        *found, done, _ = b.while_([*carried, b.idx(0), first], holds, iterate, varying=varying)
        return done, found

    def _check(self, draft: ir.Operation, layout: _Layout, now: Sequence[Tensor], result: Iterated) -> None:
        """Raise _Misfit where what an iteration makes does not fit the layout."""
        loose = tuple(
            axes | _changed(k, old, new, layout.varying)
            for k, (axes, old, new) in enumerate(zip(layout.loose, now, result.states, strict=True))
        )
        if layout.elements is None:
            elements = tuple(Element.of(x, draft) for x in result.stacked)
        else:
            elements = tuple(e.covering(x) for e, x in zip(layout.elements, result.stacked, strict=True))
        early = layout.early or not _always(result.proceed)
        wanted = _Layout(loose, elements, early)
        if wanted != replace(layout, elements=layout.elements or ()):
            raise _Misfit(wanted)


def _or_zero(size: Size | None) -> int:
    return size if isinstance(size, int) else 0


def _always(proceed: Tensor | None) -> bool:
    return proceed is None or (proceed.is_known and bool(proceed.numpy().reshape(-1)[0]))


def _changed(number: int, old: Tensor, new: Tensor, varying: bool) -> frozenset[int]:
    """The axes along which an iteration changes a state's size."""
    if old.dtype != new.dtype:
        raise UserError(f"an iteration changes the element type of state {number} from {old.dtype} to {new.dtype}")
    if old.rank != new.rank:
        shapes = f"from {list(old.shape)} to {list(new.shape)}"
        raise UnsupportedError(f"an iteration changes the number of dimensions of state {number} {shapes}")
    pairs = enumerate(zip(old.shape, new.shape, strict=True))
    return frozenset(d for d, (m, n) in pairs if not same(m, n) and not (varying and isinstance(m, Dim)))

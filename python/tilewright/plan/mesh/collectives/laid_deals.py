# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One dimension dealt anew along an axis: in blocks of several sizes, element by element, or whole for all.

Parts go round the axis, one place a round, until each core has seen what it is to hold.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tilewright.core.errors import UnsupportedError
from tilewright.dialects.coremesh import Split
from tilewright.plan.mesh.collectives.layouts import Laid, deal
from tilewright.plan.mesh.kernels import Fill, Store
from tilewright.plan.mesh.tables import line_expr
from tilewright.plan.mesh.terms import P, Term, equal
from tilewright.plan.mesh.writer import Axis, Writer, cores, slot
from tilewright.sim.coremesh.program import Cores, Order, Program

#: Messages that are waited for at once.
TOGETHER = 64


def steps(source: Laid, result: Laid) -> list[tuple[Split | None, ...]]:
    """The layouts on the way from one to another where dimensions are dealt, without the first one.

    From one step to the next either one dimension is dealt anew along its axis, or only others move.
    """
    found = [source.splits]

    def step(splits: tuple[Split | None, ...]) -> None:
        if splits != found[-1]:
            found.append(splits)

    for dim, (old, new) in enumerate(zip(source.splits, result.splits, strict=True)):
        if old is not None and deal(old) and old != new:
            direct = new is not None and new.axis == old.axis
            step(_with(found[-1], dim, new if direct else None))
    dealt = [dim for dim, new in enumerate(result.splits) if new is not None and deal(new) and found[-1][dim] != new]
    step(tuple(None if dim in dealt else new for dim, new in enumerate(result.splits)))
    for dim in dealt:
        step(_with(found[-1], dim, result.splits[dim]))
    return found[1:]


def dealt_anew(source: Laid, result: Laid) -> int | None:
    """The only dimension that differs, if one of its layouts is no blocks of one size; of equal layouts such a one."""
    pairs = list(zip(source.splits, result.splits, strict=True))
    dealt = [dim for dim, pair in enumerate(pairs) if any(one is not None and deal(one) for one in pair)]
    differ = [dim for dim, pair in enumerate(pairs) if pair[0] != pair[1]] or dealt[:1]
    return differ[0] if len(differ) == 1 and differ[0] in dealt else None


def redeal(source: Laid, result: Laid, dim: int) -> Program:
    """One dimension goes from one deal to another along one axis; input ``x``, output ``y``.

    Raises:
        UnsupportedError: one position has the tensor alone; the dimension is skewed.
    """
    if source.at or result.at:
        raise UnsupportedError("Blocks are dealt among cores that all have some. Multicast the tensor first.")
    axes = [split.axis for split in _pair(source, result, dim) if split is not None]
    others = replace(source, splits=_with(source.splits, dim, None))
    orders = {split.order for split in (*source.splits, *result.splits) if split is not None}
    if len(orders) > 1:
        raise UnsupportedError("A tensor is dealt along a ring, or as cores stand. Use `ring` in both layouts or none.")
    return _Deal(source, dim, axes[0], others, orders.pop() if orders else "linear").program(result.splits[dim])


def _pair(source: Laid, result: Laid, dim: int) -> tuple[Split | None, Split | None]:
    return source.splits[dim], result.splits[dim]


def _with(splits: tuple[Split | None, ...], dim: int, split: Split | None) -> tuple[Split | None, ...]:
    return (*splits[:dim], split, *splits[dim + 1 :])


@dataclass(frozen=True)
class _Deal:
    """A dimension and its axis.

    Attributes:
        others: the layout of the other dimensions.
    """

    source: Laid
    dim: int
    axis: Axis
    others: Laid
    order: Order

    @property
    def length(self) -> int:
        return self.source.length(self.axis)

    def elements(self, split: Split | None) -> np.ndarray:
        """The element in each slot of each place, int64 [places, slots]; as many as there are, or more: none."""
        size, length = self.source.shape[self.dim], self.length
        places = np.arange(length)[:, None]
        if split is None:
            return np.tile(np.arange(size), (length, 1))
        if split.deal == "cyclic":
            return np.arange(-(-size // length)) * length + places
        if split.deal == "balanced":
            each, more = divmod(size, length)
            return _in_rows(np.where(np.arange(length) < more, each + 1, each), size)
        if len(split.blocks) > 1:
            return _in_rows(np.array(split.blocks), size)
        if split.skew:
            raise UnsupportedError("A dimension that is skewed is not dealt anew. Move it to plain blocks first.")
        block = split.blocks[0] if split.blocks else -(-size // length)
        return (places + split.rotate) % length * block + np.arange(block)

    def program(self, goal: Split | None) -> Program:
        source, order, writer = self.source, self.order, Writer("redeal", self.source.height, self.source.width)
        have, want = self.elements(source.splits[self.dim]), self.elements(goal)
        piece = tuple(1 if at == self.dim else size for at, size in enumerate(self.others.tile))
        home = writer.buffer("x", piece, source.dtype, have.shape[1])
        end = writer.buffer("y", piece, source.dtype, want.shape[1])
        for at, column in enumerate(have.T):
            writer.input("x", source.shape, slot(home, at), self._block(column), order)
        away, there = _nearest(have, want, source.shape[self.dim])
        for at in np.flatnonzero((away < 0).any(axis=0)):
            writer.compute(self._who(away[:, at] < 0), Fill(piece, source.dtype), (), (slot(end, int(at)),))
        here, last = home, int(away.max(initial=0))
        passing = [writer.buffer("passing", piece, source.dtype, have.shape[1]) for _ in range(min(last, 2))]
        for turn in range(last + 1):
            if turn:
                here = self._passed(writer, here, passing[turn % len(passing)], have.shape[1])
            for at in np.flatnonzero((away == turn).any(axis=0)):
                taken = Term(line_expr(np.where(away[:, at] == turn, there[:, at], 0), self._number))
                who = self._who(away[:, at] == turn)
                writer.compute(who, Store(), (slot(here, taken),), (slot(end, int(at)),))
        for at, column in enumerate(want.T):
            writer.output("y", source.shape, slot(end, at), self._block(column), order)
        return writer.program()

    @property
    def _number(self) -> int:
        """Of the axis among the dimensions of expressions."""
        return 0 if self.axis == "y" else 1

    def _who(self, places: np.ndarray) -> Cores:
        """The cores at these places."""
        if places.all():
            return cores(order=self.order)
        return cores(equal(Term(line_expr(places.astype(np.int64), self._number)), 1), order=self.order)

    def _block(self, column: np.ndarray) -> list[Term]:
        """Indices of a slot's piece; what is none lies behind the tensor."""
        own = Term(line_expr(np.minimum(column, self.source.shape[self.dim]), self._number))
        return [own if at == self.dim else one for at, one in enumerate(self.others.blocks())]

    def _passed(self, writer: Writer, here: str, there: str, count: int) -> str:
        """All slots one place on."""
        route = writer.route(f"{self.axis}_around", self.axis, (P + 1) % self.length, self.order)
        everyone = cores(order=self.order)
        for first in range(0, count, TOGETHER):
            tokens = []
            for at in range(first, min(first + TOGETHER, count)):
                tokens.append(writer.send(everyone, route, slot(here, at)))
                tokens.append(writer.recv(everyone, route, slot(there, at)))
            writer.wait(tokens, "round")
        return there


def _in_rows(counts: np.ndarray, size: int) -> np.ndarray:
    """Elements of places that hold so many each, one behind the other."""
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])[:, None]
    at = np.arange(counts.max(initial=1))
    return np.where(at < counts[:, None], starts + at, size)


def _nearest(have: np.ndarray, want: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Per wanted slot of each place: how many places on its element lies, and its slot there; -1 where it has none."""
    length = len(have)
    away, there = np.full(want.shape, -1), np.zeros(want.shape, np.int64)
    for turn in reversed(range(length)):
        for place in range(length):
            slots = np.full(size + 1, -1)
            row = have[(place + turn) % length]
            real = row < size
            slots[row[real]] = np.flatnonzero(real)
            found = slots[np.minimum(want[place], size)]
            away[place], there[place] = (
                np.where(found >= 0, turn, away[place]),
                np.where(found >= 0, found, there[place]),
            )
    return away, there

# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One dimension dealt anew along an axis: in blocks of several sizes, element by element, or whole for all.

Parts go round the axis, one place a round, until each core has seen what it is to hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise, product

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

    From one step to the next either one dimension is dealt anew along its axis, whatever others are, or no dimension
    is dealt: where several differ, those that are go whole to all cores first, and are dealt last.
    """
    found, goal = [source.splits], result.splits
    differ = _differing(source.splits, goal)
    if len(differ) == 1 and _is_along_one_axis(source.splits[differ[0]], goal[differ[0]]):
        return [goal]
    dealt = [dim for dim in range(len(goal)) if differ and (_is_dealt(source.splits[dim]) or _is_dealt(goal[dim]))]
    for dim in dealt:
        found.append(_with(found[-1], dim, None))
    found.append(tuple(None if dim in dealt else split for dim, split in enumerate(goal)))
    for dim in dealt:
        found.append(_with(found[-1], dim, goal[dim]))
    return [after for before, after in pairwise(found) if before != after]


def dealt_anew(source: Laid, result: Laid) -> int | None:
    """The only dimension that differs, if one of a tensor is in no blocks of one size; of equal layouts such a one."""
    dealt = [
        dim for dim, pair in enumerate(zip(source.splits, result.splits, strict=True)) if any(map(_is_dealt, pair))
    ]
    differ = _differing(source.splits, result.splits) or dealt[:1]
    return differ[0] if dealt and len(differ) == 1 else None


def _differing(old: tuple[Split | None, ...], new: tuple[Split | None, ...]) -> list[int]:
    return [dim for dim, pair in enumerate(zip(old, new, strict=True)) if pair[0] != pair[1]]


def _is_dealt(split: Split | None) -> bool:
    return split is not None and bool(deal(split))


def _is_along_one_axis(old: Split | None, new: Split | None) -> bool:
    return old is None or new is None or old.axis == new.axis


def redeal(source: Laid, result: Laid, dim: int) -> Program:
    """One dimension goes from one deal to another along one axis; input ``x``, output ``y``.

    Raises:
        UnsupportedError: one position has the tensor alone; the dimension is skewed.
    """
    if source.at or result.at:
        raise UnsupportedError("Blocks are dealt among cores that all have some. Multicast the tensor first.")
    axes = [split.axis for split in _pair(source, result, dim) if split is not None]
    orders = {split.order for split in (*source.splits, *result.splits) if split is not None}
    if len(orders) > 1:
        raise UnsupportedError("A tensor is dealt along a ring, or as cores stand. Use `ring` in both layouts or none.")
    return _Deal(source, dim, axes[0], orders.pop() if orders else "linear").program(result.splits[dim])


def _pair(source: Laid, result: Laid, dim: int) -> tuple[Split | None, Split | None]:
    return source.splits[dim], result.splits[dim]


def _with(splits: tuple[Split | None, ...], dim: int, split: Split | None) -> tuple[Split | None, ...]:
    return (*splits[:dim], split, *splits[dim + 1 :])


def _number(axis: Axis) -> int:
    """Of an axis among the dimensions of expressions."""
    return 0 if axis == "y" else 1


@dataclass(frozen=True)
class _Deal:
    """A dimension and its axis. Pieces are one element long along it, and along others that are dealt."""

    source: Laid
    dim: int
    axis: Axis
    order: Order

    def elements(self, split: Split | None, dim: int) -> np.ndarray:
        """The element in each slot of each place, int64 [places, slots]; as many as there are, or more: none."""
        size, length = self.source.shape[dim], self.source.length(self.axis if split is None else split.axis)
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

    def _others(self) -> Laid:
        """The layout of the other dimensions, of those that are dealt without."""
        splits = [None if _is_dealt(split) else split for split in self.source.splits]
        return replace(self.source, splits=_with(tuple(splits), self.dim, None))

    def _kept(self) -> list[dict[int, Term]]:
        """Of a core's pieces at one index: where they lie along other dimensions that are dealt."""
        columns = []
        for dim, split in enumerate(self.source.splits):
            if dim != self.dim and split is not None and _is_dealt(split):
                table = self.elements(split, dim).T
                columns.append([(dim, self._index(column, dim, split.axis)) for column in table])
        return [dict(chosen) for chosen in product(*columns)]

    def program(self, goal: Split | None) -> Program:
        source, order, writer = self.source, self.order, Writer("redeal", self.source.height, self.source.width)
        have, want = self.elements(source.splits[self.dim], self.dim), self.elements(goal, self.dim)
        kept, others = self._kept(), self._others()
        each = len(kept)
        piece = tuple(1 if at == self.dim or at in kept[0] else size for at, size in enumerate(others.tile))
        home = writer.buffer("x", piece, source.dtype, have.shape[1] * each)
        end = writer.buffer("y", piece, source.dtype, want.shape[1] * each)
        for at, block in enumerate(self._blocks(have, kept, others)):
            writer.input("x", source.shape, slot(home, at), block, order)
        away, there = _nearest(have, want, source.shape[self.dim])
        for at in np.flatnonzero((away < 0).any(axis=0)):
            for number in range(each):
                to = slot(end, int(at) * each + number)
                writer.compute(self._who(away[:, at] < 0), Fill(piece, source.dtype), (), (to,))
        here, last = home, int(away.max(initial=0))
        count = have.shape[1] * each
        passing = [writer.buffer("passing", piece, source.dtype, count) for _ in range(min(last, 2))]
        for turn in range(last + 1):
            if turn:
                here = self._passed(writer, here, passing[turn % len(passing)], count)
            for at in np.flatnonzero((away == turn).any(axis=0)):
                taken = Term(line_expr(np.where(away[:, at] == turn, there[:, at], 0), _number(self.axis)))
                who = self._who(away[:, at] == turn)
                for number in range(each):
                    to = slot(end, int(at) * each + number)
                    writer.compute(who, Store(), (slot(here, taken * each + number),), (to,))
        for at, block in enumerate(self._blocks(want, kept, others)):
            writer.output("y", source.shape, slot(end, at), block, order)
        return writer.program()

    def _who(self, places: np.ndarray) -> Cores:
        """The cores at these places."""
        if places.all():
            return cores(order=self.order)
        return cores(equal(Term(line_expr(places.astype(np.int64), _number(self.axis))), 1), order=self.order)

    def _index(self, column: np.ndarray, dim: int, axis: Axis) -> Term:
        """That of a slot's piece along a dimension; what is none lies behind the tensor."""
        return Term(line_expr(np.minimum(column, self.source.shape[dim]), _number(axis)))

    def _blocks(self, elements: np.ndarray, kept: list[dict[int, Term]], others: Laid) -> Iterator[list[Term]]:
        """Indices of each slot's piece, those of one element of the dimension in a row."""
        for column in elements.T:
            own = self._index(column, self.dim, self.axis)
            for places in kept:
                yield [own if at == self.dim else places.get(at, one) for at, one in enumerate(others.blocks())]

    def _passed(self, writer: Writer, here: str, there: str, count: int) -> str:
        """All slots one place on."""
        length = self.source.length(self.axis)
        route = writer.route(f"{self.axis}_around", self.axis, (P + 1) % length, self.order)
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

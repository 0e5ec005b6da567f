# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From one layout of a tensor on a grid to another: linear to ring, skewed, rotated, gathered, axes exchanged.

In steps, each along one axis: tiles travel hop by hop to the right and to the left, and cores keep what they need as it
comes by (`travel`). No router sees more than two flows each way, however far tiles go. Exchanged axes would bring whole
panels to the diagonal; on a square grid tiles are skewed first, so that each core holds one at any time (the three
phases of Cannon, 1969, for transposition): to (i, i + j), along the column to (j, i + j), and to (j, i).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import gcd, lcm
from typing import Any

import numpy as np

from tilewright.core.errors import UnsupportedError
from tilewright.plan.mesh.terms import Term, X, Y, term
from tilewright.plan.mesh.travel import Map, Step, travel
from tilewright.plan.mesh.writer import Axis, Writer, slot
from tilewright.sim.coremesh.program import Order, Program

Maps = tuple[Map | None, ...]


@dataclass(frozen=True)
class Spread:
    """How one dimension lies along an axis; the fields are those of `#coremesh.split`.

    Attributes:
        block: elements of one core; None: as few as hold the dimension.
    """

    axis: Axis
    order: Order = "linear"
    rotate: int = 0
    skewed: bool = False
    block: int | None = None


@dataclass(frozen=True)
class Placing:
    """Where a tensor lies.

    Attributes:
        spreads: per dimension; None: whole.
        at: the one place along an axis, as cores stand, that has it.
    """

    spreads: tuple[Spread | None, ...]
    at: dict[Axis, int] = field(default_factory=dict)

    @property
    def order(self) -> Order:
        """How all of it counts.

        Raises:
            UnsupportedError: dimensions differ.
        """
        orders = {spread.order for spread in self.spreads if spread is not None}
        if len(orders) > 1:
            raise UnsupportedError(
                "A tensor is split along a ring on one axis and as cores stand on the other; programs count both "
                "alike. Use `ring` on both axes or on none."
            )
        return "ring" if "ring" in orders else "linear"


@dataclass(frozen=True)
class Relayout:
    """A tensor that moves; both placings are on ``height`` x ``width`` cores."""

    shape: tuple[int, ...]
    height: int
    width: int
    before: Placing
    after: Placing
    dtype: Any = np.float32


def relayout(what: Relayout) -> Program:
    """A program with input ``x`` and output ``y``, of the tensor's shape."""
    for placing in (what.before, what.after):
        _check_whole(placing)
    cuts = [_Cut.of(what, dim) for dim in range(len(what.shape))]
    before, after = (tuple(maps) for maps in zip(*((one.before, one.after) for one in cuts), strict=True))
    writer = Writer("relayout", what.height, what.width)
    shape, counts = tuple(one.piece for one in cuts), tuple(one.count for one in cuts)
    steps = _steps(before, after, what, counts)
    number = Step(None, before, before, counts).held
    here = writer.buffer("x", shape, what.dtype, number)
    for at in range(number):
        writer.input("x", what.shape, slot(here, at), _blocks(what.before, before, counts, at, what), what.before.order)
    for step in steps:
        here = travel(writer, step, here, shape, what.dtype)
    for at in range(Step(None, after, after, counts).held):
        writer.output("y", what.shape, slot(here, at), _blocks(what.after, after, counts, at, what), what.after.order)
    return writer.program()


@dataclass(frozen=True)
class _Cut:
    """One dimension in pieces, of which every block is a number.

    Attributes:
        piece: elements of each; ``count``: how many hold the dimension.
    """

    piece: int
    count: int
    before: Map | None
    after: Map | None

    @staticmethod
    def of(what: Relayout, dim: int) -> _Cut:
        size = what.shape[dim]
        spreads = what.before.spreads[dim], what.after.spreads[dim]
        units = [_unit(one, size, what) for one in spreads if one is not None]
        piece = gcd(*units) if units else size
        maps = [one and _map(one, size, piece, what) for one in spreads]
        return _Cut(piece, -(-size // piece), *maps)


def _lengths(what: Relayout, axis: Axis) -> tuple[int, int]:
    """Cores along an axis and along the other one."""
    return (what.width, what.height) if axis == "x" else (what.height, what.width)


def _unit(spread: Spread, size: int, what: Relayout) -> int:
    """Elements that stay together: those of a block, or of the finer blocks that a skew counts."""
    length, across = _lengths(what, spread.axis)
    parts = lcm(length, across) if spread.skewed else length
    return spread.block * length // parts if spread.block else -(-size // parts)


def _map(spread: Spread, size: int, piece: int, what: Relayout) -> Map:
    length, across = _lengths(what, spread.axis)
    parts = lcm(length, across) if spread.skewed else length
    fine = _unit(spread, size, what) // piece
    held = fine * (parts // length)
    lead = fine * (parts // across) if spread.skewed and across > 1 else 0
    return Map(spread.axis, spread.order, length, held, spread.rotate % length * held, lead)


def _blocks(placing: Placing, maps: Maps, counts: tuple[int, ...], number: int, what: Relayout) -> list[Term]:
    """Indices of the pieces in a slot; cores that do not have the tensor name pieces behind it."""
    at = {placing.order: {"y": Y, "x": X}}
    found = [term(index) for index in Step(None, maps, maps, counts).pieces(at, number)]
    for axis, place in placing.at.items():
        if not found:
            raise UnsupportedError("A single number cannot lie on one core alone: let all cores have it.")
        length, here = _lengths(what, axis)[0], Y if axis == "y" else X
        found[0] += (here - (place if placing.order == "linear" else _logical(place, length))) % length * counts[0]
    return found


def _logical(place: int, length: int) -> int:
    return place // 2 if place % 2 == 0 else length - (place + 1) // 2


def _steps(before: Maps, after: Maps, what: Relayout, counts: tuple[int, ...]) -> list[Step]:
    """Steps from one layout to another; dimensions are not skewed where others move across."""
    plan = Plan(before, counts)
    for axis, place in what.before.at.items():
        if what.after.at.get(axis) != place:
            plan.steps.append(Step(axis, before, before, counts, place))
    moved = [dim for dim, (old, new) in enumerate(zip(before, after, strict=True)) if old != new]
    still = all(one is None or not one.lead for dim, one in enumerate(before) if dim not in moved)
    if len(moved) == 1 and still:
        plan.toward(after)
        return plan.steps
    if moved:
        plan.toward(_plain(before, before))
        plan.toward(_plain(after, (None,) * len(after)))
        plan.toward(_plain(after, after))
        plan.toward(after)
    return plan.steps


def _plain(maps: Maps, turned: Maps) -> Maps:
    """The same without skew, rotated as others are."""
    return tuple(
        one and replace(one, lead=0, first=like.first if like else 0) for one, like in zip(maps, turned, strict=True)
    )


def _check_whole(placing: Placing) -> None:
    if sum(spread is not None and spread.skewed for spread in placing.spreads) > 1:
        raise UnsupportedError(
            "Two dimensions are skewed: cores then have equal parts of both, and most of the tensor lies nowhere. Skew "
            "one."
        )


class Plan:
    """Steps that are taken so far, and where the tensor lies after them."""

    def __init__(self, maps: Maps, counts: tuple[int, ...]) -> None:
        self.maps, self.counts = maps, counts
        self.steps: list[Step] = []

    def toward(self, goal: Maps) -> None:
        """Take steps until the tensor lies so."""
        while self.maps != goal:
            if not any(self._one(dim, new) for dim, new in enumerate(goal)):
                self._exchange(goal)

    def _one(self, dim: int, new: Map | None) -> bool:
        """Whether a dimension could be brought where it is to be: its new axis is its own or nobody's."""
        old = self.maps[dim]
        taken = {one.axis for number, one in enumerate(self.maps) if one is not None and number != dim}
        if old == new or (new is not None and new.axis in taken):
            return False
        self._take(old and old.axis, {dim: new})
        return True

    def _exchange(self, goal: Maps) -> None:
        """Two dimensions change axes with each other."""
        rows, columns = (self._along(axis) for axis in ("y", "x"))
        new_rows, new_columns = goal[columns], goal[rows]
        assert new_rows is not None and new_columns is not None
        if new_rows.length != new_columns.length:
            self._take("x", {columns: None})
            return
        for axis, dim, new in (("y", rows, new_columns), ("x", columns, new_rows)):
            self._take(axis, {dim: replace(new, axis=axis)})
        skewed = replace(new_columns, lead=-new_columns.held)
        self._take("x", {columns: replace(new_rows, axis="x", lead=-new_rows.held)})
        self._take("y", {rows: skewed, columns: new_rows})
        self._take("x", {rows: new_columns})

    def _along(self, axis: Axis) -> int:
        return next(dim for dim, one in enumerate(self.maps) if one is not None and one.axis == axis)

    def _take(self, axis: Axis | None, changes: dict[int, Map | None]) -> None:
        new = tuple(changes.get(dim, one) for dim, one in enumerate(self.maps))
        if new != self.maps:
            self.steps.append(Step(axis, self.maps, new, self.counts))
        self.maps = new

# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tiles that travel along lines of cores, one hop per round, both ways at once; cores keep what they need.

In round t a core sees what lay t places before it, and t places behind it. All positions are counted as cores stand;
those along a folded ring are two formulas, of even and of odd places.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np

from tilewright.plan.mesh.kernels import Fill, Store
from tilewright.plan.mesh.product import ALL
from tilewright.plan.mesh.terms import Condition, P, Term, TermLike, X, Y, at_least, equal, less, term
from tilewright.plan.mesh.writer import Axis, Writer, cores, slot
from tilewright.sim.coremesh.program import Order
from tilewright.sim.coremesh.ring import ring_positions

#: Pieces that hop side by side at most: a round costs a switch of tasks, however many they are.
TOGETHER = 64
#: Positions by order and axis: terms, or arrays of integers.
Positions = dict[Order, dict[str, Any]]


def other(axis: Axis) -> Axis:
    """The axis across."""
    return "y" if axis == "x" else "x"


@dataclass(frozen=True)
class Map:
    """Which pieces of a dimension lie where along an axis.

    Slot s of place p, on the line of number q, has piece ``p * held + s + first + q * lead``, modulo ``length * held``.

    Attributes:
        length: places of the axis.
    """

    axis: Axis
    order: Order
    length: int
    held: int
    first: int = 0
    lead: int = 0

    def piece(self, at: dict[str, Any], place: Any) -> Any:
        """The piece in a slot."""
        found = at[self.axis] * self.held + place
        if not self.first and not self.lead:
            return found
        return (found + self.first + self._led(at)) % (self.length * self.held)

    def holder(self, piece: Any, at: dict[str, Any]) -> tuple[Any, Any]:
        """Place on the axis, and slot there, that have a piece (or, behind the last, another one)."""
        found = (piece - self.first - self._led(at)) % (self.length * self.held)
        return found // self.held, found % self.held

    def _led(self, at: dict[str, Any]) -> Any:
        return at[other(self.axis)] * self.lead if self.lead else 0


@dataclass(frozen=True)
class Step:
    """From one placing to the next, along one axis.

    Slots of a core are numbered row by row through the pieces it has of each dimension.

    Attributes:
        axis: along which tiles travel; None: cores have what they need.
        have, want: per dimension; None: all cores of the line have all of it.
        counts: pieces of each dimension.
        root: the only place, as cores stand, that has the tensor before.
    """

    axis: Axis | None
    have: tuple[Map | None, ...]
    want: tuple[Map | None, ...]
    counts: tuple[int, ...]
    root: int | None = None

    @property
    def held(self) -> int:
        """Pieces of a core before."""
        return prod(self._sizes(self.have))

    @property
    def wanted(self) -> int:
        """Pieces of a core after."""
        return prod(self._sizes(self.want))

    def _sizes(self, maps: tuple[Map | None, ...]) -> list[int]:
        return [count if one is None else one.held for one, count in zip(maps, self.counts, strict=True)]

    def parts(self, number: Any) -> list[Any]:
        """The slot per dimension that a slot after the step is."""
        sizes = self._sizes(self.want)
        return [number // prod(sizes[dim + 1 :]) % size for dim, size in enumerate(sizes)]

    def pieces(self, at: Positions, number: Any) -> list[Any]:
        """The piece per dimension in a slot after the step."""
        parts = zip(self.want, self.parts(number), strict=True)
        return [part if want is None else want.piece(at[want.order], part) for want, part in parts]

    def find(self, at: Positions, number: Any) -> tuple[Any, Any]:
        """Where what belongs into a slot is before: place along the axis (None: here), and slot."""
        origin, found = self.root, 0
        sizes, parts = self._sizes(self.have), self.parts(number)
        for dim, piece in enumerate(self.pieces(at, number)):
            have, local = self.have[dim], parts[dim]
            if have != self.want[dim]:
                if have is None:
                    local = piece % self.counts[dim]
                elif have.axis == self.axis:
                    origin, local = have.holder(piece, at[have.order])
            found = local * prod(sizes[dim + 1 :]) + found
        return origin, found

    @property
    def origin_order(self) -> Order:
        """How places that `find` returns are counted."""
        for have, want in zip(self.have, self.want, strict=True):
            if have is not None and have != want and have.axis == self.axis:
                return have.order
        return "linear"

    def reach(self, height: int, width: int) -> tuple[int, int]:
        """The farthest that a tile goes to higher places, and to lower ones; padding need not come."""
        at = _places(height, width)
        origin, _ = self.find(at, np.arange(self.wanted))
        if self.axis is None or origin is None:
            return 0, 0
        if self.origin_order == "ring":
            origin = np.argsort(ring_positions(width if self.axis == "x" else height))[origin]
        way = np.where(self.inside(at), at["linear"][self.axis] - origin, 0)
        return max(0, int(way.max())), max(0, int(-way.min()))

    def inside(self, at: Positions) -> np.ndarray:
        """Which slots after the step have a piece of the tensor, bool [height or 1, width or 1, wanted]."""
        mask = np.ones((1, 1, self.wanted), dtype=bool)
        for piece, count in zip(self.pieces(at, np.arange(self.wanted)), self.counts, strict=True):
            mask = mask & (piece < count)
        return mask

    def cases(self, height: int, width: int) -> list[tuple[tuple[Condition, ...], Positions]]:
        """Positions of cores as formulas of how they stand, each with the cores for which they hold."""
        ring = {
            axis
            for have, want in zip(self.have, self.want, strict=True)
            if have != want
            for one in (have, want)
            if one is not None and one.order == "ring"
            for axis in (one.axis, other(one.axis))
        }
        linear = {"y": Y, "x": X}
        lengths = {"y": height, "x": width}
        ways = [logical(linear[axis], lengths[axis]) if axis in ring else [((), linear[axis])] for axis in ("y", "x")]
        return [
            ((*of_y, *of_x), {"linear": linear, "ring": {"y": y, "x": x}}) for (of_y, y), (of_x, x) in product(*ways)
        ]


def _places(height: int, width: int) -> Positions:
    """Positions of all cores, arrays [height, 1, 1] and [1, width, 1]."""
    rows, columns = (np.arange(height), ring_positions(height)), (np.arange(width), ring_positions(width))
    linear, ring = ({"y": y[:, None, None], "x": x[None, :, None]} for y, x in zip(rows, columns, strict=True))
    return {"linear": linear, "ring": ring}


def travel(writer: Writer, step: Step, start: str, shape: tuple[int, ...], dtype: Any) -> str:
    """Write a step. Returns the buffer, of `Step.wanted` slots, that holds the tensor then.

    Args:
        start: a buffer of `Step.held` slots.
        shape, dtype: of a piece.
    """
    end = writer.buffer("y", shape, dtype, step.wanted)
    if not step.inside(_places(writer.height, writer.width)).all():
        with writer.turns(step.wanted) as at:
            writer.compute(ALL, Fill(shape, np.dtype(dtype)), (), (slot(end, at),))
    _keep(writer, step, (start, term(0)), end, term(0))
    if step.axis is None:
        return end
    ahead, back = step.reach(writer.height, writer.width)
    ways = [_Way(writer, step.axis, sign, reach, step.held) for sign, reach in ((1, ahead), (-1, back)) if reach]
    buffers = [writer.buffer(f"{way.name}_tiles", shape, dtype, 2 * step.held) for way in ways]
    with writer.turns(step.held) as at:
        for buffer in buffers:
            writer.compute(ALL, Store(), (slot(start, at),), (slot(buffer, at),))
    with writer.loop(max(ahead, back)) as turn:
        for count, first, together in _batches(step.held):
            with writer.turns(count) as batch:
                pieces = [batch * together + first + one for one in range(together)]
                hops = product(pieces, zip(ways, buffers, strict=True))
                writer.wait([token for at, (way, one) in hops for token in way.hop(one, turn, at)], "round")
        for way, one in zip(ways, buffers, strict=True):
            _keep(writer, step, (one, (turn + 1) % 2 * step.held), end, (turn + 1) * way.sign)
    return end


@dataclass(frozen=True)
class _Way:
    """Tiles on their way to higher places (sign 1) or to lower ones (-1)."""

    writer: Writer
    axis: Axis
    sign: int
    reach: int
    held: int

    @property
    def name(self) -> str:
        """Of the route."""
        return f"{self.axis}_{'up' if self.sign > 0 else 'down'}"

    def hop(self, buffer: str, turn: Term, at: TermLike) -> list[str]:
        """One tile one hop on, in a round. Returns tokens."""
        last = self.writer.length(self.axis) - 1
        place = Y if self.axis == "y" else X
        ahead = place if self.sign > 0 else last - place  # hops from the end that tiles come from
        route = self.writer.route(self.name, self.axis, P - self.sign)
        going = less(turn, self.reach)
        sends = cores(at_least(ahead, turn), less(ahead, last), going)
        takes = cores(less(turn, ahead), going)
        return [
            self.writer.send(sends, route, slot(buffer, turn % 2 * self.held + at)),
            self.writer.recv(takes, route, slot(buffer, (turn + 1) % 2 * self.held + at)),
        ]


def _keep(writer: Writer, step: Step, source: tuple[str, Term], end: str, distance: Term) -> None:
    """Copy what is wanted of what has come from so many places before."""
    buffer, first = source
    place = Y if step.axis == "y" else X
    length = writer.height if step.axis == "y" else writer.width
    with writer.turns(step.wanted) as number:
        for conditions, at in step.cases(writer.height, writer.width):
            origin, found = step.find(at, number)
            if origin is None:
                writer.compute(cores(*conditions), Store(), (slot(buffer, first + found),), (slot(end, number),))
                continue
            ways = physical(term(origin), length) if step.origin_order == "ring" else [((), origin)]
            for more, where in ways:
                who = cores(*conditions, *more, equal(place - distance, where))
                writer.compute(who, Store(), (slot(buffer, first + found),), (slot(end, number),))


def _batches(pieces: int) -> list[tuple[int, int, int]]:
    """Pieces that hop side by side, waited for once: how many batches, the first piece, and pieces in each."""
    whole, rest = divmod(pieces, TOGETHER)
    batches = [(whole, 0, TOGETHER), (1, whole * TOGETHER, rest)]
    return [batch for batch in batches if batch[0] and batch[2]]


def logical(place: Term, length: int) -> list[tuple[tuple[Condition, ...], Term]]:
    """Places along the folded ring: of even places on the line, and of odd ones."""
    even, odd = ((equal(place % 2, 0),), place // 2), ((equal(place % 2, 1),), length - (place + 1) // 2)
    return [even, odd] if length > 1 else [((), place)]


def physical(place: Term, length: int) -> list[tuple[tuple[Condition, ...], Term]]:
    """Places on the line: of the first half of the folded ring, and of the second."""
    first, second = ((less(place * 2, length),), place * 2), ((at_least(place * 2, length),), 2 * (length - place) - 1)
    return [first, second] if length > 1 else [((), place)]

# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Blocks with what lies beside them: the exchange of borders before windows are read (a halo, or ghost cells).

What a core needs of others comes place by place along the axis, in both ways at once; only what somebody behind still
needs goes on. With one step per block, and borders no longer than a block, that is one message each way.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import Any

import numpy as np

from tilewright.plan.mesh.kernels import Fill, Store
from tilewright.plan.mesh.terms import Condition, P, Term, TermLike, X, Y, at_least, equal, less, term
from tilewright.plan.mesh.writer import Axis, Writer, cores, slot
from tilewright.sim.coremesh.program import Order, Program

#: Pieces that hop side by side, waited for once.
TOGETHER = 64


@dataclass(frozen=True)
class Halo:
    """A tensor whose blocks are widened along one dimension.

    Attributes:
        shape: of the tensor.
        tile: of a core before, padding included.
        height, width: cores of the grid.
        dim: dimension that is widened; ``axis`` splits it.
        axes: of each other dimension; None where it is whole.
        first, step, size: position p gets the ``size`` elements from ``p * step + first`` on.
        fill: what lies outside of the tensor.
        order: how positions are counted.
    """

    shape: tuple[int, ...]
    tile: tuple[int, ...]
    height: int
    width: int
    dim: int
    axis: Axis
    axes: tuple[Axis | None, ...]
    first: int
    step: int
    size: int
    fill: float = 0
    order: Order = "linear"
    dtype: Any = np.float32

    @property
    def length(self) -> int:
        """Positions along the axis."""
        return self.width if self.axis == "x" else self.height

    @property
    def unit(self) -> int:
        """Elements of a piece, of which all blocks and parts, and the tensor, are whole numbers."""
        return gcd(self.tile[self.dim], self.step, self.first, self.size, self.shape[self.dim])

    @property
    def result(self) -> tuple[int, ...]:
        """The shape of the tensor of all parts."""
        return tuple(self.length * self.size if at == self.dim else size for at, size in enumerate(self.shape))


@dataclass(frozen=True)
class _Pieces:
    """The same in pieces, and which of a core's own go how far.

    Attributes:
        held, wanted: slots of a core before and after.
        step, first: of positions, in pieces.
        count: that the tensor has.
        length: positions of the axis.
    """

    held: int
    wanted: int
    step: int
    first: int
    count: int
    length: int

    @staticmethod
    def of(what: Halo) -> _Pieces:
        unit = what.unit
        held, wanted = what.tile[what.dim] // unit, what.size // unit
        return _Pieces(held, wanted, what.step // unit, what.first // unit, what.shape[what.dim] // unit, what.length)

    def needed(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Per wanted slot of a core: places that its piece comes from higher up, slot there, whether there is one."""
        places = np.arange(self.length)[:, None]
        piece = places * self.step + self.first + np.arange(self.wanted)
        return places - piece // self.held, piece % self.held, (piece >= 0) & (piece < self.count)

    def going(self, sign: int) -> tuple[int, int, int]:
        """How far pieces go to higher places (sign 1) or lower ones (-1); the first slot that goes, and how many."""
        way, at, there = self.needed()
        moved = there & (way * sign > 0)
        if not moved.any():
            return 0, 0, 0
        first = int(at[moved].min())
        return int((way * sign)[moved].max()), first, int(at[moved].max()) - first + 1


def halo(what: Halo) -> Program:
    """A program with input ``x``, of the tensor's shape, and output ``y``, of ``what.result``."""
    writer, pieces = Writer("halo", what.height, what.width), _Pieces.of(what)
    shape = tuple(what.unit if at == what.dim else size for at, size in enumerate(what.tile))
    start = writer.buffer("x", shape, what.dtype, pieces.held)
    end = writer.buffer("y", shape, what.dtype, pieces.wanted)
    place = Y if what.axis == "y" else X
    for at in range(pieces.held):
        writer.input("x", what.shape, slot(start, at), _block(what, place * pieces.held + at), what.order)
    exchange = _Exchange(writer, what, pieces, start, end)
    exchange.fill(shape)
    exchange.write(shape)
    for at in range(pieces.wanted):
        writer.output("y", what.result, slot(end, at), _block(what, place * pieces.wanted + at), what.order)
    return writer.program()


def _block(what: Halo, own: TermLike) -> list[TermLike]:
    """Indices of a piece: this one along the widened dimension, a core's block along others."""
    of: dict[Axis | None, TermLike] = {"y": Y, "x": X, None: 0}
    return [own if at == what.dim else of[axis] for at, axis in enumerate(what.axes)]


@dataclass(frozen=True)
class _Exchange:
    """What a core keeps of its own, and gets."""

    writer: Writer
    what: Halo
    pieces: _Pieces
    start: str
    end: str

    @property
    def place(self) -> Term:
        return Y if self.what.axis == "y" else X

    def fill(self, shape: tuple[int, ...]) -> None:
        """What lies outside of the tensor, before it and behind it."""
        own = self.pieces
        first, last = own.first, (own.length - 1) * own.step + own.first + own.wanted - 1
        kernel = Fill(shape, np.dtype(self.what.dtype), self.what.fill)
        for there, before in ((first < 0, True), (last >= own.count, False)):
            if not there:
                continue
            with self.writer.turns(own.wanted) as at:
                piece = self.place * own.step + own.first + at
                outside = less(piece, 0) if before else at_least(piece, own.count)
                self.writer.compute(cores(outside, order=self.what.order), kernel, (), (slot(self.end, at),))

    def write(self, shape: tuple[int, ...]) -> None:
        """What is in the tensor."""
        self._keep(self.start, term(0), 0, term(0))
        ways = [(sign, *self.pieces.going(sign)) for sign in (1, -1)]
        ways = [_Way(self, *way) for way in ways if way[1]]
        for way in ways:
            way.make_room(shape)
        if ways:
            self._round(ways, None)
        on = [way for way in ways if way.reach > 1]
        if on:
            with self.writer.loop(max(way.reach for way in on) - 1) as turn:
                self._round(on, turn)

    def _round(self, ways: list[_Way], turn: Term | None) -> None:
        """All pieces one place on; the first time (no turn) from where they lie."""
        most = max(way.count for way in ways)
        for first in range(0, most, TOGETHER):
            tokens = [
                token
                for way in ways
                for at in range(first, min(first + TOGETHER, way.count))
                for token in way.hop(turn, at)
            ]
            self.writer.wait(tokens, "round")
        for way in ways:
            base = term(0) if turn is None else (turn + 1) % 2 * way.count
            distance = term(way.sign) if turn is None else (turn + 2) * way.sign
            self._keep(way.buffer, base, way.first, distance)

    def _keep(self, buffer: str, base: Term, first: int, distance: Term) -> None:
        """Copy what is wanted of what comes from so many places before."""
        own = self.pieces
        with self.writer.turns(own.wanted) as at:
            piece = self.place * own.step + own.first + at
            conditions = [equal(piece // own.held, self.place - distance)]
            if own.first < 0:
                conditions.append(at_least(piece, 0))
            who = cores(*conditions, less(piece, own.count), order=self.what.order)
            here = slot(buffer, base + piece % own.held - first)
            self.writer.compute(who, Store(), (here,), (slot(self.end, at),))


class _Way:
    """Pieces on their way to higher places (sign 1) or to lower ones.

    Attributes:
        reach: places that the farthest piece goes.
        first, count: slots of a core's own that go.
    """

    def __init__(self, around: _Exchange, sign: int, reach: int, first: int, count: int) -> None:
        self.around, self.sign, self.reach, self.first, self.count = around, sign, reach, first, count
        self.buffer = ""

    def make_room(self, shape: tuple[int, ...]) -> None:
        """Memory for what passes: of two rounds where it goes on."""
        name, slots = f"from_{'lower' if self.sign > 0 else 'higher'}", self.count * min(self.reach, 2)
        self.buffer = self.around.writer.buffer(name, shape, self.around.what.dtype, slots)

    def hop(self, turn: Term | None, at: int) -> list[str]:
        """One piece one place on, where somebody there or behind needs it. Returns tokens."""
        around, writer, order = self.around, self.around.writer, self.around.what.order
        name = f"{around.what.axis}_{'up' if self.sign > 0 else 'down'}"
        route = writer.route(name, around.what.axis, P - self.sign, order)
        source, target = slot(around.start, self.first + at), slot(self.buffer, at)
        if turn is not None:
            source = slot(self.buffer, turn % 2 * self.count + at)
            target = slot(self.buffer, (turn + 1) % 2 * self.count + at)
        passed = term(0) if turn is None else turn + 1
        sends = cores(*self._wanted(around.place + self.sign, passed, at), order=order)
        takes = cores(*self._wanted(around.place, passed, at), order=order)
        return [writer.send(sends, route, source), writer.recv(takes, route, target)]

    def _wanted(self, place: Term, passed: Term, at: int) -> list[Condition]:
        """Whether a place, or one behind it, needs the piece that gets there after so many others."""
        own = self.around.pieces
        home = place - (passed + 1) * self.sign
        piece = home * own.held + (self.first + at)
        end = min(own.count, (own.length - 1) * own.step + own.first + own.wanted)
        found = [at_least(piece, max(own.first, 0)), less(piece, end)]
        if self.sign > 0:
            found += [at_least(home, 0), less(place, own.length), at_least(piece, place * own.step + own.first)]
        else:
            found += [less(home, own.length), at_least(place, 0)]
            found += [less(piece, place * own.step + (own.first + own.wanted))]
        if own.wanted < own.step:  # pieces between parts go nowhere
            found.append(less((piece - own.first) % own.step, own.wanted))
        return found

# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One dimension of a tensor, from blocks on a line of cores to blocks of another size on a line of another length.

Blocks travel whole, one hop per round, both ways at once, and no farther than somebody needs them. In round t a core
sees what began t + 1 places before it, and behind it: which block that is, and who needs it, are formulas of the core's
place and the round. The blocks that a core's new one is a part of are kept side by side, and cut once all are there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from tilewright.plan.mesh.kernels import Cut, Fill, Store
from tilewright.plan.mesh.product import ALL
from tilewright.plan.mesh.terms import Condition, P, Term, TermLike, X, Y, at_least, equal, less, term
from tilewright.plan.mesh.travel import logical, physical
from tilewright.plan.mesh.writer import Axis, Writer, cores, slot
from tilewright.sim.coremesh.program import Order, Program, Slot
from tilewright.sim.coremesh.ring import ring_positions

#: Cores for which all of these hold.
Where = tuple[Condition, ...]


@dataclass(frozen=True)
class Line:
    """How a dimension lies along an axis before and after.

    On line q, place p has block ``signs[0] * p + signs[1] * q`` before, counted in a circle where lines differ; after,
    as cores stand, block p.

    Attributes:
        dim: the dimension; ``size``: its elements.
        places: cores on the line that have a block, before and after.
        blocks: elements of a block, before and after.
        across: lines that have blocks.
        orders: how places and lines are counted before.
        only: the number of the one line that there is; None: all lines of a grid.
    """

    axis: Axis
    dim: int
    size: int
    places: tuple[int, int]
    blocks: tuple[int, int]
    across: int
    orders: tuple[Order, Order] = ("linear", "linear")
    signs: tuple[int, int] = (1, 0)
    only: int | None = None

    def alone(self, number: int) -> Line:
        """One of the lines, on a mesh of one row."""
        return replace(self, axis="x", across=1, only=number)

    @property
    def moves(self) -> bool:
        """Whether anything changes; cores that had no block get one, if only of padding."""
        (old, new), (before, after) = self.blocks, self.places
        return old != new or after > before or any(self.reach.values())

    @property
    def place(self) -> Term:
        """Of a core."""
        return Y if self.axis == "y" else X

    @property
    def line(self) -> Term:
        """Of a core: its number."""
        return X if self.axis == "y" else Y

    @property
    def filled(self) -> int:
        """Blocks before that have some of the dimension."""
        return -(-self.size // self.blocks[0])

    @property
    def padded(self) -> bool:
        """Whether a block after is padding, or has some where no block before is."""
        (old, new), last = self.blocks, self.places[1]
        return (last * new - 1) // old >= self.filled or (last - 1) * new >= self.size

    @property
    def kept(self) -> int:
        """Blocks before, at most, that a block after is a part of."""
        old, new = self.blocks
        return int((np.arange(self.places[1]) * new % old).max() + new - 1) // old + 1

    @cached_property
    def reach(self) -> dict[int, int]:
        """Hops of the block that goes farthest, to higher places (1) and to lower ones (-1)."""
        old, new = self.blocks
        length = self.places[0]
        position = ring_positions(length) if self.orders[0] == "ring" else np.arange(length)
        lines = np.arange(min(self.across, length)) if self.only is None else np.array([self.only])
        block = self.signs[0] * position + self.signs[1] * lines[:, None]
        block = block % length if self.signs[1] else block
        first, last = block * old // new, (np.minimum((block + 1) * old, self.size) - 1) // new
        there, place = block < self.filled, np.arange(length)
        return {
            1: max(0, int(np.where(there, last - place, 0).max())),
            -1: max(0, int(np.where(there, place - first, 0).max())),
        }

    def begun(self, origin: Term, length: int, width: int) -> Iterator[tuple[Where, Term]]:
        """The block that began at a place, by cases.

        Args:
            length, width: cores of the mesh along the axis, and across.
        """
        places, lines = _counted(origin, length, self.orders[0]), [((), term(self.only or 0))]
        if self.only is None and self.signs[1]:
            lines = _counted(self.line, width, self.orders[1])
        for (of_place, place), (of_line, line) in product(places, lines):
            block = place * self.signs[0] + line * self.signs[1]
            yield (*of_place, *of_line), block % self.places[0] if self.signs[1] else block

    def wanted_by(self, block: Term, place: Term) -> Where:
        """Whether a core's new block has a part of this one: of what there is, as padding does not travel."""
        (old, new), last = self.blocks, self.places[1]
        return (
            less(block * old, (place + 1) * new),
            at_least((block + 1) * old - 1, place * new),
            *((less(place * new, self.size),) if (last - 1) * new >= self.size else ()),
            less(block, self.filled),
            less(place, last),
        )

    def wanted_behind(self, block: Term, place: Term, sign: int) -> Where:
        """Whether cores at higher places than this one (sign 1), or at lower ones, have a part of a block."""
        old, new = self.blocks
        if sign < 0:
            return (less(block * old, place * new), less(block, self.filled))
        return (
            at_least((block + 1) * old - 1, (place + 1) * new),
            less((place + 1) * new, self.size),
            less(block, self.filled),
        )


def move(writer: Writer, line: Line, start: str) -> str:
    """Write how a dimension moves. Returns the buffer that has the new blocks.

    Args:
        start: a buffer with the old ones.
    """
    return move_together(writer, [(line, start)])[0]


def move_together(writer: Writer, parts: Sequence[tuple[Line, str]]) -> list[str]:
    """Write how dimensions of several tensors move side by side: a round costs one switch of tasks for all of them.

    Args:
        parts: lines, with buffers of the old blocks.

    Returns:
        The buffers of the new ones.
    """
    moves = [_Move(writer, line, start) if line.moves else None for line, start in parts]
    going = [one for one in moves if one]
    for one in going:
        one.begin()
    with writer.loop(max((hops for one in going for hops in one.line.reach.values()), default=0)) as turn:
        tokens = [token for one in going for token in one.hop(turn)]
        if tokens:
            writer.wait(tokens, "round")
        for one in going:
            one.arrive(turn)
    return [one.kept.cut() if one else start for one, (_, start) in zip(moves, parts, strict=True)]


def line_program(parts: Sequence[tuple[Line, tuple[int, ...]]], dtype: Any) -> Program:
    """Lines that move side by side, by themselves on a mesh of one row, for their time: without inputs and outputs.

    Args:
        parts: lines of one number (`Line.alone`), with the tile of a core before.
    """
    writer = Writer("line", 1, max(place for line, _ in parts for place in line.places))
    move_together(writer, [(line, writer.buffer("start", tile, dtype)) for line, tile in parts])
    return writer.program()


class Kept:
    """The old blocks that a core's new one is a part of, beside each other in one buffer."""

    def __init__(self, writer: Writer, line: Line, shape: tuple[int, ...], dtype: np.dtype) -> None:
        self.writer, self.line, self.shape, self.dtype = writer, line, shape, dtype
        self.length = writer.length(line.axis)
        self.width = writer.length("x" if line.axis == "y" else "y")
        self.lines: Where = () if line.across == self.width else (less(line.line, line.across),)
        self.buffer = writer.buffer("kept", shape, dtype, line.kept)

    def begin(self) -> None:
        """Padding is zeros, as nothing else comes there."""
        if self.line.padded:
            with self.writer.turns(self.line.kept) as at:
                self.writer.compute(ALL, Fill(self.shape, self.dtype), (), (slot(self.buffer, at),))

    def keep(self, source: Slot, block: Term, where: Where) -> None:
        """Keep the block that is here if it is wanted, on cores for which all of this holds."""
        self.keep_at(self.line.place, source, block, (*self.lines, *where))

    def keep_at(self, place: Term, source: Slot, block: Term, where: Where, order: Order = "linear") -> None:
        """The same of cores that stand at a place; all is in coordinates of ``order``."""
        line = self.line
        first = place * line.blocks[1] // line.blocks[0]
        who = cores(*where, *line.wanted_by(block, place), order=order)
        self.writer.compute(who, Store(), (source,), (slot(self.buffer, block - first),))

    def up_to(self, places: int) -> Where:
        """The first places of lines that have blocks."""
        return (*self.lines, *((less(self.line.place, places),) if places < self.length else ()))

    def cut(self) -> str:
        """New blocks out of those that were kept: one way for each place at which they can begin. Returns a buffer."""
        line, writer = self.line, self.writer
        old, new = line.blocks
        begins = np.unique(np.arange(line.places[1]) * new % old).tolist()
        if old == new:
            return self.buffer
        shape = tuple(new if dim == line.dim else size for dim, size in enumerate(self.shape))
        end = writer.buffer("end", shape, self.dtype)
        for begin in begins:
            parts = [slot(self.buffer, at) for at in range((begin + new - 1) // old + 1)]
            where = (*self.up_to(line.places[1]), *((equal(line.place * new % old, begin),) if old > 1 else ()))
            writer.compute(cores(*where), Cut(line.dim, begin, new), parts, (slot(end),))
        return end


class PassingBy:
    """Blocks that go round the rings of a mesh along y anyway, as operands of products do: kept as they pass.

    Once a core has seen all of them it has its new block, and nothing had to be sent for that.
    """

    def __init__(self, writer: Writer, line: Line, shape: tuple[int, ...], dtype: np.dtype) -> None:
        """``line`` is of axis y and all columns; its ``signs`` are those before the first round."""
        self._kept, self._line = Kept(writer, line, shape, dtype), line
        self._kept.begin()

    def keep(self, source: Slot, turn: TermLike) -> None:
        """In a round, what is in a slot; each round has brought blocks one place on."""
        line, length = self._line, self._line.places[0]
        block = (Y * line.signs[0] + X * line.signs[1] - turn) % length
        for where, place in physical(Y, length):
            self._kept.keep_at(place, source, block, where, "ring")

    def cut(self) -> str:
        """The buffer of the new blocks, after all rounds."""
        return self._kept.cut()


class _Move:
    """A move on the lines of a mesh.

    Attributes:
        kept: the old blocks that a new one is a part of.
    """

    def __init__(self, writer: Writer, line: Line, start: str) -> None:
        self.writer, self.line, self.start = writer, line, start
        self.shape, self.dtype = writer.tile(start)
        self.kept = Kept(writer, line, self.shape, self.dtype)
        self.length = self.kept.length
        self._ways: list[_Way] = []

    def begin(self) -> None:
        """What each core has: it keeps that, and puts it on its ways."""
        self.kept.begin()
        self._keep(slot(self.start), self.line.place, ())
        self._ways = [_Way(self, sign) for sign, reach in self.line.reach.items() if reach]
        for way in self._ways:
            have = self.kept.up_to(self.line.places[0])
            self.writer.compute(cores(*have), Store(), (slot(self.start),), (slot(way.buffer),))

    def hop(self, turn: Term) -> list[str]:
        """Blocks one hop on. Returns tokens."""
        return [token for way in self._ways for token in way.hop(turn)]

    def arrive(self, turn: Term) -> None:
        """Keep what has come in a round."""
        for way in self._ways:
            self._keep(*way.come(turn))

    def cases(self, origin: Term) -> Iterator[tuple[Where, Term]]:
        """Cores of lines that have blocks, and the block that began at a place, by cases."""
        for where, block in self.line.begun(origin, self.length, self.kept.width):
            yield (*self.kept.lines, *where), block

    def _keep(self, source: Slot, origin: Term, where: Where) -> None:
        """Keep the block that is here, and began at a place, if it is wanted."""
        for more, block in self.line.begun(origin, self.length, self.kept.width):
            self.kept.keep(source, block, (*where, *more))


class _Way:
    """Blocks on their way to higher places (sign 1) or to lower ones (-1), in two slots by turns."""

    def __init__(self, around: _Move, sign: int) -> None:
        self.around, self.sign = around, sign
        name = f"{around.line.axis}_{'up' if sign > 0 else 'down'}"
        self.route = around.writer.route(name, around.line.axis, P - sign)
        self.buffer = around.writer.buffer(f"{name}_tiles", around.shape, around.dtype, 2)

    def hop(self, turn: Term) -> list[str]:
        """Blocks one hop on, where somebody there or behind wants them. Returns tokens."""
        around, writer = self.around, self.around.writer
        here, there = around.line.place, around.line.place - self.sign
        sends = [
            writer.send(cores(*where), self.route, slot(self.buffer, turn % 2))
            for where in self._who(here, here - turn * self.sign)
        ]
        takes = [
            writer.recv(cores(*where), self.route, slot(self.buffer, (turn + 1) % 2))
            for where in self._who(there, there - turn * self.sign)
        ]
        return [*sends, *takes]

    def come(self, turn: Term) -> tuple[Slot, Term, Where]:
        """What has come in a round: where it is, where it began, and the cores to which anything came."""
        origin = self.around.line.place - (turn + 1) * self.sign
        return slot(self.buffer, (turn + 1) % 2), origin, self._on_line(origin)

    def _who(self, place: Term, origin: Term) -> Iterator[Where]:
        """Cores for which a place hands on what began at another."""
        around = self.around
        for where, block in around.cases(origin):
            yield (*self._on_line(origin), *where, *around.line.wanted_behind(block, place, self.sign))

    def _on_line(self, origin: Term) -> Where:
        """Whether there was a block at a place."""
        around = self.around
        if self.sign < 0:
            return (less(origin, around.line.places[0]),)
        beyond = around.length > around.line.places[0]
        return (at_least(origin, 0), *((less(origin, around.line.places[0]),) if beyond else ()))


def _counted(place: Term, length: int, order: Order) -> list[tuple[Where, Term]]:
    return logical(place, length) if order == "ring" else [((), place)]

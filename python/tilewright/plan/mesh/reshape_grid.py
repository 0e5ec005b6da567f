# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From the blocks of one grid of cores to those of another: prefill and decode want different grids.

A matrix in blocks of ``from_grid`` moves through the mesh, along rows first, then along columns (WaferLLM, OSDI 2025,
section 4.4), instead of being loaded again. Blocks of both grids are cut into pieces of their greatest common divisor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import gcd
from typing import Any

import numpy as np

from tilewright.core.errors import UserError
from tilewright.plan.mesh.kernels import Store
from tilewright.plan.mesh.terms import Condition, P, Term, TermLike, X, Y, differ, equal, less, term
from tilewright.plan.mesh.writer import Axis, Writer, cores, slot
from tilewright.sim.coremesh.program import Program, Slot


@dataclass(frozen=True)
class Reshape:
    """A matrix [m, n], in ceil(m / rows) x ceil(n / columns) blocks of either grid, both at the mesh's first core."""

    m: int
    n: int
    from_grid: tuple[int, int]
    to_grid: tuple[int, int]
    dtype: Any = np.float32

    def __post_init__(self) -> None:
        if min(self.m, self.n, *self.from_grid, *self.to_grid) < 1:
            raise UserError(
                f"A matrix of {self.m} x {self.n} cannot move from {self.from_grid} to {self.to_grid} cores: all sizes "
                "must be 1 or more."
            )


def reshape_grid(what: Reshape) -> Program:
    """A program on a mesh that holds both grids; input and output ``x`` [m, n]."""
    height, width = (max(pair) for pair in zip(what.from_grid, what.to_grid, strict=True))
    writer = Writer("reshape_grid", height, width)
    rows = _Cut.of("y", what.m, what.from_grid[0], what.to_grid[0])
    columns = _Cut.of("x", what.n, what.from_grid[1], what.to_grid[1])
    piece, dtype = (rows.piece, columns.piece), np.dtype(what.dtype)
    start, middle, end = (
        _Tiles(writer.buffer(name, piece, dtype, held[0] * held[1]), held[1])
        for name, held in (
            ("start", (rows.before, columns.before)),
            ("middle", (rows.before, columns.after)),
            ("end", (rows.after, columns.after)),
        )
    )
    for put, tiles, held in (
        (writer.input, start, (rows.before, columns.before)),
        (writer.output, end, (rows.after, columns.after)),
    ):
        for row in range(held[0]):
            for column in range(held[1]):
                block = (Y * held[0] + row, X * held[1] + column)
                put("x", (what.m, what.n), tiles.at(row, column), block, "linear")
    with writer.loop(rows.before) as row:
        inside = less(Y * rows.before + row, rows.pieces)
        _move(writer, columns, lambda at: start.at(row, at), lambda at: middle.at(row, at), inside)
    with writer.loop(columns.after) as column:
        inside = less(X * columns.after + column, columns.pieces)
        _move(writer, rows, lambda at: middle.at(at, column), lambda at: end.at(at, column), inside)
    return writer.program()


@dataclass(frozen=True)
class _Cut:
    """One dimension in blocks of two kinds.

    Attributes:
        length: cores of the axis, of the larger grid.
        piece: numbers in a piece; ``pieces``: all, of the dimension; ``before`` and ``after``: in a block of each kind.
    """

    axis: Axis
    length: int
    piece: int
    pieces: int
    before: int
    after: int

    @staticmethod
    def of(axis: Axis, size: int, from_cores: int, to_cores: int) -> _Cut:
        old, new = -(-size // from_cores), -(-size // to_cores)
        piece = gcd(old, new)
        return _Cut(axis, max(from_cores, to_cores), piece, -(-size // piece), old // piece, new // piece)


@dataclass(frozen=True)
class _Tiles:
    """A core's pieces, row by row, ``columns`` in each."""

    buffer: str
    columns: int

    def at(self, row: TermLike, column: TermLike) -> Slot:
        return slot(self.buffer, term(row) * self.columns + column)


def _move(
    writer: Writer, cut: _Cut, old: Callable[[Term], Slot], new: Callable[[Term], Slot], inside: Condition
) -> None:
    """Move pieces along an axis: piece t goes from slot t mod before of core t / before to t mod after of t / after.

    The outer loop goes through the slots k that pieces arrive in, the inner one through the pieces of one core that
    arrive in such slots, in different cores.
    """
    place = X if cut.axis == "x" else Y
    with writer.loop(cut.after) as k:
        arriving = place * cut.after + k
        stays = (equal(arriving // cut.before, place), less(arriving, cut.pieces), inside)
        writer.compute(cores(*stays), Store(), (old(arriving % cut.before),), (new(k),))
        if cut.length == 1:
            return
        with writer.loop(-(-cut.before // cut.after)) as turn:
            route = _route(writer, cut, k, turn)
            leaving = (k - place * cut.before) % cut.after + turn * cut.after
            piece = place * cut.before + leaving
            goes = (less(leaving, cut.before), less(piece, cut.pieces), differ(piece // cut.after, place, cut.length))
            comes = (
                less(arriving, cut.pieces),
                equal(arriving % cut.before // cut.after, turn),
                differ(arriving // cut.before, place, cut.length),
            )
            tokens = [
                writer.send(cores(*goes, inside), route, old(leaving)),
                writer.recv(cores(*comes, inside), route, new(k)),
            ]
            writer.wait(tokens, "round")


def _route(writer: Writer, cut: _Cut, k: Term, turn: Term) -> str:
    """From where a piece comes in this turn; from outside the mesh where none does."""
    piece = P * cut.after + k
    other_turn = piece % cut.before // cut.after - turn
    none_left = piece // cut.pieces
    return writer.route(
        f"{cut.axis}_move", cut.axis, piece // cut.before + (other_turn + none_left * cut.before) * cut.length
    )

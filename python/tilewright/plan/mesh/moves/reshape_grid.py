# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From the blocks of one grid of cores to those of another: prefill and decode want different grids.

A matrix in blocks of ``from_grid`` moves through the mesh, along one axis first, then along the other (WaferLLM, OSDI
2025, section 4.4), instead of being loaded again. Whole blocks travel hop by hop, both ways at once, as far as some
core still needs them (`line_move`); each core keeps those that its new block is a part of, and cuts it out at the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.core.errors import UserError
from tilewright.plan.mesh.moves.line_move import Line, move
from tilewright.plan.mesh.terms import X, Y, term
from tilewright.plan.mesh.writer import Axis, Writer, slot
from tilewright.sim.coremesh.program import Order, Program


@dataclass(frozen=True)
class Reshape:
    """A matrix [m, n], in ceil(m / rows) x ceil(n / columns) blocks of either grid, both at the mesh's first core.

    Attributes:
        order: how positions of the first grid are counted: those along a folded ring are of grids no smaller than the
            other one. Blocks of the second lie as cores stand.
        blocks: sizes in both grids, where they are larger than ceil(m / rows) x ceil(n / columns): the rest is padding.
        skewed: column q of the first grid has blocks q places further on, as aligned operands of MeshGEMM lie.
        copies: so many matrices that lie alike move together, as one tensor [copies, m, n] (None: [m, n]): a round
            costs a switch of tasks, however much is sent in it.
        turned: rows of the matrix lie along x afterwards, and its columns along y; of skewed ones on a square grid.
    """

    m: int
    n: int
    from_grid: tuple[int, int]
    to_grid: tuple[int, int]
    dtype: Any = np.float32
    order: Order = "linear"
    skewed: bool = False
    blocks: tuple[tuple[int, int], tuple[int, int]] | None = None
    copies: int | None = None
    turned: bool = False

    def __post_init__(self) -> None:
        if min(self.m, self.n, *self.from_grid, *self.to_grid) < 1 or (self.copies is not None and self.copies < 1):
            raise UserError(
                f"A matrix of {self.m} x {self.n} cannot move from {self.from_grid} to {self.to_grid} cores: all sizes "
                "must be 1 or more."
            )
        for grid, block in zip(self._grids, self.blocks or (), strict=False):
            if grid[0] * block[0] < self.m or grid[1] * block[1] < self.n:
                raise UserError(
                    f"Blocks of {block[0]} x {block[1]} on {grid[0]} x {grid[1]} cores hold no matrix of {self.m} x "
                    f"{self.n}: make them larger."
                )
        within = all(new <= old for old, new in zip(self.from_grid, self.to_grid, strict=True))
        if (self.order == "ring" or self.skewed) and not within:
            raise UserError(
                f"Blocks along a folded ring, or skewed ones, of {self.from_grid} cores cannot move to {self.to_grid}: "
                "the second grid must lie within the first."
            )

        square = self.skewed and self.from_grid[0] == self.from_grid[1]
        if self.turned and not square:
            raise UserError(
                f"Axes are exchanged on the way where blocks are skewed on a square grid; this one is {self.from_grid}"
                f"{'' if self.skewed else ', not skewed'}. Use `relayout` after the move."
            )

    @property
    def tiles(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Sizes of blocks in both grids."""
        if self.blocks:
            return self.blocks
        first, second = ((-(-self.m // grid[0]), -(-self.n // grid[1])) for grid in self._grids)
        return first, second

    @property
    def _grids(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Cores along rows of the matrix and along its columns, in both grids."""
        height, width = self.to_grid
        return self.from_grid, (width, height) if self.turned else (height, width)

    @property
    def stacked(self) -> tuple[int, ...]:
        """Dimensions before those of a matrix."""
        return () if self.copies is None else (self.copies,)


def reshape_grid(what: Reshape) -> Program:
    """A program on a mesh that holds both grids; input and output ``x`` [m, n]."""
    height, width = (max(pair) for pair in zip(what.from_grid, what.to_grid, strict=True))
    writer = Writer("reshape_grid", height, width)
    stacked, shape = what.stacked, (*what.stacked, what.m, what.n)
    here = writer.buffer("start", (*stacked, *what.tiles[0]), what.dtype)
    row = (Y + X) % what.from_grid[0] if what.skewed else Y
    writer.input("x", shape, slot(here), [*(term(0) for _ in stacked), row, X], what.order)
    for line in lines_of(what):
        here = move(writer, line, here)
    last = (X, Y) if what.turned else (Y, X)
    writer.output("x", shape, slot(here), [*(term(0) for _ in stacked), *last], "linear")
    return writer.program()


def lines_of(what: Reshape) -> list[Line]:
    """The moves along lines, one after the other."""
    if what.turned:
        return _turns(what)
    # Rows that are skewed differ from column to column: they are brought in line before those move.
    axes: tuple[Axis, Axis] = ("y", "x") if what.skewed else ("x", "y")
    grids, order = (what.from_grid, what.to_grid), what.order
    found = []
    for number, axis in enumerate(axes):
        at, across = (0, 1) if axis == "y" else (1, 0)
        skewed = what.skewed and axis == "y"
        found.append(
            Line(
                axis,
                len(what.stacked) + at,
                (what.m, what.n)[at],
                (grids[0][at], grids[1][at]),
                (what.tiles[0][at], what.tiles[1][at]),
                grids[number][across],
                (order, order),
                (1, int(skewed)),
            )
        )
    return found


def _turns(what: Reshape) -> list[Line]:
    """The same to exchanged axes, of skewed operands.

    Column j of row i has block (i + j, j). Along x it comes to column i + j: there row i has the column i + j - i of
    blocks, and along y it comes to that row (as in Cannon's transposition, whose first step the skew has done). Blocks
    change their sizes last, as long as they are small.
    """
    side, order, first = what.from_grid[0], what.order, len(what.stacked)
    (rows, columns), (new_rows, new_columns) = what.tiles
    filled = -(-what.m // rows), -(-what.n // columns)
    both = (side, side)
    return [
        Line("x", first, what.m, both, (rows, rows), side, (order, order), (1, 1)),
        Line("y", first + 1, what.n, both, (columns, columns), filled[0], (order, "linear"), (-1, 1)),
        Line("x", first, what.m, (filled[0], what.to_grid[1]), (rows, new_rows), filled[1]),
        Line("y", first + 1, what.n, (filled[1], what.to_grid[0]), (columns, new_columns), what.to_grid[1]),
    ]

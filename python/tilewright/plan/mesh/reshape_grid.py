# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From the blocks of one grid of cores to those of another: prefill and decode want different grids.

A matrix in blocks of ``from_grid`` moves through the mesh, along rows first, then along columns (WaferLLM, OSDI 2025,
section 4.4), instead of being loaded again. Blocks of both grids are cut into pieces of their greatest common divisor,
which travel hop by hop (`travel`).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import Any

import numpy as np

from tilewright.core.errors import UserError
from tilewright.plan.mesh.relayout import Plan
from tilewright.plan.mesh.terms import X, Y
from tilewright.plan.mesh.travel import Map, Positions, Step, travel
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
    """

    m: int
    n: int
    from_grid: tuple[int, int]
    to_grid: tuple[int, int]
    dtype: Any = np.float32
    order: Order = "linear"
    skewed: bool = False
    blocks: tuple[tuple[int, int], tuple[int, int]] | None = None

    def __post_init__(self) -> None:
        if min(self.m, self.n, *self.from_grid, *self.to_grid) < 1:
            raise UserError(
                f"A matrix of {self.m} x {self.n} cannot move from {self.from_grid} to {self.to_grid} cores: all sizes "
                "must be 1 or more."
            )
        for grid, block in zip((self.from_grid, self.to_grid), self.blocks or (), strict=False):
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


def reshape_grid(what: Reshape) -> Program:
    """A program on a mesh that holds both grids; input and output ``x`` [m, n]."""
    height, width = (max(pair) for pair in zip(what.from_grid, what.to_grid, strict=True))
    writer = Writer("reshape_grid", height, width)
    cuts = _cut(what, 0), _cut(what, 1)
    shape, counts = tuple(one.piece for one in cuts), tuple(one.count for one in cuts)
    before, after = tuple(one.before for one in cuts), tuple(one.after for one in cuts)
    at: Positions = {"linear": {"y": Y, "x": X}, "ring": {"y": Y, "x": X}}
    here = writer.buffer("start", shape, what.dtype, before[0].held * before[1].held)
    for number in range(before[0].held * before[1].held):
        block = Step(None, before, before, counts).pieces(at, number)
        writer.input("x", (what.m, what.n), slot(here, number), block, what.order)
    plan = Plan(before, counts)
    # Rows that are skewed differ from column to column: they are brought in line before those move.
    plan.toward((after[0], before[1]) if what.skewed else (before[0], after[1]))
    plan.toward(after)
    for step in plan.steps:
        here = travel(writer, step, here, shape, what.dtype)
    for number in range(after[0].held * after[1].held):
        block = Step(None, after, after, counts).pieces(at, number)
        writer.output("x", (what.m, what.n), slot(here, number), block, "linear")
    return writer.program()


@dataclass(frozen=True)
class _Cut:
    """One dimension in pieces, of which blocks of either grid are a number.

    Attributes:
        piece: numbers in a piece; ``count``: pieces of the dimension.
    """

    piece: int
    count: int
    before: Map
    after: Map


def _cut(what: Reshape, dim: int) -> _Cut:
    axis: Axis = "y" if dim == 0 else "x"
    size, cores = (what.m, what.n)[dim], (what.from_grid[dim], what.to_grid[dim])
    old, new = (pair[dim] for pair in what.blocks) if what.blocks else (-(-size // count) for count in cores)
    piece = gcd(old, new)
    lead = old // piece if what.skewed and dim == 0 else 0
    before = Map(axis, what.order, cores[0], old // piece, lead=lead)
    return _Cut(piece, -(-size // piece), before, Map(axis, "linear", cores[1], new // piece))

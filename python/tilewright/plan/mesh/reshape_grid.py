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
from tilewright.sim.coremesh.program import Program


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
    cuts = _cut("y", what.m, what.from_grid[0], what.to_grid[0]), _cut("x", what.n, what.from_grid[1], what.to_grid[1])
    shape, counts = tuple(one.piece for one in cuts), tuple(one.count for one in cuts)
    before, after = tuple(one.before for one in cuts), tuple(one.after for one in cuts)
    at: Positions = {"linear": {"y": Y, "x": X}}
    here = writer.buffer("start", shape, what.dtype, before[0].held * before[1].held)
    for number in range(before[0].held * before[1].held):
        block = Step(None, before, before, counts).pieces(at, number)
        writer.input("x", (what.m, what.n), slot(here, number), block, "linear")
    plan = Plan(before, counts)
    plan.toward((before[0], after[1]))
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


def _cut(axis: Axis, size: int, from_cores: int, to_cores: int) -> _Cut:
    old, new = -(-size // from_cores), -(-size // to_cores)
    piece = gcd(old, new)
    maps = (Map(axis, "linear", cores, block // piece) for cores, block in ((from_cores, old), (to_cores, new)))
    return _Cut(piece, -(-size // piece), *maps)

# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tiles of loops whose extents are known at run time only.

The tiles are chosen for the extent that such a loop counts as (`structure.EXPECTED`); what is decided here makes them
serve every extent: tasks are as many as it takes, and what whole register tiles leave is done by smaller ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Protocol

from tilewright.ir.structure import LinalgOp


class Sizes(Protocol):
    """The sizes of a tiling that change here."""

    task: list[int]
    register: list[int]
    whole: frozenset[int]


def settle(op: LinalgOp, tiling: Sizes, rows: frozenset[int] | None) -> None:
    """Loops of run-time extents are cut into tasks, `rows` alone in a task of several nests, or taken as a whole."""
    tiling.whole = op.dynamic - (frozenset(op.parallel) if rows is None else rows)
    for d in op.dynamic if rows is None else ():  # whole register tiles, however many there are
        tiling.task[d] = ceil(tiling.task[d] / tiling.register[d]) * tiling.register[d]


def tails(op: LinalgOp, register: Sequence[int], lanes: int) -> str:
    """Tiles for what whole register tiles leave of loops of run-time extents.

    Few of them, since each is code of its own, and each pair where rows and lanes have tails. 4 rows of two vectors
    fill the pipes already, and fewer take as long: what is left of them is one tile (10 rows of code; [4, 2, 1] needs
    an eighth more time on average over all rests, further tiles a few percent less). Lanes go on with one vector, then
    with a quarter of it.
    """
    lane = op.output.dims[-1] if op.output.dims else None
    rows = [4, 2, 1] if lane in op.dynamic else [4, 3, 2, 1]
    lists = []
    for d, size in enumerate(register):
        chain = [lanes, lanes // 4, 1] if d == lane or d in op.reductions else rows
        kept = [tile for tile in chain if 0 < tile < size] if d in op.dynamic else []
        lists.append(f"array<i64{': ' if kept else ''}{', '.join(map(str, kept))}>")
    return f"[{', '.join(lists)}]"

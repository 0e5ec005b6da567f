# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tiles of products with packed weights whose rows, or columns, are several loops: sentences of words, gates.

They are one large product whose rows follow each other in memory, and take the blocks of one (Goto and van de Geijn,
see blocking.py). Weights of half of the L2 cache lie there while rows stream by, each read once for all of them. Under
larger weights, some rows lie there while panels stream by, where there are more of them than that cache holds. Other
products, and those whose reduction is so long that these rows would be few, are not for this: panels stay under all
rows (images.py). Loops of one iteration are none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from tilewright.ir.structure import Access, LinalgOp, Weights
from tilewright.plan.model.tiles import Machine, Tiling, cut

if TYPE_CHECKING:
    from tilewright.plan.cpu.products import Roles

#: Tasks of one core that even out disturbances.
_TASKS_PER_CORE = 8
#: Tasks of one core, at least, where there is work for them.
_LEAST_PER_CORE = 2
#: Rows of a list from which on its end, a tile that is not full, costs little.
_LEAST_ROWS = 24
#: Rows in all, at least: under fewer, such as a step's, weights that other steps drive out of L2 come from L3 once for
#: each tile of rows, which panels outside of the rows do not.
_MANY_ROWS = 256
#: Rows that lie in the L2 cache while panels stream by, at least: a panel comes from L3 once for each block of them.
_LEAST_NEAR = 64
#: Part of the L2 cache that they take, beside a panel, the next one and results.
_NEAR = 4
#: Bytes of an element: sizes are those of f32 products.
_ELEMENT = 4


@dataclass(frozen=True)
class RowLoops:
    """Loops of a product.

    Attributes:
        rows: those of the rows, outermost first.
        columns: those of the columns but the lanes.
        lane: the lanes.
        units: parallel ones of one iteration.
        near: rows that lie in the L2 cache under all weights; 0 where the weights lie there.
    """

    rows: tuple[int, ...]
    columns: tuple[int, ...]
    lane: int
    units: tuple[int, ...]
    near: int = 0


def row_loops(op: LinalgOp, roles: Roles, lanes: Access | None, weights: Weights, machine: Machine) -> RowLoops | None:
    """The loops of a product of matrices that has more of them than three; None for a plain one, and for others.

    Windows, batches of weights, and sizes that a run brings are others; so are short rows, as lines of images.

    Args:
        op: a contraction.
        roles: its loops of rows and of lanes.
        lanes: the operand that alone holds the lanes; None where there is none.
        weights: what comes from constants only.
        machine: whose L2 cache is asked for.
    """
    if roles.row is None or roles.lane_operand is None or lanes is None or not weights.only(lanes.value):
        return None
    row, lane, own, others = roles.row, roles.lane, lanes.loops, op.inputs[1 - roles.lane_operand].loops
    parallel = [d for d in op.parallel if op.extents[d] > 1]
    units = tuple(d for d in op.parallel if op.extents[d] == 1)
    rows = tuple(d for d in parallel if d not in own and d != row)
    columns = tuple(d for d in parallel if d in own and d != lane)
    if op.dynamic or op.unpacks or len(op.inputs) != 2 or len(op.reductions) != 1 or op.extents[row] < _LEAST_ROWS:
        return None
    if not all(a.pure for a in op.inputs) or others.intersection(columns) or min(op.extents) == 0:
        return None
    if prod(op.extents[d] for d in (*rows, row)) < _MANY_ROWS:
        return None
    near = _near_rows(op, prod(op.extents[d] for d in own), prod(op.extents[d] for d in (*rows, row)), machine)
    if near is None or not (rows or columns or units):
        return None
    return RowLoops((*rows, row), columns, lane, units, near)


def _near_rows(op: LinalgOp, weights: int, rows: int, machine: Machine) -> int | None:
    """Rows of which the L2 cache holds a block, 0 where it holds all weights; None where neither is of use.

    Args:
        op: the product.
        weights: elements of the weights.
        rows: how many there are.
        machine: half of whose L2 cache is for what lies there.
    """
    row = _ELEMENT * prod(op.extents[d] for d in op.reductions)
    if _ELEMENT * weights <= machine.l2_bytes // 2:
        return 0
    near = machine.l2_bytes // _NEAR // row
    return near if near >= _LEAST_NEAR and row * rows > machine.l2_bytes // 2 else None


def tile_row_loops(op: LinalgOp, loops: RowLoops, register: Sequence[int], machine: Machine) -> Tiling:
    """Tasks of some rows under all weights; either stay in the L2 cache."""
    task = list(op.extents)
    cores = machine.cores
    if loops.near:
        cut(task, list(register), loops.rows, loops.near * op.points // prod(op.extents[d] for d in loops.rows))
    cut(task, list(register), loops.rows, max(op.points // (_TASKS_PER_CORE * cores), machine.task_macs))
    others = [*loops.columns, loops.lane]  # where rows are too few for the cores
    cut(task, list(register), others, max(op.points // (_LEAST_PER_CORE * cores), machine.task_macs))
    inner = [*loops.columns, loops.lane, *loops.rows] if loops.near else [*loops.rows, *loops.columns, loops.lane]
    order = [*loops.units, *inner, *op.reductions]
    grid = [*loops.units, *loops.columns, loops.lane, *loops.rows]
    return Tiling(task, list(register), order, grid=grid)

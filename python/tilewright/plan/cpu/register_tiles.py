# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Register tiles of matrix products: rows of accumulators, each some vectors wide."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, prod

from tilewright.ir.structure import SMALL_WEIGHTS, Access, LinalgOp, index_terms
from tilewright.mlir import ir
from tilewright.plan.model.tiles import Machine
from tilewright.plan.model.traffic import element_bytes

#: Rows of a register tile, at most, where the choice of its width is open: taller ones gain nothing.
_TALL = 12
#: Part of the predicted time of two vectors side by side that three must stay below.
_GAIN = 0.99
#: Registers that weights of a step, which are widened, go through.
_PASSED = 8


def _tile_cost(rows: int, vectors: int, machine: Machine) -> float:
    """Half cycles per step of a reduction: a tile issues rows * vectors multiply-adds; with too few the pipes run dry.

    Loads take a share: vectors of the lane operand, and an element per row.
    """
    return max(rows * vectors, machine.chains) + machine.rate("operand_load") * (rows + vectors)


def _rows_cost(extent: int, rows: int, vectors: int, machine: Machine) -> float:
    """Half cycles per step of a reduction for all rows of one panel, shared evenly between tiles of `rows` at most."""
    count = ceil(extent / rows)
    least, taller = divmod(extent, count)
    whole = (count - taller) * _tile_cost(least, vectors, machine)
    return whole + (taller * _tile_cost(least + 1, vectors, machine) if taller else 0)


def row_tile(extent: int, limit: int, vectors: int, machine: Machine) -> int:
    """Rows of the register tile: the count in 1..limit with the fewest cycles per step of the reduction."""
    fitting = range(1, min(extent, limit) + 1)
    return min(fitting, key=lambda rows: (round(_rows_cost(extent, rows, vectors, machine), 3), -rows))


def row_limit(op: LinalgOp, vectors: int, machine: Machine) -> int:
    """Rows of a register tile, at most: registers are left for a row of the lane operand and an element."""
    spare = 3 if machine.registers >= 32 and all(a.pure for a in op.inputs) else 2  # with fewer LLVM spills one
    if op.unpacks:
        spare += vectors + 2  # scales, and what weights go through
    return (machine.registers - vectors - spare) // vectors


def resident_rows(op: LinalgOp, row: int, lane_operand: int | None, machine: Machine) -> int | None:
    """Rows of the other operand of which a line each stays in L1: large powers of two apart they share sets.

    A strided window passes over places, so its rows lie as many times as far apart. None where the distance is open.
    """
    return None if lane_operand is None else resident_lines(op.inputs[1 - lane_operand], row, machine)


def resident_lines(access: Access, loop: int, machine: Machine) -> int | None:
    """Iterations of a loop of which a line each of what they read stays in L1; None where all do, or nobody knows."""
    stride = element_bytes(access.value)
    shape = ir.RankedTensorType(access.value.type).shape
    for size, uses, index in reversed([*zip(shape, access.uses, access.map.results, strict=True)]):
        if loop in uses:
            terms = index_terms(index)
            return None if terms is None else machine.resident_lines(stride * abs(terms[loop]))
        if size < 0:
            return None
        stride *= size
    return None


def _parallel(op: LinalgOp) -> int:
    return sum(op.extents[d] > 1 for d in op.parallel)


def vectors_of(
    op: LinalgOp, row: int | None, lane: int, machine: Machine, resident: int | None = None, lists: bool = False
) -> int:
    """Vectors side by side in the register tile of a matrix product, of whose rows `resident` stay in the L1 cache.

    More than two where there are 32 registers: 6 x 4 accumulators take 10 loads for 24 multiply-adds, 12 x 2 take 14.
    Which of them leaves the least work over at the ends of rows and columns depends on the sizes; columns are shared
    evenly where the rows of one tile leave nothing else to share. A gain that cannot be measured is none.

    `lists`: the loops are those of one large product (`row_loops`), not of an image.
    """
    if row is None:
        return 4
    most = _TALL if resident is None else min(_TALL, resident)
    if machine.registers < 32 or op.welded:
        return 2
    if most == _TALL and not lists and (not all(a.pure for a in op.inputs) or _parallel(op) > 3):
        return 2
    if row in op.dynamic and op.is_step:
        return 4  # the rows of a recurrent step are a batch, often one: its sums keep the pipes busy in wide tiles
    if row in op.dynamic:
        return 2  # tall tiles: few rows are one of them and a rest, and read their panel twice
    columns, rows = ceil(op.extents[lane] / machine.lanes), op.extents[row]

    def height(vectors: int) -> int:
        return row_tile(rows, min(row_limit(op, vectors, machine), most), vectors, machine)

    def cost(vectors: int) -> float:
        whole, rest = divmod(columns, vectors)
        column = _rows_cost(rows, height(vectors), vectors, machine)
        total = whole * column + (_rows_cost(rows, height(vectors), rest, machine) if rest else 0)
        return max(total, ceil(whole / machine.cores) * machine.cores * column) if few else total

    few = height(2) == rows  # a column of tiles is then all that a task can be, and its panel is read once
    choices = [v for v in (2, 4, 3) if not few or height(v) == rows]
    best = min(choices, key=cost)
    return best if cost(best) < _GAIN * cost(2) else 2


def block_sums(op: LinalgOp, register: Sequence[int], machine: Machine) -> int:
    """Along how many of its innermost reduced loops a product that widens weights adds up before it scales.

    Twice as many accumulators then, and registers for what weights go through: for few rows, which share too little of
    what scaling each weight takes. 0: each weight is scaled.
    """
    inner = ir.IntegerAttr(ir.DictAttr(op.op.attributes[SMALL_WEIGHTS])["inner"]).value if op.unpacks else 0
    sums = ceil(prod(register) / machine.lanes)
    return inner if 2 * sums <= machine.registers - _PASSED else 0

# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Construction of tiles from the machine's alignment rules, level by level (Roller, section 3.3 and its algorithm 1).

First unit tiles: a core's register tile, a thread's tile; rules 1 and 3 leave a few dozen. From each of them a task is
scaled up along the axis with the best reuse score, by sizes that rules 2 and 4 align. `choose.py` ranks them all.

Roller scales small operators out afterwards: where tasks are fewer than cores it halves them. Here each step of the way
up is a candidate, and the model's time on all cores takes one of the first where cores would idle.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from tilewright.plan.cost.cost import tile_loops
from tilewright.plan.cost.expression import Expression, fused_axes
from tilewright.plan.cost.rtile import RTile
from tilewright.plan.cost.rules import (
    Machine,
    accumulators,
    bank_free,
    doubled,
    fits_core,
    fits_registers,
    hides_latency,
    next_aligned,
    step_of,
    sub_tiles,
)

# Bounds of the search, not of a machine: rows of a register tile, and parts of a vector that `wide` adds.
_ROWS = 16
_PARTS = 2, 4, 8


def reuse_score(tile: RTile, loop: int, size: int, transaction: int = 1) -> float:
    """Traffic saved per byte of capacity when a loop's size grows: (Q(T) - Q(T')) / (F(T') - F(T)), section 3.3."""
    return _score(tile, tile.with_size(loop, size), transaction)


def _score(tile: RTile, larger: RTile, transaction: int) -> float:
    saved = tile.traffic(transaction) - larger.traffic(transaction)
    return saved / max(larger.footprint - tile.footprint, 1)


# Level one: unit tiles ------------------------------------------------------------------------------------------------


def unit_tiles(
    expression: Expression, own: Sequence[int], machine: Machine, wide: bool = False
) -> Iterator[tuple[int, ...]]:
    """Yield unit tiles along the rows and lanes of `own` that fit the registers, fill the pipes and keep rows in L1.

    `wide` adds some that break rules 1 and 3, parts of vectors and rows that evict each other: the model should know.
    """
    rows, lane = tile_loops(expression, own)
    if not expression.macs:
        yield from _other_lanes(expression, machine, wide)
    if lane is None:
        return
    widths = _widths(expression.extents[lane], machine.lanes, 4 if expression.macs else 8)
    if wide and lane not in expression.reductions and not any(o.fixed for o in expression.inputs):
        widths = [*(w for w in _PARTS if w < min(widths)), *widths]
    for width, heights in product(widths, _heights(expression, rows)):
        sizes = {lane: width, **dict(zip(rows, heights, strict=True))}
        tile = RTile(expression, tuple(sizes.get(d, 1) for d in range(expression.rank)))
        if _product_tile(tile, machine) if expression.macs else _map_tile(tile, machine):
            yield tile.shape


def _heights(expression: Expression, rows: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Sizes of the rows' loops, up to 16 rows: parts of the innermost one, or several of its whole lines."""
    if not rows:
        yield ()
        return
    *outer, last = rows
    line = expression.extents[last]
    for height in range(1, min(line, _ROWS) + 1):
        yield (*(1 for _ in outer), height)
    if outer:
        for lines in range(2, min(expression.extents[outer[-1]], _ROWS // line) + 1):
            yield (*(1 for _ in outer[1:]), lines, line)


def _other_lanes(expression: Expression, machine: Machine, wide: bool) -> Iterator[tuple[int, ...]]:
    """Lanes along each loop that is contiguous in an operand: a window may be summed for many results at a time.

    Rows of windows that overlap are summed side by side: what they share is loaded once.
    """
    for lane, extent in enumerate(expression.extents):
        if extent == 1 or not any(abs(o.factor(lane)) == 1 for o in expression.operands):
            continue
        strided = all(abs(o.factor(lane)) != 1 for o in expression.inputs)  # LLVM merges parts that lie side by side
        for width in [*(_PARTS if wide and strided else ()), *_widths(extent, machine.lanes, 8)]:
            for row, height in [(lane, width), *_window_rows(expression, lane)]:
                sizes = {row: height, lane: width}
                tile = RTile(expression, tuple(sizes.get(d, 1) for d in range(expression.rank)))
                if (wide or bank_free(tile, machine)) and fits_registers(tile, machine):
                    yield tile.shape


def _window_rows(expression: Expression, lane: int) -> Iterator[tuple[int, int]]:
    """Loops of which neighbouring rows share parts of their windows, and how many rows.

    A tile walks a dimension of an operand by one loop only: lanes along a window are no lanes beside its rows.
    """
    windows = [dict(terms) for o in expression.inputs for terms in o.index if terms is not None and len(terms) > 1]
    for row in expression.parallel:
        shared = [terms for terms in windows if row in terms]
        if row != lane and expression.extents[row] > 2 and shared and all(lane not in terms for terms in shared):
            yield row, 2


def _product_tile(tile: RTile, machine: Machine) -> bool:
    return fits_registers(tile, machine) and hides_latency(tile, machine) and bank_free(tile, machine)


def _map_tile(tile: RTile, machine: Machine) -> bool:
    """Tiles of rows are transposed in registers, so all of one lies there; tiles of a single row pass through."""
    rows, _ = tile_loops(tile.expression, tile.shape)
    return bank_free(tile, machine) and (not rows or accumulators(tile, machine) + 2 <= machine.registers)


def _widths(extent: int, lanes: int, most: int) -> list[int]:
    """Whole vectors, or the whole axis where it is no longer."""
    return sorted({min(extent, lanes * vectors) for vectors in range(1, most + 1) if vectors in (1, 2, 3, 4, 6, 8)})


# Level two: tasks -----------------------------------------------------------------------------------------------------


def scale_up(unit: RTile, machine: Machine) -> Iterator[RTile]:
    """Yield tasks, each grown from the one before along the axis with the best reuse, as far as the core holds them.

    Their unit tiles are whole bundles (rule 1). A core runs over all of a reduction, a GPU's block by transactions.
    """
    whole = frozenset() if machine.gpu else unit.expression.reductions
    extents = unit.expression.extents
    shape = (e if d in whole else step_of(unit, d, machine) for d, e in enumerate(extents))
    tile: RTile | None = RTile(unit.expression, tuple(shape))
    while tile is not None:
        if sub_tiles(tile, unit) % machine.bundle == 0:
            yield tile
        tile = _grown(tile, unit, machine)


def _grown(tile: RTile, unit: RTile, machine: Machine) -> RTile | None:
    """The next larger task that fits: of equal axes the innermost grows, of loops that are one axis the inner first.

    Axes are compared by what doubling each of them saves.
    """
    best: tuple[float, int] | None = None
    for axis in fused_axes(tile.expression):
        loop = next((d for d in reversed(axis) if tile.shape[d] < tile.expression.extents[d]), None)
        size = None if loop is None else doubled(tile, loop, machine, unit)
        if loop is None or size is None:
            continue
        larger = tile.with_size(loop, size)
        if fits_core(larger, unit, machine):
            score = (_score(tile, larger, machine.transaction), loop)
            best = max(best, score) if best else score
    size = None if best is None else next_aligned(tile, best[1], machine, unit)
    return None if best is None or size is None else tile.with_size(best[1], size)

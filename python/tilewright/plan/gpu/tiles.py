# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tiles of memory-bound nests.

All sizes are powers of two; what reaches beyond a loop's extent is a bound of a load or store (`tile.padded`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

from tilewright.ir.structure import LinalgOp, transposed_row
from tilewright.plan.cost.tiling import GpuTiling
from tilewright.plan.model.nest import Nest, lane_of, power_of_two

#: Elements of a tile of a memory-bound nest: 128 threads with 16 of them each.
TILE = 2048
#: Elements of a tile of a reduction: rows are whole in registers where they fit.
ROW = 8192
#: Elements side by side that fill a memory transaction of 4-byte elements several times.
_LANES = 256
#: Rows and columns of a tile that is transposed.
_SQUARE = 32
#: Elements of the largest tile that a thread holds.
_PER_THREAD = 16


def warps_for(elements: int) -> int:
    """Warps that hold a tile of a nest without products, a power of two up to 8."""
    return max(1, min(8, power_of_two(elements // (32 * _PER_THREAD))))


@dataclass(frozen=True)
class Given:
    """What the task of several nests says of one of them.

    Attributes:
        rows: what a task covers of common loops; all others are whole.
        steps: register tiles of loops that run in blocks.
    """

    rows: Mapping[int, int]
    steps: Mapping[int, int] = field(default_factory=dict)


def make_tiling(op: LinalgOp, tile: Mapping[int, int], given: Given | None) -> GpuTiling:
    """The tiling of a nest whose register tile is known.

    Args:
        op: the root.
        tile: sizes of the loops that the register tile extends along.
        given: what the task says; None: the nest is alone in it, and a task is one register tile.
    """
    register = [tile.get(d, 1) for d in range(op.rank)]
    task = []
    for d, size in enumerate(register):
        everything = 0 if d in op.dynamic else op.extents[d]
        if given is None:
            task.append(everything if d in op.reductions else size)
        else:
            task.append(given.rows.get(d, everything))
    order = [*op.parallel, *sorted(op.reductions)]
    return GpuTiling(task, register, order, warps=warps_for(prod(register)))


def start(nest: Nest, given: Given | None) -> dict[int, int]:
    """The part of a register tile that the rows of a task make, and blocks of a loop."""
    tile: dict[int, int] = {}
    if given is None:
        return tile
    for loop, size in [*given.rows.items(), *given.steps.items()]:
        if size > 1 and nest.fits(tile, loop):
            tile[loop] = power_of_two(size)
    return tile


def tile_elementwise(nest: Nest, given: Given | None = None) -> GpuTiling:
    """A nest without reductions: a tile of some thousand elements, its rows along the contiguous loop."""
    op = nest.root
    tile = start(nest, given)
    if op.rank:
        lane = lane_of(op, op.output)
        other = transposed_row(op, lane)
        loops = [d for d in reversed(op.output.dims) if d is not None and d != lane]
        if given is not None:
            nest.widen(tile, [d for d in (lane,) if d not in given.rows], ROW, most=2)
        elif other is not None:
            for loop in (lane, other):
                nest.widen(tile, [loop], min(_SQUARE * prod(tile.values()), TILE))
        else:
            nest.widen(tile, [lane], _LANES if op.points > op.extents[lane] else TILE)
            # What gathers takes its rows from one loop: places computed for each row are a list.
            nest.widen(tile, loops, TILE, most=2 if any(member.tables for member in nest.members) else None)
    return make_tiling(op, tile, given)


def tile_reduce(nest: Nest, given: Given | None = None) -> GpuTiling:
    """A nest that reduces: tiles extend along the contiguous loop of the largest input, then along one other."""
    op = nest.root
    largest = max(op.inputs, key=lambda a: prod(op.extents[d] for d in a.loops), default=op.output)
    lane = lane_of(op, largest)
    tile = start(nest, given)
    if given is None or lane not in given.rows:  # how many rows there are is the task's
        nest.widen(tile, [lane], ROW if lane in op.reductions else _LANES * prod(tile.values()), most=2)
    # Rows are those of one loop; better of the other kind: lanes that are reduced have rows that are not.
    inner = [d for d in reversed(largest.dims) if d is not None and d != lane and (given is None or d in op.reductions)]
    inner.sort(key=lambda d: (d in op.reductions) == (lane in op.reductions))
    nest.widen(tile, inner, TILE, most=2)
    return make_tiling(op, tile, given)

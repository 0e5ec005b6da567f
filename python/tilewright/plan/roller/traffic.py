# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bytes between the levels of a cache hierarchy for a loop nest in tiles, by reuse distance.

A level keeps what the loops inside some depth touch if that fits; an operand is fetched anew for each iteration of the
loops outside, except of those that it does not depend on and that directly enclose the depth. Windows that slide along
the next loop outwards fetch only their new part. This is Welder's traffic (OSDI 2023, section 3.1) for a cache, which
nobody fills by hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from tilewright.plan.roller.expression import Expression, Operand
from tilewright.plan.roller.rtile import data_tile, runs, tile_bytes

#: Part of a cache that a working set can count on: what streams through takes the rest.
_SHARE = 0.8


@dataclass(frozen=True)
class Loop:
    """One loop of the nest: which dimension, how often it runs, and the sizes that everything inside covers."""

    dim: int
    trips: int
    inside: tuple[int, ...]


def loops_of(extents: Sequence[int], tiles: Sequence[Sequence[int]], order: Sequence[int]) -> list[Loop]:
    """The loops of a nest in tiles, outermost first: those over the tasks, then those over each smaller tile.

    Args:
        extents: sizes of the dimensions.
        tiles: sizes per level, largest tile first.
        order: traversal order of the dimensions, outermost first.
    """
    loops: list[Loop] = []
    box = list(tiles[-1])
    for level in range(len(tiles) - 1, -1, -1):
        outer = tiles[level - 1] if level else extents
        for d in reversed(order):
            trips = ceil(outer[d] / tiles[level][d])
            if trips > 1:
                loops.append(Loop(d, trips, tuple(box)))
                box[d] = outer[d]
    loops.reverse()
    return loops


def fetched(
    expression: Expression, loops: Sequence[Loop], capacities: Sequence[int], line: int
) -> list[tuple[int, ...]]:
    """Bytes that cross into caches of some capacities during the whole nest, in lines, per operand (inputs first).

    Nothing crosses where everything fits: whoever ran before left it there.
    """
    # boxes[i]: what a register tile and the i innermost loops around it cover
    boxes = [*(loop.inside for loop in reversed(loops)), expression.extents]
    operands = expression.operands
    tiles = [[data_tile(o, box) for box in boxes] for o in operands]
    moved = [[tile_bytes(o, tile, line) for tile in own] for o, own in zip(operands, tiles, strict=True)]
    sizes = [sum(column) for column in zip(*moved, strict=True)]
    outside = [1]  # outside[-1 - i]: how often what the i innermost loops cover is run
    for loop in loops:
        outside.append(outside[-1] * loop.trips)
    outside.reverse()
    found = []
    for capacity in capacities:
        if sizes[-1] <= capacity * _SHARE:
            found.append((0,) * len(operands))
            continue
        depth = max((i for i, size in enumerate(sizes) if size <= capacity * _SHARE), default=0)
        places = [_changes(own, depth) for own in tiles]
        found.append(tuple(own[at] * outside[at] for own, at in zip(moved, places, strict=True)))
    return found


def _changes(tiles: Sequence[tuple[int, ...]], depth: int) -> int:
    """How many loops cover more of an operand than the `depth` innermost ones, whose part a level keeps."""
    return next((at for at in range(depth, len(tiles)) if tiles[at] != tiles[depth]), len(tiles) - 1)


def run_bytes(operand: Operand, extents: Sequence[int], loops: Sequence[Loop], tile: Sequence[int]) -> int:
    """Bytes that a nest walks on end in an operand before it jumps: what hardware prefetchers can follow.

    A tile may walk several runs side by side; they grow while the loops around them lengthen each.
    """
    if operand.fixed:
        return 1 << 30
    count, length = runs(data_tile(operand, tile), operand.shape)
    inner = [*reversed(loops)]
    for loop, after in zip(inner, [*(loop.inside for loop in inner[1:]), extents], strict=False):
        if loop.dim not in operand.loops:
            continue
        more, longer = runs(data_tile(operand, after), operand.shape)
        if more > count:
            break
        count, length = more, longer
    return length * operand.bytes

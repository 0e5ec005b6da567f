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
from math import ceil, prod

from tilewright.plan.roller.expression import Expression, Operand
from tilewright.plan.roller.rtile import data_tile, moved_bytes, runs

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


def fetched(expression: Expression, loops: Sequence[Loop], capacity: int, line: int) -> tuple[int, ...]:
    """Bytes that cross into a level of `capacity` during the whole nest, in lines, per operand (inputs first).

    Nothing crosses where everything fits: whoever ran before left it there.
    """
    # boxes[i]: what a register tile and the i innermost loops around it cover
    boxes = [*(loop.inside for loop in reversed(loops)), expression.extents]
    sizes = [sum(moved_bytes(o, box, line) for o in expression.operands) for box in boxes]
    depth = max((i for i, size in enumerate(sizes) if size <= capacity * _SHARE), default=0)
    if sizes[-1] <= capacity * _SHARE:
        return (0,) * len(expression.operands)
    trips = [loop.trips for loop in reversed(loops)]
    return tuple(_of_operand(o, boxes, trips, depth, line) for o in expression.operands)


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


def _of_operand(operand: Operand, boxes: Sequence[tuple[int, ...]], trips: Sequence[int], depth: int, line: int) -> int:
    """Bytes of one operand when a level keeps what the `depth` innermost loops touch."""
    kept = data_tile(operand, boxes[depth])
    at = depth
    while at < len(trips) and data_tile(operand, boxes[at]) == kept:
        at += 1
    return moved_bytes(operand, boxes[at], line) * prod(trips[at:])

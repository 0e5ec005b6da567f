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
from typing import NamedTuple

from tilewright.devices.device import Device
from tilewright.plan.cost.expression import Expression, Operand
from tilewright.plan.cost.rtile import data_tile, runs


@dataclass(frozen=True)
class Prefetcher:
    """What hardware prefetchers do, as rates of the device say.

    Attributes:
        gap: bytes between runs that they read over.
        side_by_side: runs that a register tile walks in turns; more of them are found anew in each page.
        page: bytes of a page.
        streams: runs that are followed at a time: the lines of a window, or parts of several planes in turn.
        known: how much cheaper it is to go on with a run that is followed already than to start one.
    """

    gap: float
    side_by_side: float
    page: int
    streams: float
    known: float

    @staticmethod
    def of(device: Device) -> Prefetcher:
        """Return what a device's prefetchers do."""
        rate = device.rate
        return Prefetcher(
            rate("prefetch.gap"),
            rate("prefetch.side_by_side"),
            int(rate("page")),
            rate("prefetch.streams"),
            rate("prefetch.known"),
        )


class Loop(NamedTuple):
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
    parts = [[_touched(o, box, line) for box in boxes] for o in operands]
    tiles = [[tile for tile, _ in own] for own in parts]
    moved = [[size for _, size in own] for own in parts]
    sizes = [sum(column) for column in zip(*moved, strict=True)]
    outside = [1]  # outside[-1 - i]: how often what the i innermost loops cover is run
    for loop in loops:
        outside.append(outside[-1] * loop.trips)
    outside.reverse()
    found = []
    for capacity in capacities:
        if sizes[-1] <= capacity:
            found.append((0,) * len(operands))
            continue
        depth = max((i for i, size in enumerate(sizes) if size <= capacity), default=0)
        places = [_changes(own, depth) for own in tiles]
        found.append(tuple(own[at] * outside[at] for own, at in zip(moved, places, strict=True)))
    return found


def _touched(operand: Operand, box: tuple[int, ...], line: int) -> tuple[tuple[int, ...], int]:
    """The part of an operand that a box of the loops touches, and its bytes in lines."""
    key = line, box
    if (found := operand.parts.get(key)) is None:
        tile = data_tile(operand, box)
        found = operand.parts[key] = tile, _lines(operand, tile, line) * line
    return found


def _lines(operand: Operand, tile: tuple[int, ...], line: int) -> int:
    """Lines that a part of an operand touches; one more per run where runs start anywhere in a line."""
    if operand.fixed:
        return ceil(prod(tile) * operand.bytes / line)
    count, length = runs(tile, operand.shape)
    pitch = _pitch(tile, operand.shape) * operand.bytes
    if count == 1 or pitch % line == 0:
        return count * ceil(length * operand.bytes / line)
    return ceil(count * (1 + (length - 1) * operand.bytes / line))  # on average over all starts


def _pitch(tile: Sequence[int], shape: Sequence[int]) -> int:
    """Elements between the starts of neighbouring runs."""
    stride = 1
    for size, extent in zip(reversed(tile), reversed(shape), strict=True):
        stride *= extent
        if size < extent:
            break
    return stride


def _streams(tile: tuple[int, ...], operand: Operand, gap: float) -> tuple[int, int]:
    """Number and length (elements) of a part's runs, those with small gaps between them as one."""
    key = "streams", tile, gap
    if (found := operand.parts.get(key)) is None:
        found = operand.parts[key] = _count_streams(tile, operand, gap)
    return found


def _count_streams(tile: tuple[int, ...], operand: Operand, gap: float) -> tuple[int, int]:
    span, stride, at = 1, 1, len(tile)
    while at > 0:
        at -= 1
        span += (tile[at] - 1) * stride
        stride *= operand.shape[at]
        if (stride - span) * operand.bytes > gap:
            break
    return prod(tile[:at]), span


def _changes(tiles: Sequence[tuple[int, ...]], depth: int) -> int:
    """How many loops cover more of an operand than the `depth` innermost ones, whose part a level keeps."""
    return next((at for at in range(depth, len(tiles)) if tiles[at] != tiles[depth]), len(tiles) - 1)


def run_bytes(
    operand: Operand, extents: Sequence[int], loops: Sequence[Loop], tile: Sequence[int], prefetcher: Prefetcher
) -> float:
    """Bytes that a nest walks on end in an operand before it jumps: what hardware prefetchers can follow.

    A tile may walk several runs side by side; they grow while the loops around them lengthen each.
    """
    if operand.fixed:
        return 1 << 30
    count, length = _streams(data_tile(operand, tile), operand, prefetcher.gap)
    most: float = prefetcher.page // operand.bytes if count > prefetcher.side_by_side else 1 << 30
    inner = [*reversed(loops)]
    for loop, after in zip(inner, [*(loop.inside for loop in inner[1:]), extents], strict=False):
        if loop.dim not in operand.loops:
            continue
        more, longer = _streams(data_tile(operand, after), operand, prefetcher.gap)
        if more > max(count, prefetcher.streams):
            break
        if more > count:
            most = min(most, prefetcher.known * length)
        count, length = more, longer
    return min(length, most) * operand.bytes

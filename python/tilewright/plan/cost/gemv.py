# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sums that read one large tensor once: what they depend on, and their time on a GPU in tiles of a size.

Memory is all that counts, and a multiprocessor moves what its threads have asked for at a time, once per latency
(Little's law). So tiles follow from bytes under way and from how many CTAs there are: a tile is as narrow along the
lanes as a transaction of memory allows, so that there are CTAs for all multiprocessors, and deep along the sum, whose
points are distributed over the warps of a CTA and are added up once, behind the loop (split-K inside of a CTA).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil, prod

from tilewright.plan.cost.prediction import Prediction
from tilewright.plan.cost.roofline import launched, transfer
from tilewright.plan.model.gpu import Gpu
from tilewright.plan.model.nest import power_of_two

# Bounds of the enumeration, and what the generated code costs; numbers of machines are rates.

#: Warps of a CTA.
_WARPS = (1, 2, 4, 8)
#: Elements of a row that lanes take at most, where they are kept and where they are added up.
_LANES = {False: 512, True: 8192}
#: Sums of a thread at most, in registers; registers besides these and what is under way.
_SUMS = 64
_OTHERS = 40
#: Instructions of a term whose tile reaches beyond the end of a reduced loop, relative to one that does not.
_MASKED = 2
#: Bytes of a row that a tile covers at least, where rows are not added up: a load of a thread. Below a transaction of
#: memory several CTAs read the same ones, which L2 brings once from memory.
_LEAST_ROW = 8
#: How much longer than the best a tile may take that moves less.
_ALIKE = 1.03


@dataclass(frozen=True)
class Operand:
    """A tensor from outside: the loops of the nest that it depends on, and bytes of an element."""

    loops: frozenset[int]
    width: int


@dataclass(frozen=True)
class Gemv:
    """A reduction whose largest operand has an element for each of its points.

    Attributes:
        extents: of the loops.
        reductions: the reduced loops.
        lane: the loop along which neighbours of the large operand lie side by side.
        other: the loop that tiles extend along besides; a reduced one where lanes are not. None: there is none.
        large: the operand.
        others: all other operands.
        outside: bytes of all tensors that the nest reads and writes, once each.
        written: of which are results.
        terms: instructions of vector units for a point.
        sum_width: bytes of a sum in registers.
        further: a reduced loop that they may extend along instead, as lanes do: points of pictures; or None.
    """

    extents: tuple[int, ...]
    reductions: frozenset[int]
    lane: int
    other: int | None
    large: Operand
    others: tuple[Operand, ...]
    outside: int
    written: int
    terms: int
    sum_width: int
    further: int | None = None

    def cut(self, loop: int, parts: int) -> Gemv:
        """A part of a reduced loop is a task of its own: as many points, more CTAs, a sum for each part."""
        extents = [*self.extents, parts]
        extents[loop] //= parts
        number = len(self.extents)

        def grown(operand: Operand) -> Operand:
            return Operand(operand.loops | {number}, operand.width) if loop in operand.loops else operand

        made = prod(e for d, e in enumerate(self.extents) if d not in self.reductions) * parts * 4
        return replace(
            self,
            extents=tuple(extents),
            large=grown(self.large),
            others=tuple(grown(operand) for operand in self.others),
            outside=self.outside - self.written + made,
            written=made,
        )


@dataclass(frozen=True, kw_only=True)
class GemvPrediction(Prediction):
    """The predicted time in tiles of a size; its bound is ``latency`` where there are too few bytes under way.

    Attributes:
        tasks: CTAs.
        under_way: bytes that a multiprocessor waits for at a time.
        ragged: whether a tile reaches beyond the end of a reduced loop.
    """

    tasks: int
    under_way: int
    ragged: bool


def predict_gemv(gemv: Gemv, tile: Mapping[int, int], warps: int, gpu: Gpu) -> GemvPrediction:
    """The time of a gemv.

    Args:
        gemv: what is read and added up.
        tile: sizes of the loops that a register tile extends along.
        warps: that share it.
        gpu: the machine.
    """
    device, extents = gpu.device, gemv.extents
    memory = device.level("memory")
    counts = [ceil(extent / tile.get(d, 1)) for d, extent in enumerate(extents)]
    tasks = prod(count for d, count in enumerate(counts) if d not in gemv.reductions)
    steps = prod(counts[d] for d in gemv.reductions)
    step_bytes = prod(min(tile.get(d, 1), extents[d]) for d in gemv.large.loops) * gemv.large.width
    held = max(gpu.occupancy(32 * warps, 0, _registers(gemv, tile, warps)), 1)
    slots = held * gpu.units
    rounds, last = ceil(tasks / slots), tasks % slots
    # CTAs of the last round share the machine; multiprocessors that have none of them move nothing.
    idle = (tasks - last + last * max(1.0, gpu.units / last)) / tasks if last else 1.0
    near = _l2_bytes(gemv, tile, tasks, memory.transaction)
    ragged = any(extents[d] % size for d, size in tile.items() if d in gemv.reductions)
    work = prod(extents) * gemv.terms * (_MASKED if ragged else 1)
    whole = idle * transfer(device, "memory", gemv.outside)
    rate = device.units.peak_of("f32") / 2  # of a multiprocessor
    # A CTA asks for a step, waits, and adds it up: what others on the multiprocessor move meanwhile keeps memory busy.
    moving = transfer(device, "memory", step_bytes * gpu.units)
    away = memory.latency + step_bytes / gemv.large.width * gemv.terms / rate
    busy = min(1.0, min(held, max(tasks / gpu.units, 1.0)) * moving / (away + moving))
    parts = {
        "memory": whole,
        "l2": idle * transfer(device, "l2", near),
        "vector": idle * work / (rate * gpu.units),
        "latency": max(rounds * (steps + 1) * memory.latency, whole / busy if busy < 1.0 else 0.0),
    }
    bound = max(parts, key=lambda name: parts[name])
    launch, waiting = launched(device, 0), 2 * memory.latency + device.rate("task")
    return GemvPrediction(
        seconds=parts[bound] + waiting + launch,
        bound=bound,
        parts=parts,
        l2_bytes=near,
        memory_bytes=gemv.outside,
        operations=prod(extents) * gemv.terms,
        occupancy=held,
        roofline=gemv.outside / memory.bandwidth,
        waiting=waiting,
        launch=launch,
        tasks=tasks,
        under_way=min(held, ceil(tasks / gpu.units)) * step_bytes,
        ragged=ragged,
    )


def _registers(gemv: Gemv, tile: Mapping[int, int], warps: int) -> int:
    """32-bit registers of a thread: its sums, and what is under way for them."""
    each = prod(tile.values()) / (32 * warps)
    return ceil(each * gemv.sum_width / 4) + ceil(each * gemv.large.width / 4) + _OTHERS


def _l2_bytes(gemv: Gemv, tile: Mapping[int, int], tasks: int, transaction: int) -> int:
    """Bytes that all CTAs read and write: a row below a transaction of memory is read by several CTAs."""
    row = tile.get(gemv.lane, 1) * gemv.large.width
    again = 1 if gemv.lane in gemv.reductions else max(transaction / row, 1)
    read = [_per_task(gemv, tile, operand) for operand in (gemv.large, *gemv.others)]
    return round(tasks * (read[0] * again + sum(read[1:]))) + gemv.written


def _per_task(gemv: Gemv, tile: Mapping[int, int], operand: Operand) -> int:
    """Bytes of an operand that a CTA reads."""
    sizes = (gemv.extents[d] if d in gemv.reductions else min(tile.get(d, 1), gemv.extents[d]) for d in operand.loops)
    return prod(sizes) * operand.width


def tiles_of(gemv: Gemv, gpu: Gpu) -> Iterator[tuple[dict[int, int], int]]:
    """All tiles whose rows are loads of a thread and whose sums fit into registers, and the warps that share them."""
    added = gemv.lane in gemv.reductions
    fewest = 8 * gpu.device.level("memory").transaction if added else _LEAST_ROW
    least = max(fewest // gemv.large.width, 1)
    for lanes in _sizes(least, min(power_of_two(gemv.extents[gemv.lane]), _LANES[added])):
        for rows in _rows(gemv):
            tile = {gemv.lane: lanes} | rows
            for warps in _WARPS:
                each = prod(tile.values()) / (32 * warps)
                if 1 <= each and each * gemv.sum_width / 4 <= _SUMS:
                    yield tile, warps


def _sizes(least: int, most: int) -> list[int]:
    """Powers of two from the least on; the most, where that is smaller."""
    return [1 << bit for bit in range(most.bit_length()) if least <= 1 << bit <= most] or [most]


def _rows(gemv: Gemv) -> list[dict[int, int]]:
    """Sizes of tiles along the loops besides that of lanes."""
    if gemv.other is None:
        return [{}]
    least = 2 if gemv.other in gemv.reductions else 1
    rows = [{gemv.other: size} for size in _sizes(least, power_of_two(gemv.extents[gemv.other]))]
    if gemv.further is None:
        return rows
    return rows + [{gemv.further: size} for size in _sizes(2, power_of_two(gemv.extents[gemv.further]))]


@dataclass(frozen=True)
class Ranked:
    """A tile of a gemv, the warps that share it, and its predicted time."""

    tile: Mapping[int, int]
    warps: int
    prediction: GemvPrediction

    @property
    def key(self) -> tuple[float, float, int]:
        """What ranks it: its time, then what it waits for memory, then its size."""
        return float(f"{self.prediction.seconds:.3e}"), self.prediction.parts["latency"], self.warps

    def text(self, gemv: Gemv) -> str:
        """Return e.g. ``32 lanes x 256 rows, 8 warps``."""
        rows = prod(self.tile.values()) // self.tile[gemv.lane]
        return f"{self.tile[gemv.lane]} lanes x {rows} rows, {self.warps} warps"


@lru_cache(512)
def rank_gemv(gemv: Gemv, gpu: Gpu) -> tuple[Ranked, ...]:
    """The tiles of a stream by predicted time, each with the best number of warps.

    Of those that take about as long as the best, the one without masks that moves the least, in the longest rows, with
    the most bytes under way.
    """
    best: dict[tuple[tuple[int, int], ...], Ranked] = {}
    for tile, warps in tiles_of(gemv, gpu):
        found = Ranked(tile, warps, predict_gemv(gemv, tile, warps, gpu))
        key = tuple(tile.items())
        if key not in best or found.key < best[key].key:
            best[key] = found
    ranked = sorted(best.values(), key=lambda r: r.key)
    limit = ranked[0].prediction.seconds * _ALIKE if ranked else 0.0
    alike = [r for r in ranked if r.prediction.seconds <= limit]
    alike.sort(key=lambda r: (r.prediction.ragged, r.prediction.l2_bytes, -r.tile[gemv.lane], r.key))
    return (*alike, *ranked[len(alike) :])


@lru_cache(512)
def gemv_seconds(gemv: Gemv, gpu: Gpu) -> float | None:
    """The predicted time in the best tiles, without ranking; None where no tile fits."""
    times = (predict_gemv(gemv, tile, warps, gpu).seconds for tile, warps in tiles_of(gemv, gpu))
    return min(times, default=None)

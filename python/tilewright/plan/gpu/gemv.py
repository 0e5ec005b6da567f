# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sums that read one large tensor once: products with a vector (decoding), and reductions of rows or columns.

Memory is all that counts, and a multiprocessor moves what its threads have asked for at a time, once per latency
(Little's law). So tiles follow from bytes under way and from how many CTAs there are: a tile is as narrow along the
lanes as a transaction of memory allows, so that there are CTAs for all multiprocessors, and deep along the sum, whose
points are distributed over the warps of a CTA and are added up once, behind the loop (split-K inside of a CTA).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, prod

from tilewright.ir import decisions
from tilewright.ir.structure import Kind, LinalgOp
from tilewright.mlir import ir
from tilewright.plan.gpu.tiles import GpuTiling, make_tiling
from tilewright.plan.model.gpu import Gpu
from tilewright.plan.model.nest import Nest, power_of_two, read_only_by
from tilewright.plan.model.traffic import element_bytes, tensor_bytes

#: Warps of a CTA.
_WARPS = (1, 2, 4, 8)
#: Elements of a row that lanes take at most, where they are kept and where they are added up.
_LANES = {False: 512, True: 8192}
#: Sums of a thread at most, in registers; registers besides these and what is under way.
_SUMS = 64
_OTHERS = 40
#: Part of its bandwidth that memory reaches.
_STREAMED = 0.92
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
class Stream:
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

    def cut(self, loop: int, parts: int) -> Stream:
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


def find_stream(nest: Nest) -> Stream | None:
    """What a nest streams; None where it reads elements again and again (windows, products of matrices) or gathers."""
    op = nest.root
    if not op.reductions or op.dynamic or nest.gathers or any(m.tables or m.dynamic for m in nest.members):
        return None
    found = _operands(nest)
    if not found:
        return None
    dims, large = max(found, key=lambda pair: prod(op.extents[d] for d in pair[1].loops))
    lanes = [d for d in reversed(dims) if d is not None and op.extents[d] > 1]
    if not lanes or prod(op.extents[d] for d in large.loops) != op.points or len(lanes) != len(set(lanes)):
        return None
    lane, rest = lanes[0], lanes[1:]
    rest.sort(key=lambda d: (d in op.reductions) == (lane in op.reductions))
    other = next((d for d in rest if nest.fits([lane], d)), None)
    if not nest.fits([], lane) or not {lane, other} & op.reductions:
        return None
    results = [m for m in nest.members if not read_only_by(m, nest.members)]
    written = sum(tensor_bytes(m.result) for m in results)
    return Stream(
        op.extents,
        op.reductions,
        lane,
        other,
        large,
        tuple(operand for _, operand in found if operand is not large),
        written + sum(prod(op.extents[d] for d in operand.loops) * operand.width for _, operand in found),
        written,
        sum(_terms(m) for m in nest.members if m.points == op.points),
        max(element_bytes(op.result), 4),
    )


def _operands(nest: Nest) -> list[tuple[tuple[int | None, ...], Operand]]:
    """What the nest reads from outside, each tensor once: its dimensions as loops of the root; [] where one is none."""
    made = [member.result for member in nest.members]
    seen: list[ir.Value] = []
    found = []
    for op, loops in nest.bindings.items():
        for access in op.inputs:
            if access.value in made or access.value in seen or not access.dims:
                continue
            if not access.pure or any(d is not None and d not in loops for d in access.dims):
                return []
            seen.append(access.value)
            dims = tuple(None if d is None else loops[d] for d in access.dims)
            used = frozenset(d for d in dims if d is not None)
            found.append((dims, Operand(used, element_bytes(access.value))))
    return found


def _terms(op: LinalgOp) -> int:
    """Instructions for a point: a product with a vector widens an element and adds it, multiplied."""
    if op.kind is Kind.CONTRACTION:
        return 2
    names = [inner.operation.name for inner in op.op.regions[0].blocks[0].operations]
    return sum(1 for name in names if name.startswith(("arith.", "math.")) and name != "arith.constant")


@dataclass(frozen=True)
class StreamPrediction:
    """The predicted time of a stream in tiles of a size, and what it follows from.

    Attributes:
        seconds: in all, the launch included.
        bound: what takes longest; ``latency``: there are too few bytes under way.
        parts: seconds of each.
        tasks: CTAs.
        occupancy: of which a multiprocessor holds.
        under_way: bytes that a multiprocessor waits for at a time.
        l2_bytes: bytes that all CTAs read and write.
        ragged: whether a tile reaches beyond the end of a reduced loop.
    """

    seconds: float
    bound: str
    parts: Mapping[str, float]
    tasks: int
    occupancy: int
    under_way: int
    l2_bytes: int
    ragged: bool


def predict_stream(stream: Stream, tile: Mapping[int, int], warps: int, gpu: Gpu) -> StreamPrediction:
    """The time of a stream.

    Args:
        stream: what is read and added up.
        tile: sizes of the loops that a register tile extends along.
        warps: that share it.
        gpu: the machine.
    """
    device, extents = gpu.device, stream.extents
    memory, l2 = device.level("memory"), device.level("l2")
    counts = [ceil(extent / tile.get(d, 1)) for d, extent in enumerate(extents)]
    tasks = prod(count for d, count in enumerate(counts) if d not in stream.reductions)
    steps = prod(counts[d] for d in stream.reductions)
    step_bytes = prod(min(tile.get(d, 1), extents[d]) for d in stream.large.loops) * stream.large.width
    held = max(gpu.occupancy(32 * warps, 0, _registers(stream, tile, warps)), 1)
    slots = held * gpu.units
    rounds, last = ceil(tasks / slots), tasks % slots
    # CTAs of the last round share the machine; multiprocessors that have none of them move nothing.
    idle = (tasks - last + last * max(1.0, gpu.units / last)) / tasks if last else 1.0
    row = tile.get(stream.lane, 1) * stream.large.width
    again = 1 if stream.lane in stream.reductions else max(memory.transaction / row, 1)
    read = [_per_task(stream, tile, operand) for operand in (stream.large, *stream.others)]
    near = round(tasks * (read[0] * again + sum(read[1:]))) + stream.written
    ragged = any(extents[d] % size for d, size in tile.items() if d in stream.reductions)
    work = prod(extents) * stream.terms * (_MASKED if ragged else 1)
    whole = idle * stream.outside / (memory.bandwidth * _STREAMED)
    rate = device.units.peak_of("f32") / 2  # of a multiprocessor
    # A CTA asks for a step, waits, and adds it up: what others on the multiprocessor move meanwhile keeps memory busy.
    moving = step_bytes * gpu.units / (memory.bandwidth * _STREAMED)
    away = memory.latency + step_bytes / stream.large.width * stream.terms / rate
    busy = min(1.0, min(held, max(tasks / gpu.units, 1.0)) * moving / (away + moving))
    parts = {
        "memory": whole,
        "l2": idle * near / l2.bandwidth,
        "vector": idle * work / (rate * gpu.units),
        "latency": max(rounds * (steps + 1) * memory.latency, whole / busy if busy < 1.0 else 0.0),
    }
    bound = max(parts, key=lambda name: parts[name])
    seconds = parts[bound] + 2 * memory.latency + device.rate("task") + device.rate("launch")
    under_way = min(held, ceil(tasks / gpu.units)) * step_bytes
    return StreamPrediction(seconds, bound, parts, tasks, held, under_way, near, ragged)


def _registers(stream: Stream, tile: Mapping[int, int], warps: int) -> int:
    """32-bit registers of a thread: its sums, and what is under way for them."""
    each = prod(tile.values()) / (32 * warps)
    return ceil(each * stream.sum_width / 4) + ceil(each * stream.large.width / 4) + _OTHERS


def _per_task(stream: Stream, tile: Mapping[int, int], operand: Operand) -> int:
    """Bytes of an operand that a CTA reads."""
    sizes = (
        stream.extents[d] if d in stream.reductions else min(tile.get(d, 1), stream.extents[d]) for d in operand.loops
    )
    return prod(sizes) * operand.width


def tiles_of(stream: Stream, gpu: Gpu) -> Iterator[tuple[dict[int, int], int]]:
    """All tiles whose rows are loads of a thread and whose sums fit into registers, and the warps that share them."""
    added = stream.lane in stream.reductions
    fewest = 8 * gpu.device.level("memory").transaction if added else _LEAST_ROW
    least = max(fewest // stream.large.width, 1)
    for lanes in _sizes(least, min(power_of_two(stream.extents[stream.lane]), _LANES[added])):
        for rows in _rows(stream):
            for warps in _WARPS:
                each = lanes * rows / (32 * warps)
                if 1 <= each and each * stream.sum_width / 4 <= _SUMS:
                    tile = {stream.lane: lanes} | ({stream.other: rows} if stream.other is not None else {})
                    yield tile, warps


def _sizes(least: int, most: int) -> list[int]:
    """Powers of two from the least on; the most, where that is smaller."""
    return [1 << bit for bit in range(most.bit_length()) if least <= 1 << bit <= most] or [most]


def _rows(stream: Stream) -> list[int]:
    if stream.other is None:
        return [1]
    most = power_of_two(stream.extents[stream.other])
    return _sizes(2 if stream.other in stream.reductions else 1, most)


@dataclass(frozen=True)
class Ranked:
    """A tile of a stream, the warps that share it, and its predicted time."""

    tile: Mapping[int, int]
    warps: int
    prediction: StreamPrediction

    @property
    def key(self) -> tuple[float, float, int]:
        """What ranks it: its time, then what it waits for memory, then its size."""
        return float(f"{self.prediction.seconds:.3e}"), self.prediction.parts["latency"], self.warps

    def text(self, stream: Stream) -> str:
        """Return e.g. ``32 lanes x 256 rows, 8 warps``."""
        rows = self.tile.get(stream.other, 1) if stream.other is not None else 1
        return f"{self.tile[stream.lane]} lanes x {rows} rows, {self.warps} warps"


def rank_stream(stream: Stream, gpu: Gpu) -> Sequence[Ranked]:
    """The tiles of a stream by predicted time, each with the best number of warps.

    Of those that take about as long as the best, the one without masks that moves the least, in the longest rows, with
    the most bytes under way.
    """
    best: dict[tuple[int, ...], Ranked] = {}
    for tile, warps in tiles_of(stream, gpu):
        found = Ranked(tile, warps, predict_stream(stream, tile, warps, gpu))
        key = tuple(tile.values())
        if key not in best or found.key < best[key].key:
            best[key] = found
    ranked = sorted(best.values(), key=lambda r: r.key)
    limit = ranked[0].prediction.seconds * _ALIKE if ranked else 0.0
    alike = [r for r in ranked if r.prediction.seconds <= limit]
    alike.sort(key=lambda r: (r.prediction.ragged, r.prediction.l2_bytes, -r.tile[stream.lane], r.key))
    return [*alike, *ranked[len(alike) :]]


def stream_seconds(stream: Stream, gpu: Gpu) -> float | None:
    """The predicted time in the best tiles, without ranking; None where no tile fits."""
    times = (predict_stream(stream, tile, warps, gpu).seconds for tile, warps in tiles_of(stream, gpu))
    return min(times, default=None)


def choose_stream(nest: Nest, gpu: Gpu, number: int = 0) -> GpuTiling | None:
    """The tiling of a nest that streams; None where it does not, or where no tile fits.

    Args:
        nest: the only one of its task.
        gpu: the machine.
        number: of the candidate, the one with the least predicted time first.
    """
    stream = find_stream(nest)
    ranked = rank_stream(stream, gpu) if stream is not None else ()
    if stream is None or not ranked:
        return None
    number = min(number, len(ranked) - 1)
    chosen = ranked[number]
    tiling = make_tiling(nest.root, chosen.tile, None)
    tiling.warps = chosen.warps
    other = ranked[number + 1] if number + 1 < len(ranked) else None
    tiling.marks[decisions.PREDICTION] = _attribute(stream, chosen, other, len(ranked), number, gpu)
    return tiling


def _attribute(stream: Stream, chosen: Ranked, other: Ranked | None, count: int, number: int, gpu: Gpu) -> str:
    """The choice as `tile.prediction`: times in ns, the launch included."""
    found = chosen.prediction
    roofline = stream.outside / gpu.device.level("memory").bandwidth
    fields = [
        f"ns = {found.seconds * 1e9:.0f} : i64",
        f'bound = "{found.bound}"',
        *(f"{name}_ns = {seconds * 1e9:.0f} : i64" for name, seconds in found.parts.items()),
        f"roofline_ns = {roofline * 1e9:.0f} : i64",
        f"l2_bytes = {found.l2_bytes} : i64",
        f"memory_bytes = {stream.outside} : i64",
        f"operations = {prod(stream.extents) * stream.terms} : i64",
        f"occupancy = {found.occupancy} : i64",
        f"tasks = {found.tasks} : i64",
        f"under_way = {found.under_way} : i64",
        f'shape = "{chosen.text(stream)}"',
        f"candidates = {count} : i64",
    ]
    if number:
        fields.append(f"number = {number} : i64")
    if other is not None:
        fields.append(f'runner_up = "{other.text(stream)}"')
        fields.append(f"runner_up_ns = {other.prediction.seconds * 1e9:.0f} : i64")
    return "{" + ", ".join(fields) + "}"

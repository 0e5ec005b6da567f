# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shapes of a CTA's product: which ones the machine's units, registers and shared memory allow.

Roller's alignment rules (Zhu et al., OSDI 2022, section 3.2) with the units of today's GPUs: a tile is a whole number
of instructions of the matrix unit (wgmma: 64 rows per warpgroup), a row of a step is one span of the swizzle (128
bytes, which is the widest box of TMA), accumulators leave registers for addresses and fragments, and the slots of the
ring fit into shared memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import product
from math import prod, sqrt

from tilewright.plan.model.gpu import Gpu
from tilewright.plan.model.nest import power_of_two

#: Bytes of a row of a step: the widest swizzle.
_SPAN = 128
#: Slots of a ring, at most: more hide no more latency; and of a ring with small slots (few rows, whose other operand is
#: read once), which keep enough bytes under way only together.
_SLOTS = {True: 6, False: 4}
_SMALL_SLOTS = 8
_SMALL_SLOT = 8192
#: Registers of a thread besides its accumulators: addresses, fragments of both operands, predicates.
_OTHERS = 72
#: Registers of a thread that only loads.
_LOADING = 40
#: 32-bit registers of accumulators per thread, at most; and where functions of the sums follow, whose steps need some.
_ACCUMULATORS = 128
_WITH_FUNCTIONS = 64
#: How many registers more accumulators and operands may take where operands come through registers, not through a ring.
_FACTORS = 32
#: Element types that matrix units multiply (on all architectures that there are descriptions for).
_UNIT_TYPES = frozenset({"f16", "bf16", "i8", "tf32"})
_HOPPER_TYPES = frozenset({"f8E4M3FN", "f8E5M2"})
#: Bytes of shared memory for barriers, and to align the ring.
_RESERVED = 2048
#: Boxes of a warp that wait in shared memory until TMA has stored them, and bytes of one: 16 rows of a swizzle's span.
#: Where a CTA ends with its tile they lie in the ring, which is free then.
_BOXES = {True: 2, False: 4}
_BOX = 16 * _SPAN
#: CTAs of a cluster: the two multiprocessors of a TPC, so that none stays idle, whatever the sizes of GPCs.
_CLUSTER = 2
#: Lanes of a tile whose scales change along the sum, at least: rings have slots of 128 bytes and more.
_SCALES = 64
#: Steps that a CTA has of stream-K tiles, at least.
_LEAST_SHARE = 4
#: Rows of a box that a CTA loads for its cluster, at least: the rows that a swizzle exchanges.
_SHARE = 8


@dataclass(frozen=True)
class Packed:
    """How an operand lies in memory that is small there and widened in registers.

    Attributes:
        lanes: whether it is the operand with the lanes, or that with the rows.
        bytes: of an element in memory, its part of scales and zero points included.
        instructions: of vector units that make an element, besides conversions by instructions of their own.
        conversions: of these.
        blocks: whether scales change along the sum, which `outer` counts the blocks of then.
    """

    lanes: bool
    bytes: float
    instructions: float
    conversions: float
    blocks: bool = False


@dataclass(frozen=True)
class Problem:
    """A product, or a convolution seen as one.

    Attributes:
        rows: points of the loops of rows.
        lanes: points of the loops of lanes.
        depth: points of the loop of the depth.
        outer: points of the other reduced loops: places of a window.
        batch: points of the loops that both operands have.
        kind: element type of the operands in memory; ``tf32`` for those in f32 that may be rounded to it.
        out_bytes: bytes of an element of the result.
        streams: whether the operands lie in memory as TMA wants them: rows at multiples of 16 bytes.
        deep: whether the depth runs along the rows of both operands in memory, as wgmma wants all but 16-bit elements.
        functions: whether functions (exponentials, ...) of the sums are computed where they are.
        stores: whether TMA can store the result: one tensor, rows at multiples of 16 bytes.
        adds: bytes of an element of all matrices of the result's size that what follows reads; they pass through shared
            memory.
        fetches: whether TMA can load these matrices, as it can those of `streams`.
        places: points of each loop of rows, that of neighbours in memory first; none: rows are those of one loop.
        overlap: how often an element of the operand with the rows is read by neighbouring windows; 1: no windows.
        neighbours: whether tiles beside each other may be a cluster.
        strided: whether rows are every so manieth place of an image: no two CTAs load a part of its tile each.
        open_rows: of each loop of rows, whether only a run knows its points.
        open_lanes: whether only a run knows the lanes.
        packed: how an operand lies in memory that is not multiplied as it lies there.
        deals: whether stream-K may divide steps among CTAs: all sizes are known, and sums begin with zeros.
    """

    rows: int
    lanes: int
    depth: int
    outer: int
    batch: int
    kind: str
    out_bytes: int
    streams: bool = True
    deep: bool = True
    functions: bool = False
    stores: bool = False
    adds: int = 0
    fetches: bool = False
    places: tuple[int, ...] = ()
    overlap: float = 1.0
    neighbours: bool = False
    strided: bool = False
    open_rows: tuple[bool, ...] = ()
    open_lanes: bool = False
    packed: Packed | None = None
    deals: bool = False

    @cached_property
    def bytes(self) -> int:
        """Bytes of an element of the operands, as units multiply them."""
        sizes = {"f64": 8, "i64": 8, "f32": 4, "tf32": 4, "i32": 4, "f16": 2, "bf16": 2, "i16": 2}
        return sizes.get(self.kind, 1)

    @cached_property
    def widths(self) -> tuple[float, float]:
        """Bytes of an element in memory of the operand with the rows, and of that with the lanes."""
        if self.packed is None:
            return self.bytes, self.bytes
        return (self.bytes, self.packed.bytes) if self.packed.lanes else (self.packed.bytes, self.bytes)

    def bytes_of(self, rows: float, lanes: float) -> int:
        """Bytes in memory of so many elements of both operands."""
        return round(rows * self.widths[0] + lanes * self.widths[1])

    @property
    def held(self) -> int:
        """Bytes of both operands in memory."""
        depth = self.batch * self.depth
        return self.bytes_of(depth * round(self.rows * self.outer / self.overlap), depth * self.lanes * self.outer)

    def down(self, rows: int, cluster: int = 1) -> int:
        """Tiles of so many rows that cover all, and fill clusters of so many."""
        counts = self._counts(rows)
        loop = self.paired(rows) if cluster > 1 else None
        if loop is not None:
            counts[loop] = -(-counts[loop] // cluster) * cluster
        return prod(counts)

    def across(self, lanes: int, cluster: int = 1) -> int:
        """Tiles of so many lanes that cover all, and fill clusters of so many."""
        return -(-self.lanes // (lanes * cluster)) * cluster

    def paired(self, rows: int) -> int | None:
        """The loop of rows along which tiles make whole clusters of two: by their number, or as a grid rounds it up."""
        counts = self._counts(rows)
        opened = self.open_rows or (False,) * len(counts)
        return next((i for i, n in enumerate(counts) if n % _CLUSTER == 0 or opened[i]), None)

    def _counts(self, rows: int) -> list[int]:
        """Tiles of so many rows along each loop of rows."""
        places = self.places or (self.rows,)
        return [-(-n // size) for n, size in zip(places, split_rows(places, rows), strict=True)]

    @property
    def operations(self) -> int:
        """Additions and multiplications."""
        return 2 * self.batch * self.rows * self.lanes * self.depth * self.outer


@dataclass(frozen=True)
class Shape:
    """Sizes of a CTA's product.

    Attributes:
        rows: of the tile.
        lanes: of the tile.
        depth: of a step.
        warps: that hold the result.
        stages: slots of the ring; 1: plain loads.
        wgmma: whether warpgroups multiply what lies in shared memory.
        persistent: whether a CTA computes tile after tile; loads run ahead into the next one.
        fetched: whether TMA brings the matrices that what follows reads, beside the last steps of the product.
        cluster: CTAs of a cluster along rows and along lanes; what several of them read, TMA loads once for all.
        dealt: CTAs that share the steps of the last waves (stream-K); 0: each tile is one CTA's.
    """

    rows: int
    lanes: int
    depth: int
    warps: int
    stages: int = 1
    wgmma: bool = False
    persistent: bool = False
    fetched: bool = False
    cluster: tuple[int, int] = (1, 1)
    dealt: int = 0

    def step_bytes(self, problem: Problem) -> int:
        """Bytes of both operands that a step needs."""
        return problem.bytes_of(self.rows * self.depth, self.lanes * self.depth)

    def loaded_bytes(self, problem: Problem) -> int:
        """Bytes of both operands that a CTA loads for a step: its share of what the cluster reads together."""
        down, across = self.cluster
        return problem.bytes_of(self.rows // across * self.depth, self.lanes // down * self.depth)

    def shared(self, problem: Problem) -> int:
        """Bytes of shared memory of a CTA."""
        brought = self.rows * self.lanes * problem.adds if self.fetched else 0
        return max(self.stages, 1) * self.step_bytes(problem) + brought + self._waiting(problem) + _RESERVED

    @property
    def clustered(self) -> bool:
        """Whether several CTAs load together."""
        return self.cluster != (1, 1)

    def boxes(self, problem: Problem) -> int:
        """Boxes of a warp that TMA stores at a time; 0 where threads store the result."""
        return _BOXES[self.persistent] if self.wgmma and problem.stores else 0

    def _waiting(self, problem: Problem) -> int:
        """Bytes of shared memory of results that are being stored while the ring is filled, or turned beside it."""
        if self.dealt and not self.wgmma:
            return self.rows * self.lanes * problem.out_bytes
        return self.warps * self.boxes(problem) * _BOX if self.persistent else 0

    @property
    def grid(self) -> tuple[int, int]:
        """Warps along the rows and the lanes that share a result of mma.sync (`chooseWarps` of the lowering)."""
        down = across = 1
        while down * across < self.warps:
            height, width = self.rows // down, self.lanes // across
            if height >= 32 and (height >= width or width < 16):
                down *= 2
            elif width >= 16:
                across *= 2
            else:
                break
        return down, across

    @property
    def side(self) -> float:
        """Rows, and lanes, of what a thread holds of the result, as a square."""
        return sqrt(self.rows * self.lanes / (32 * self.warps))

    @property
    def threads(self) -> int:
        """Threads of a CTA, a warpgroup that only loads among them."""
        return 32 * self.warps + (128 if self.wgmma else 0)

    def registers(self, problem: Problem) -> int:
        """32-bit registers of a thread, on average where a warpgroup that only loads gives up most of its own."""
        width = 2 if problem.bytes == 8 else 1
        own = self.rows * self.lanes * width // (32 * self.warps) + _OTHERS
        return (32 * self.warps * own + 128 * _LOADING) // self.threads if self.wgmma else own

    def __str__(self) -> str:
        """Return e.g. ``128x256x64, 8 warps, 4 stages``."""
        text = f"{self.rows}x{self.lanes}x{self.depth}, {self.warps} warps, {self.stages} stages"
        text += ", persistent" if self.persistent else ""
        text += ", fetched" if self.fetched else ""
        text += ", stream-K" if self.dealt else ""
        return text + (", cluster {}x{}".format(*self.cluster) if self.clustered else "")


def has_unit(problem: Problem, gpu: Gpu) -> bool:
    """Whether a matrix unit multiplies the operands; f32 that must stay f32 is for the vector units."""
    return problem.kind in _UNIT_TYPES or (problem.kind in _HOPPER_TYPES and gpu.capability >= 90)


def _suits_wgmma(problem: Problem) -> bool:
    """Whether wgmma can read the operands from shared memory, where TMA puts them."""
    ordered = (problem.deep or problem.bytes == 2) and problem.packed is None
    return problem.streams and ordered and problem.depth * problem.bytes >= _SPAN // 2


def shapes(problem: Problem, gpu: Gpu) -> Iterator[Shape]:
    """All shapes that fit the machine and are no larger than the problem needs."""
    unit = has_unit(problem, gpu)
    least = 16 if unit else 8
    rows = max(power_of_two(problem.rows), least)
    lanes = max(power_of_two(problem.lanes), 8)
    fewest = _SCALES if problem.packed is not None and problem.packed.blocks else 16
    wgmma = unit and gpu.hopper and _suits_wgmma(problem) and rows >= 64
    for tall in (16, 32, 64, 128, 256) if unit else (8, 16, 32, 64, 128):
        for wide in (8, 16, 32, 64, 128, 256) if unit else (8, 16, 32, 64, 128):
            if tall <= rows and (wide <= lanes and wide >= min(lanes, fewest)):
                yield from _steps(problem, gpu, tall, wide, unit, wgmma)


def _steps(problem: Problem, gpu: Gpu, rows: int, lanes: int, unit: bool, wgmma: bool) -> Iterator[Shape]:
    """Depths, warps and stages of a tile."""
    groups = wgmma and rows >= 64
    span = _SPAN if unit else _SPAN // 2
    depth = min(span // problem.bytes, max(power_of_two(problem.depth), 16 if unit else 4))
    for warps in (1, 2, 4, 8):
        if groups and (warps < 4 or rows != 16 * warps):
            continue  # one accumulator per warpgroup: ptxas serializes products into two (C7514)
        if not groups and unit and rows * lanes < 16 * 8 * warps:
            continue
        if not unit and not 2 <= rows * lanes // (32 * warps) <= 64:
            continue
        shape = Shape(rows, lanes, depth, warps, 1, groups)
        width = 2 if problem.bytes == 8 else 1
        sums, limit = rows * lanes * width // (32 * warps), _WITH_FUNCTIONS if problem.functions else _ACCUMULATORS
        if sums > limit:
            continue
        if not problem.streams and sums + shape.step_bytes(problem) // (4 * 32 * warps) > limit + _FACTORS:
            continue
        yield from _rings(problem, gpu, shape)


def _rings(problem: Problem, gpu: Gpu, shape: Shape) -> Iterator[Shape]:
    """The same tile with slots of a ring, in a CTA of its own and in one that goes on to the next."""
    steps = -(-problem.depth // shape.depth) * problem.outer
    found = False
    for persistent, fetched in product((False, True), (False, True)):
        one = replace(shape, stages=0, persistent=persistent, fetched=fetched)
        if fetched and not (shape.wgmma and problem.adds and problem.fetches):
            continue
        if persistent and not _goes_on(problem, gpu, one, steps):
            continue
        fit = (gpu.shared - one.shared(problem)) // shape.step_bytes(problem) + 1
        most = _SMALL_SLOTS if not shape.wgmma and shape.step_bytes(problem) <= _SMALL_SLOT else _SLOTS[shape.wgmma]
        stages = min(most, fit, most if persistent else steps)
        if problem.streams and stages >= 2:
            found = True
            yield from _clusters(problem, replace(one, stages=stages))
    yield from _dealt(problem, gpu, shape, steps)
    if not found and not shape.wgmma:
        yield shape


def _clusters(problem: Problem, shape: Shape) -> Iterator[Shape]:
    """The same CTA alone, and with a neighbour whose rows or lanes are the same: each loads half of those for both."""
    yield shape
    if not (shape.wgmma and problem.neighbours):
        return
    if problem.paired(shape.rows) is not None and shape.lanes >= _CLUSTER * _SHARE:
        yield replace(shape, cluster=(_CLUSTER, 1))
    whole = problem.open_lanes or problem.across(shape.lanes) % _CLUSTER == 0
    if whole and not problem.strided and shape.rows >= _CLUSTER * _SHARE:
        yield replace(shape, cluster=(1, _CLUSTER))


def _dealt(problem: Problem, gpu: Gpu, shape: Shape, steps: int) -> Iterator[Shape]:
    """The same tile in CTAs that share the steps of the last waves; what follows may not need the ring."""
    free = not problem.adds and (problem.stores or not shape.wgmma)
    one = replace(shape, stages=0, persistent=True, dealt=1)
    fit = (gpu.shared - one.shared(problem)) // shape.step_bytes(problem) + 1
    stages = min(_SLOTS[shape.wgmma], fit)
    if not (problem.deals and problem.streams and free and stages >= 2):
        return
    one = replace(one, stages=stages)
    ctas = gpu.occupancy(one.threads, one.shared(problem), one.registers(problem)) * gpu.units
    count = tiles(problem, one)
    if count > 1 and ctas and count % ctas and (count - whole_tiles(count, ctas)) * steps >= _LEAST_SHARE * ctas:
        yield replace(one, dealt=ctas)


def whole_tiles(count: int, ctas: int) -> int:
    """Tiles that are one CTA's each with stream-K: those of all full waves but the last one."""
    return max(count // ctas - 1, 0) * ctas


def _goes_on(problem: Problem, gpu: Gpu, shape: Shape, steps: int) -> bool:
    """Whether CTAs may compute one tile after the other: there are several, and results do not need the ring."""
    free = shape.fetched or not problem.adds
    return shape.wgmma and problem.stores and free and steps >= 2 and tiles(problem, shape) > gpu.units


def tiles(problem: Problem, shape: Shape) -> int:
    """CTAs that cover the result, and fill clusters."""
    down, across = shape.cluster
    return problem.batch * problem.down(shape.rows, down) * problem.across(shape.lanes, across)


@lru_cache(maxsize=4096)
def split_rows(places: tuple[int, ...], rows: int) -> tuple[int, ...]:
    """Sizes of a tile of `rows` rows along each of the loops that rows are taken from: powers of two.

    Of those with the fewest tiles, that which is longest along the first loop, then the second, ...

    Args:
        places: points of each loop.
        rows: rows of a tile; fewer where the loops have no more.
    """
    if len(places) == 1:
        return (min(rows, power_of_two(places[0])),)
    best: tuple[int, ...] = ()
    fewest = 0
    size = min(rows, power_of_two(places[0]))
    while size:
        rest = split_rows(places[1:], rows // size)
        if size * prod(rest) == min(rows, prod(map(power_of_two, places))):
            count = prod(-(-n // s) for n, s in zip(places, (size, *rest), strict=True))
            if not best or count < fewest:
                best, fewest = (size, *rest), count
        size //= 2
    return best

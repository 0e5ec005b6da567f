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
from itertools import product
from math import sqrt

from tilewright.plan.cost.gemm import CLUSTER, Problem, has_unit
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
_OPERANDS = 32
#: Bytes of shared memory for barriers, and to align the ring.
_RESERVED = 2048
#: Boxes of a warp that wait in shared memory until TMA has stored them, and bytes of one: 16 rows of a swizzle's span.
#: Where a CTA ends with its tile they lie in the ring, which is free then.
_BOXES = {True: 2, False: 4}
_BOX = 16 * _SPAN
#: Lanes of a tile whose scales change along the sum, at least: rings have slots of 128 bytes and more.
_SCALES = 64
#: Steps that a CTA has of stream-K tiles, at least.
_LEAST_SHARE = 4
#: Rows of a box that a CTA loads for its cluster, at least: the rows that a swizzle exchanges.
_SHARE = 8


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
        stream_k: CTAs that share the steps of the last waves ; 0: each tile is one CTA's.
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
    stream_k: int = 0

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
        if self.stream_k and not self.wgmma:
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

    def promotions(self, problem: Problem) -> int:
        """How often vector units add what a matrix unit has of a sum; 0: never."""
        steps = -(-problem.depth // self.depth) * problem.outer
        if not (self.wgmma and problem.promotion) or steps < 2:
            return 0
        return -(-steps // max(problem.promotion // self.depth, 1))

    def sums(self, problem: Problem) -> int:
        """32-bit registers of a thread for sums: those of the matrix unit, and those that they are added to."""
        width = 2 if problem.bytes == 8 or self.promotions(problem) else 1
        return self.rows * self.lanes * width // (32 * self.warps)

    def registers(self, problem: Problem) -> int:
        """32-bit registers of a thread, on average where a warpgroup that only loads gives up most of its own."""
        own = self.sums(problem) + _OTHERS
        return (32 * self.warps * own + 128 * _LOADING) // self.threads if self.wgmma else own

    def __str__(self) -> str:
        """Return e.g. ``128x256x64, 8 warps, 4 stages``."""
        text = f"{self.rows}x{self.lanes}x{self.depth}, {self.warps} warps, {self.stages} stages"
        text += ", persistent" if self.persistent else ""
        text += ", fetched" if self.fetched else ""
        text += ", stream-K" if self.stream_k else ""
        return text + (", cluster {}x{}".format(*self.cluster) if self.clustered else "")


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
        sums, limit = shape.sums(problem), _WITH_FUNCTIONS if problem.functions else _ACCUMULATORS
        ends = sums // 2 if shape.promotions(problem) else sums  # what is left of them for what follows
        if ends > limit or sums > _ACCUMULATORS:
            continue
        if not problem.streams and sums + shape.step_bytes(problem) // (4 * 32 * warps) > limit + _OPERANDS:
            continue
        yield from _rings(problem, gpu, shape)


def _rings(problem: Problem, gpu: Gpu, shape: Shape) -> Iterator[Shape]:
    """The same tile with slots of a ring, in a CTA of its own and in one that goes on to the next."""
    steps = -(-problem.depth // shape.depth) * problem.outer
    found = False
    for persistent, fetched in product((False, True), (False, True)):
        if fetched and not (shape.wgmma and problem.adds and problem.fetches):
            continue
        one = replace(shape, stages=0, persistent=persistent, fetched=fetched)
        if persistent and not _goes_on(problem, gpu, one, steps):
            continue
        fit = (gpu.shared - one.shared(problem)) // shape.step_bytes(problem) + 1
        most = _SMALL_SLOTS if not shape.wgmma and shape.step_bytes(problem) <= _SMALL_SLOT else _SLOTS[shape.wgmma]
        stages = min(most, fit, most if persistent else steps)
        if problem.streams and stages >= 2:
            found = True
            yield from _clusters(problem, replace(one, stages=stages))
    yield from _stream_k(problem, gpu, shape, steps)
    if not found and not shape.wgmma:
        yield shape


def _clusters(problem: Problem, shape: Shape) -> Iterator[Shape]:
    """The same CTA alone, and with a neighbour whose rows or lanes are the same: each loads half of those for both."""
    yield shape
    if not (shape.wgmma and problem.neighbours and problem.may_cluster):
        return
    if problem.paired(shape.rows) is not None and shape.lanes >= CLUSTER * _SHARE:
        yield replace(shape, cluster=(CLUSTER, 1))
    whole = problem.open_lanes or problem.across(shape.lanes) % CLUSTER == 0
    if whole and not problem.strided and shape.rows >= CLUSTER * _SHARE:
        yield replace(shape, cluster=(1, CLUSTER))


def _stream_k(problem: Problem, gpu: Gpu, shape: Shape, steps: int) -> Iterator[Shape]:
    """The same tile in CTAs that share the steps of the last waves; what follows may not need the ring."""
    free = not problem.adds and (problem.stores or not shape.wgmma)
    one = replace(shape, stages=0, persistent=True, stream_k=1)
    fit = (gpu.shared - one.shared(problem)) // shape.step_bytes(problem) + 1
    stages = min(_SLOTS[shape.wgmma], fit)
    if not (problem.may_stream_k and problem.streams and free and stages >= 2):
        return
    one = replace(one, stages=stages)
    ctas = gpu.occupancy(one.threads, one.shared(problem), one.registers(problem)) * gpu.units
    count = tiles(problem, one)
    if count > 1 and ctas and count % ctas and (count - whole_tiles(count, ctas)) * steps >= _LEAST_SHARE * ctas:
        yield replace(one, stream_k=ctas)


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

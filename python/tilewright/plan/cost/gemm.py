# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A matrix product as data: what its shapes and its time on a GPU depend on; a convolution is one (implicit GEMM)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod

from tilewright.plan.model.gpu import Gpu
from tilewright.plan.model.nest import power_of_two

#: Element types that matrix units multiply (on all architectures that there are descriptions for).
_UNIT_TYPES = frozenset({"f16", "bf16", "i8", "tf32"})
_HOPPER_TYPES = frozenset({"f8E4M3FN", "f8E5M2"})
#: CTAs of a cluster: the two multiprocessors of a TPC, so that none stays idle, whatever the sizes of GPCs.
CLUSTER = 2


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
        promotion: terms of a sum that a warpgroup's unit adds before vector units take over; 0: all.
        behind: names of the operations that what follows computes from each sum.
        may_stream_k: whether stream-K may divide steps among CTAs: all sizes are known, and sums begin with zeros.
        may_cluster: whether neighbouring CTAs may load together.
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
    promotion: int = 0
    behind: tuple[str, ...] = ()
    may_stream_k: bool = False
    may_cluster: bool = True

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
        return next((i for i, n in enumerate(counts) if n % CLUSTER == 0 or opened[i]), None)

    def _counts(self, rows: int) -> list[int]:
        """Tiles of so many rows along each loop of rows."""
        places = self.places or (self.rows,)
        return [-(-n // size) for n, size in zip(places, split_rows(places, rows), strict=True)]

    @property
    def operations(self) -> int:
        """Additions and multiplications."""
        return 2 * self.batch * self.rows * self.lanes * self.depth * self.outer


def has_unit(problem: Problem, gpu: Gpu) -> bool:
    """Whether a matrix unit multiplies the operands; f32 that must stay f32 is for the vector units."""
    return problem.kind in _UNIT_TYPES or (problem.kind in _HOPPER_TYPES and gpu.capability >= 90)


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

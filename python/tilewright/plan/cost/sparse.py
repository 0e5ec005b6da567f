# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How long a product with a pruned weight takes on a CPU's core, by the families of kernels in `plan/sparse/forms`.

The same model as for dense products: cycles of arithmetic and loads, seconds for the bytes that come from caches and
memory, the shorter of both hidden in part. What is left of a dense product is a part of its multiply-adds; a family
reaches a part of the rate that dense ones reach, and pays for each kept unit (an index, a broadcast, a row of panels).
Numbers of machines are rates (`devices/kinds/cpu.toml`, `sparse.*`).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, sqrt

from tilewright.devices.device import Device
from tilewright.dialects.sparse_tile.patterns import NM, Block, Mask, Pattern
from tilewright.plan.cost.choose import rank
from tilewright.plan.cost.cost import Schedule
from tilewright.plan.cost.expression import matmul
from tilewright.plan.cost.sparse_pairs import saved_loads, vectors_of_pairs

CHOSEN = 4
"""Elements of an N:M window, at most, that positions of two bits choose from in registers; of more, `gemv` gathers."""

_STREAMS = 4
"""Registers of rows that `gemv` reads side by side where each takes few registers: what memory is read at, in places.

One thread of a Zen 3 core reads 16 GB/s at one place, 27 at two, 28 at four, 31 at eight."""

_APART = 1024  # bytes between registers of rows that are read side by side: 48 lines gained no more than 16
_PAGE = 4096
_MOST_APART = 0.02  # of the bytes of a row

_INDEX_BYTES = {"mask": 4.0, "block": 4.0, "nm": 1.0}
_BYTES_OF_CHOICE = 0.25


@dataclass(frozen=True)
class Sizes:
    """A product `x [m, k] @ w [k, n]` whose weight is pruned.

    Attributes:
        m, n, k: its sizes; of rows that a run brings, as many as are expected.
        bytes: of an element of the operands.
    """

    m: int
    n: int
    k: int
    bytes: int = 4


@dataclass(frozen=True)
class Region:
    """What is known of one region of a cover: its kernel, its pattern, and how many units are kept, filled-up ones too.

    `units` are elements of a mask or of element-wise N:M, else vectors or blocks. Where `left`, the kernel multiplies
    the transposed weight by transposed activations. `line` is what the family itself predicts, see `Taken`.
    """

    kernel: str
    pattern: Pattern
    units: int
    left: bool = False
    line: tuple[float, float] | None = None


@dataclass(frozen=True)
class Taken:
    """How a family of kernels takes a product.

    Attributes:
        left: whether it wants the transposed weight on the left.
        line: seconds without a unit and for each unit that is kept, as it predicts them; None: the laws here do.
    """

    left: bool = False
    line: tuple[float, float] | None = None


def unit_of(pattern: Pattern) -> tuple[int, int]:
    """Rows and columns that a pattern keeps as one."""
    if isinstance(pattern, Block):
        return pattern.shape
    return (pattern.unit[0], pattern.unit[1]) if isinstance(pattern, NM) and pattern.unit else (1, 1)


def kernels_for(pattern: Pattern, sizes: Sizes, device: Device) -> tuple[str, ...]:
    """Families of kernels that a region of such a pattern is costed for."""
    if device.kind == "gpu":
        from tilewright.plan.cost import sparse_gpu

        return sparse_gpu.kernels_for(pattern, sizes)
    few = sizes.m <= device.lanes(32) // 2
    if isinstance(pattern, Mask) or unit_of(pattern) == (1, 1):
        return ("gemv", "rows_in_lanes") if few else ("rows_in_lanes",)
    if isinstance(pattern, NM):
        return ("panels",)
    return ("blocks", "gemv") if few else ("blocks",)


@functools.lru_cache(512)
def dense_seconds(sizes: Sizes, device: Device) -> float:
    """The predicted seconds of the product with all of its weight, on one core of a CPU, or on a GPU."""
    if device.kind == "gpu":
        from tilewright.plan.cost import sparse_gpu

        return sparse_gpu.dense_seconds(sizes, device)
    lanes = device.lanes(32)
    base = Schedule((sizes.m, sizes.n, sizes.k), (min(sizes.m, 8), min(sizes.n, 3 * lanes), 1), (1, 0, 2))
    return rank(matmul(sizes.m, sizes.n, sizes.k, True), base, device)[0].one.seconds


def sparse_seconds(sizes: Sizes, regions: Sequence[Region], device: Device) -> float:
    """The predicted seconds of the product, region after region, on one core of a CPU, or on a GPU."""
    if device.kind == "gpu":
        return sum(_region_seconds(sizes, region, device) for region in regions)
    passes = len(regions) - any(_is_joined(region) for region in regions)
    again = (passes - 1) * 2 * sizes.m * sizes.n * 4 / _bandwidth(device, sizes.m * sizes.n * 4)
    transposed = any(region.left for region in regions) and sizes.m > 1
    vectors = (sizes.m * sizes.k + sizes.m * sizes.n) / device.lanes(32)
    turned = vectors * device.rate("sparse.transpose") / device.units.frequency if transposed else 0.0
    return sum(_region_seconds(sizes, region, device) for region in regions) + again + turned


def unit_seconds(sizes: Sizes, region: Region, device: Device) -> float:
    """What one more kept unit of a region costs."""
    if region.line is not None:
        return region.line[1]
    rows, columns = unit_of(region.pattern)
    many = max(sizes.n * sizes.k // (8 * rows * columns), 1)
    one, two = (sparse_seconds(sizes, [replace(region, units=count)], device) for count in (many, 2 * many))
    return (two - one) / many


def _region_seconds(sizes: Sizes, region: Region, device: Device) -> float:
    """Seconds of one kernel: no multiply-add is faster than a dense product's."""
    rows, columns = unit_of(region.pattern)
    elements = region.units * rows * columns
    least = dense_seconds(sizes, device) * min(elements / max(sizes.k * sizes.n, 1), 1.0)
    if region.line is not None:
        return max(region.line[0] + region.units * region.line[1], least)
    compute = _CYCLES[region.kernel](sizes, region, elements, device) / device.units.frequency
    index = region.units * (_BYTES_OF_CHOICE if _chooses(region) else _INDEX_BYTES[region.pattern.kind])
    others = 0 if _is_joined(region) else sizes.m * (sizes.k * sizes.bytes + sizes.n * 4)
    moved = elements * sizes.bytes + index + others + _between(sizes, region, elements, device)
    data = moved / _bandwidth(device, int(moved))
    longer, shorter = max(compute, data), min(compute, data)
    return max(longer + (1 - device.rate("overlap")) * shorter, least) + device.rate("launch")


def streams_of(device: Device, columns: int, tabled: bool) -> int:
    """Registers of rows that `gemv` reads side by side, at most.

    Args:
        device: a CPU.
        columns: of the dense operand: each has sums of its own.
        tabled: whether a window is a table in one register, instead of a register for each of its elements.
    """
    return max((_STREAMS if tabled else device.units.registers // 8) // columns, 1)


def apart(row: int, step: int = 1) -> int:
    """Bytes of zeros that `gemv` leaves between registers of rows which it reads side by side, whole steps.

    None where distances are no multiple of a page, so that places in the rows differ in sets of caches and of the TLB
    anyway, and none where rows are so short that the zeros would be more than 2 % of what is held.

    Args:
        row: bytes of the values of a register of rows.
        step: bytes of the values of an iteration, of which positions may share a word.
    """
    between = -(-_APART // step) * step
    return between if row and row % _PAGE == 0 and between <= _MOST_APART * row else 0


def _between(sizes: Sizes, region: Region, elements: int, device: Device) -> float:
    """Bytes of zeros between registers of rows: asked for ahead with what is before them, so that they are moved."""
    if not _chooses(region):
        return 0.0
    tabled = isinstance(region.pattern, NM) and region.pattern.m == CHOSEN and device.units.vector_bits >= 256
    if streams_of(device, sizes.m, tabled) < 2:
        return 0.0
    registers = ceil(sizes.n / device.lanes(32))
    return registers * apart(elements * sizes.bytes // registers)


def _chooses(region: Region) -> bool:
    """Whether positions of two bits choose between registers (forms/cpu/gemv_kernel.py)."""
    return region.kernel == "gemv" and isinstance(region.pattern, NM) and region.pattern.m <= CHOSEN


def _is_joined(region: Region) -> bool:
    """Whether they are blocks in the kernel of single elements, in one pass with them."""
    return region.kernel == "rows_in_lanes" and isinstance(region.pattern, Block)


def _bandwidth(device: Device, size: int) -> float:
    """Bytes per second of the nearest level behind L1 that holds so many."""
    caches = [level for level in device.levels if level.kind == "cache"][1:]
    level = next((c for c in caches if size <= c.bytes * device.rate("cache_share")), device.memory)
    return level.bandwidth or device.rate("bandwidth")


def _rows_in_lanes(sizes: Sizes, region: Region, elements: int, device: Device) -> float:
    """For each element a load and a multiply-add per vector of rows; its value and place once for some of them.

    The depth is cut in blocks of which the L1 cache holds the activations; each has a list for each column.
    """
    vectors = ceil(sizes.m / device.lanes(32))
    if _is_joined(region):
        return elements * vectors / (2 * device.rate("sparse.panel"))
    density = elements / (sizes.k * sizes.n)
    if isinstance(region.pattern, Mask):
        best = _of_any_length(sizes, density, vectors, device)
    else:
        best = min(_windows(sizes, region.pattern, density, sums, device) for sums in (8, 6, 4))
    turned = 0 if region.left else sizes.m * (sizes.k + sizes.n)  # in registers, on the way to the L1 cache and back
    return elements * vectors * best + turned * device.rate("sparse.turned")


def _windows(sizes: Sizes, pattern: Pattern, density: float, sums: int, device: Device) -> float:
    """The same for N:M, less what rows in pairs save."""
    vectors, lanes = ceil(sizes.m / device.lanes(32)), device.lanes(32)
    alone = _in_lists(sizes, density, sums, vectors, device)
    assert isinstance(pattern, NM)
    width = min(sums, vectors)
    together = min(width, vectors_of_pairs(device.units.registers, vectors))
    most = int(device.level("l1").bytes * device.rate("sparse.near") / 4) // (together * lanes)
    return alone - device.rate("sparse.pairs") * saved_loads(pattern, sizes.n, sizes.k, width, together, most)


def _in_lists(sizes: Sizes, density: float, sums: int, vectors: int, device: Device, end: float = 0.0) -> float:
    """Cycles for an element and a vector of rows, where blocks lie in the L1 cache; `end`: of a list, for each sum."""
    near = device.level("l1").bytes * device.rate("sparse.near") / 4
    block = min(max(near // (sums * device.lanes(32)), 1), sizes.k)
    shared = device.rate("sparse.element") / min(sums, vectors)
    return device.rate("sparse.load") + shared + (device.rate("sparse.list") + end) / max(density * block, 1e-3)


def _of_any_length(sizes: Sizes, density: float, vectors: int, device: Device) -> float:
    """The same for lists whose ends are mispredicted: in blocks, or over the depth, read from the second cache."""
    sums, surprise = 4, device.rate("sparse.surprise")
    far = device.rate("sparse.load_far") + device.rate("sparse.element") / min(sums, vectors)
    whole = far + (device.rate("sparse.list") + surprise) / max(density * sizes.k, 1e-3)
    return min(whole, _in_lists(sizes, density, sums, vectors, device, surprise))


def _gemv(sizes: Sizes, region: Region, elements: int, device: Device) -> float:
    """For each vector of elements and each row of activations: a gather or a choice, or a load of blocks."""
    plain = isinstance(region.pattern, Block)
    gather = 1.0 if plain else device.rate("sparse.chosen" if _chooses(region) else "sparse.gather")
    return sizes.m * (elements / device.lanes(32) * gather + sizes.n * device.rate("sparse.row"))


def _panels(sizes: Sizes, region: Region, elements: int, device: Device) -> float:
    """Dense tiles over the kept units: their rate by the columns of a unit, an index for each tile of rows, results."""
    lanes = device.lanes(32)
    vectors = ceil(unit_of(region.pattern)[1] / lanes)
    reached = device.rate(f"sparse.panel.{vectors}", "sparse.panel")
    reached *= sqrt(min(unit_of(region.pattern)[1] / lanes, 1.0))  # a vector is put together of several units
    macs = sizes.m * elements / (2 * lanes) / reached
    tiles = ceil(sizes.m / device.rate("sparse.panel_rows"))
    ends = sizes.m * ceil(sizes.n / lanes) * device.rate("sparse.panel_end")
    copied = sizes.m * sizes.k * device.rate("sparse.copied")
    return macs + tiles * region.units * device.rate("sparse.unit") + ends + copied


_CYCLES = {"rows_in_lanes": _rows_in_lanes, "gemv": _gemv, "panels": _panels, "blocks": _panels}

# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How what reads windows lies on the grid: the way of the shortest simulated time of those whose blocks fit.

In place (`windows`): cores split any two loops of the result among them; each gets the borders of its block from its
neighbours, and computes alone, with the filter of what it makes. As a product (`im2col`, Chellapilla et al., 2006):
rows of the result are split along y and channels along x, windows of a core's channels become rows of a matrix, and
MeshGEMM multiplies it by the filters, of which each core holds a part; in parts where the matrix outgrows the cores:
along rows, places of a window (which are added up) or channels that are made.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations
from math import prod
from typing import Literal

import numpy as np

from tilewright.core.dtypes import of_mlir
from tilewright.ir.generics import body, kinds
from tilewright.mlir import ir
from tilewright.plan.mesh.halo import Halo, halo
from tilewright.plan.mesh.product import Product
from tilewright.plan.mesh.shifting.shifted_product import shifted_product
from tilewright.sim.coremesh.checks.memory import core_classes
from tilewright.sim.coremesh.machine import Machine
from tilewright.sim.coremesh.program import Cost, Program
from tilewright.sim.coremesh.timing import time_program
from tilewright.targets.mesh.attributes import Fixed
from tilewright.targets.mesh.computations import factors_of
from tilewright.targets.mesh.cutting.cuts import Tiles, fastest
from tilewright.targets.mesh.cutting.parts import Parts
from tilewright.targets.mesh.images.tiles import WindowTiles
from tilewright.targets.mesh.images.windows import Dim, Windows

Axes = tuple[str, ...]
Way = Literal["windows", "im2col"]
#: The part of a core's memory above which filters are split among cores, if they can be.
LARGE = 1 / 8


@dataclass(frozen=True)
class Choice:
    """A way.

    Attributes:
        loops: the axis along each.
        cycles: simulated, of one call, with what brings the sources where they are read.
        filters: bytes of them in each core.
        bytes: of the fullest core.
        parts: of a product.
    """

    way: Way
    loops: Axes
    cycles: float
    filters: int
    bytes: int
    parts: Parts = Parts()

    def __str__(self) -> str:
        """For a remark."""
        told = f"{self.way}, loops along ({', '.join(axis or '*' for axis in self.loops)}): {self.cycles:,.0f} cycles"
        return f"{told} in {self.parts}," if self.parts.count > 1 else told


@dataclass(frozen=True)
class Grid:
    """What is planned for.

    Attributes:
        side: cores along each side.
        fixed: which values are the same in each call.
        room: bytes that a core has left.
    """

    side: int
    machine: Machine
    fixed: Fixed
    room: int


def plan(op: ir.Operation, found: Windows, lies: list[Axes | None], whole: set[int], grid: Grid) -> Choice | str:
    """The fastest way of those that fit; a text that says what does not.

    Args:
        lies: how each source is laid out already; None: it is outside of the grid.
        whole: dimensions of the result that readers combine: what splits them among cores is moved again.
    """
    asked = _Asked(op, found, lies, whole, grid)
    ways = [*asked.in_place(), *asked.as_product()]
    fitting = [way for way in ways if way.bytes <= grid.room]
    if not fitting:
        least = min(way.bytes for way in ways)
        return f"its windows take {least} bytes of a core, which has {grid.room} left"
    small = [way for way in fitting if way.filters <= LARGE * grid.machine.sram_bytes]
    return min(small or fitting, key=lambda way: way.cycles)


def part_of(dim: Dim, sizes: list[int], side: int) -> tuple[int, int]:
    """Elements from one position's part of an operand to the next one's, and of each part."""
    assert dim.loop is not None
    block = -(-sizes[dim.loop] // side)
    return block * dim.stride, (block - 1) * dim.stride + dim.reach(sizes)


class _Asked:
    """One op."""

    def __init__(self, op: ir.Operation, found: Windows, lies: list[Axes | None], whole: set[int], grid: Grid) -> None:
        self.op, self.found, self.lies, self.whole = op, found, lies, whole
        self.side, self.machine, self.fixed, self.room = grid.side, grid.machine, grid.fixed, grid.room
        self.kinds = [of_mlir(str(ir.RankedTensorType(value.type).element_type)) for value in op.operands]
        self.work = sum(view.operation.name.partition(".")[0] in ("arith", "math") for view in body(op).operations)

    def in_place(self) -> Iterator[Choice]:
        """Any two loops of the result that are worth a split, or one, along the two axes."""
        sizes = self.found.sizes
        large = [loop for loop in self.found.out if sizes[loop] > 1]
        pairs = list(permutations(large, 2)) or [(loop,) for loop in large] or [()]
        for pair in pairs:
            loops = [""] * len(sizes)
            for loop, axis in zip(pair, ("y", "x"), strict=False):
                loops[loop] = axis
            yield self._local(tuple(loops))

    def _local(self, loops: Axes) -> Choice:
        cycles = self._kernel(loops) + self._onward(loops)
        own, filters, passing = self._block(-1, loops), 0, 0
        for number, source in enumerate(self.found.sources):
            count = self._block(number, loops)
            own += count
            if self._is_filter(number):
                filters += count
                continue
            axes = self._axes(number, loops)
            borders = self._halos(number, axes)
            cycles += borders.cycles + self._brought(number, axes)
            passing = max(passing, borders.bytes)
            shape = ir.RankedTensorType(source.value.type).shape
            own += prod(self._parts(shape, axes)) * self.kinds[number].itemsize
        return Choice("windows", loops, cycles, filters, max(own, passing))

    def _is_filter(self, number: int) -> bool:
        return all(
            dim.stride == 1 and len(dim.kernel) + (dim.loop is not None) < 2 for dim in self.found.operands[number]
        )

    def _axes(self, number: int, loops: Axes) -> Axes:
        return tuple("" if dim.loop is None else loops[dim.loop] for dim in self.found.operands[number])

    def _parts(self, shape: list[int], axes: Axes) -> list[int]:
        return [-(-size // (self.side if axis else 1)) for size, axis in zip(shape, axes, strict=True)]

    def _block(self, number: int, loops: Axes) -> int:
        """Bytes of an operand that a core reads or makes."""
        value = self.op.operands[number if number >= 0 else len(self.op.operands) - 1]
        shape = list(ir.RankedTensorType(value.type).shape)
        for at, (dim, axis) in enumerate(zip(self.found.operands[number], self._axes(number, loops), strict=True)):
            if axis:
                shape[at] = part_of(dim, self.found.sizes, self.side)[1]
        return prod(shape) * self.kinds[number].itemsize

    def _kernel(self, loops: Axes) -> float:
        """Cycles of what one core computes, counted as bodies are."""
        sizes = [-(-size // self.side) if axis else size for size, axis in zip(self.found.sizes, loops, strict=True)]
        points = prod(sizes)
        bits, doubles = 8 * self.kinds[0].itemsize, points * (self.kinds[-1] == np.float64)
        if factors_of(self.op) is not None:
            row = self.found.operands[-1][max(0, len(self.found.operands[-1]) - 2)].loop
            calls = points // (1 if row is None else sizes[row])
            return self.machine.kernel_cycles(Cost(points, calls, 0, bits, doubles=2 * doubles))
        steps = prod(size for size, reduces in zip(sizes, kinds(self.op), strict=True) if reduces)
        work = max(self.work, 1)
        return self.machine.kernel_cycles(Cost(0, steps * work, points * work, bits, doubles=doubles * work))

    def _halos(self, number: int, axes: Axes) -> _Spent:
        """What it takes until the borders of a source have come."""
        source = self.found.sources[number]
        shape, spent = list(ir.RankedTensorType(source.value.type).shape), _Spent()
        tile = self._parts(shape, axes)
        for at, dim in enumerate(self.found.operands[number]):
            if axes[at] and dim.loop is not None and self.found.is_widened(number, at):
                step, size = part_of(dim, self.found.sizes, self.side)
                what = Halo(
                    *(tuple(shape), tuple(tile), self.side, self.side, at),
                    *("y" if axes[at] == "y" else "x", tuple(axis or None for axis in axes)),  # type: ignore[arg-type]
                    *(dim.first - source.low[at], step, size, source.fill or 0.0, "ring", self.kinds[number]),
                )
                spent = spent.then(_spent(what, self.machine))
                shape[at], tile[at] = self.side * size, size
        return spent

    def _brought(self, number: int, want: Axes) -> float:
        """Cycles for another layout of what the grid has made: through the edge, and at least those of a collective."""
        have = self.lies[number]
        return 0.0 if have is None or have == want else self._moved(self.found.sources[number].value)

    def _onward(self, loops: Axes) -> float:
        """Cycles for another layout of the result."""
        split = any(loops[loop] for dim, loop in enumerate(self.found.out) if dim in self.whole)
        return self._moved(self.op.results[0]) if split else 0.0

    def _moved(self, value: ir.Value) -> float:
        kind, rate = ir.RankedTensorType(value.type), self.machine.mesh.offchip_bytes_per_cycle
        count = prod(kind.shape) * of_mlir(str(kind.element_type)).itemsize
        return self.machine.overheads.collective + (2 * count / rate if rate else 0.0)

    def as_product(self) -> Iterator[Choice]:
        """Rows of the result along y, channels along x; nothing where the op is no convolution of all channels."""
        found, roles = self.found, roles_of(self.op, self.found)
        if roles is None or not self.fixed(self.op.operands[roles.filter]):
            return
        sizes, side, loops = self.found.sizes, self.side, [""] * len(self.found.sizes)
        loops[roles.rows], loops[roles.columns] = "y", "x"
        channels, n = -(-sizes[roles.summed] // side), -(-sizes[roles.columns] // side)
        m = -(-sizes[roles.rows] // side) * prod(sizes[loop] for loop in roles.others)
        widths = self.kinds[roles.image].itemsize, self.kinds[-1].itemsize
        image = self._image(roles)
        tiles = WindowTiles(m, roles.taps(sizes), n, *widths, (False, False), channels, image)
        made = fastest(tiles, _Multiplied(self.side, self.kinds[0], self.kinds[-1]), self.machine, self.room)
        if made is None:
            return
        parts, cycles = made
        k, bits = tiles.k * channels, 8 * widths[0]
        copies = parts.m + (parts.m > 1) + (tiles.k > parts.k)  # read for all rows, cut, put side by side
        cycles += self.machine.kernel_cycles(Cost(0, tiles.k * copies, m * k * copies, bits))
        cycles += self.machine.kernel_cycles(Cost(0, parts.k - 1, m * n * (parts.k - 1), 8 * widths[1]))
        of_image = roles.axes(found)
        borders = self._halos(roles.image, of_image)
        cycles += borders.cycles + self._brought(roles.image, of_image)
        part = tiles.part(parts)
        own = 2 * (part.m + part.n) * part.k * channels * widths[0] + part.m * part.n * widths[1] + tiles.beside(parts)
        yield Choice("im2col", tuple(loops), cycles, k * n * widths[0], max(own, borders.bytes), parts)

    def _image(self, roles: Roles) -> int:
        """Bytes of what a core reads windows from, with its border."""
        shape = list(ir.RankedTensorType(self.op.operands[roles.image].type).shape)
        dims = self.found.operands[roles.image]
        for at, (dim, axis) in enumerate(zip(dims, roles.axes(self.found), strict=True)):
            if axis:
                whole = dim.loop is None
                shape[at] = -(-shape[at] // self.side) if whole else part_of(dim, self.found.sizes, self.side)[1]
        return prod(shape) * self.kinds[roles.image].itemsize


@dataclass(frozen=True)
class _Multiplied:
    """Makes a product of windows by filters that the host has aligned."""

    side: int
    operand: np.dtype
    result: np.dtype

    def __call__(self, tiles: Tiles) -> Program:
        assert isinstance(tiles, WindowTiles)
        m, k, n = (self.side * size for size in (tiles.m, tiles.k * tiles.channels, tiles.n))
        kinds = self.operand, self.result, self.result
        return shifted_product(Product(m, k, n, self.side, self.side, *kinds, "run", "host"))


@dataclass(frozen=True)
class Roles:
    """What loops and operands of a convolution are, as a product of matrices.

    Attributes:
        image, filter: numbers of the inputs.
        rows: first loop of places in the image; ``others``: more of them.
        columns: channels of the result; ``summed``: those of the image.
        kernel: loops of windows.
    """

    image: int
    filter: int
    rows: int
    others: tuple[int, ...]
    columns: int
    summed: int
    kernel: tuple[int, ...]

    def axes(self, found: Windows) -> tuple[str, ...]:
        """How the image lies: places along y, channels along x."""
        dims = found.operands[self.image]
        along: dict[int | None, str] = {self.rows: "y", self.summed: "x"}
        return tuple(along.get(dim.kernel[0][0] if dim.loop is None and dim.kernel else dim.loop, "") for dim in dims)

    def taps(self, sizes: list[int]) -> int:
        """Places of a window."""
        return prod(sizes[loop] for loop in self.kernel)


def roles_of(op: ir.Operation, found: Windows) -> Roles | None:
    """A convolution of all channels; None of another op, or one with groups, or with a border around its channels."""
    if factors_of(op) is None:
        return None
    for image, other in ((0, 1), (1, 0)):
        image_loops, filter_loops, out = found.loops_of(image), found.loops_of(other), found.out
        columns = [loop for loop in out if loop in filter_loops]
        summed = [at for at, dim in enumerate(found.operands[image]) if dim.loop is None and len(dim.kernel) == 1]
        if any(not _is_whole(found, image, at) for at in summed):
            continue
        channels = [found.operands[image][at].kernel[0][0] for at in summed]
        if len(columns) != 1 or columns[0] in image_loops or len(channels) != 1:
            continue
        places = [loop for loop in out if loop != columns[0]]
        reduced = image_loops - {*places, channels[0]}
        if not places or out[-1] != columns[0] or not {*places} <= image_loops:
            continue
        if filter_loops != {columns[0], channels[0], *reduced} or found.sources[other].fill is not None:
            continue
        if any(len(dim.kernel) + (dim.loop is not None) != 1 or dim.first for dim in found.operands[other]):
            continue
        rows = next((loop for loop in places if found.sizes[loop] > 1), places[0])
        others = tuple(loop for loop in places if loop != rows)
        return Roles(image, other, rows, others, columns[0], channels[0], tuple(sorted(reduced)))
    return None


def _is_whole(found: Windows, number: int, at: int) -> bool:
    """Whether a reduced dimension of an input is read from its first to its last element, without a border."""
    dim, source = found.operands[number][at], found.sources[number]
    ((loop, dilation),) = dim.kernel
    have = ir.RankedTensorType(source.value.type).shape[at]
    return dilation == 1 and not dim.first and not source.low[at] and have == found.sizes[loop]


@dataclass(frozen=True)
class _Spent:
    """What programs one after the other take.

    Attributes:
        bytes: of the fullest core, with what is on its way.
    """

    cycles: float = 0.0
    bytes: int = 0

    def then(self, other: _Spent) -> _Spent:
        """With another one behind."""
        return _Spent(self.cycles + other.cycles, max(self.bytes, other.bytes))


@functools.lru_cache(maxsize=1024)
def _spent(what: Halo, machine: Machine) -> _Spent:
    program = halo(what)
    return _Spent(time_program(program, machine, loads=False).cycles, core_classes(program)[0].peak)

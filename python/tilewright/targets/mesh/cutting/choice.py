# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which algorithm a product takes: the one whose simulated time (tier T1) is the shortest."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from tilewright.plan.mesh.matrix_vector import MatrixVector, matrix_vector
from tilewright.plan.mesh.product import Product, Skew
from tilewright.plan.mesh.reduction_cost import choose as choose_scheme
from tilewright.plan.mesh.shifting.shifted_product import shifted_product
from tilewright.plan.mesh.transposed_product import transposed_product
from tilewright.sim.coremesh.checks.colors import routes_by_color, usable_colors
from tilewright.sim.coremesh.machine import Machine
from tilewright.sim.coremesh.program import Program
from tilewright.targets.mesh.cutting.cuts import Tiles, can_fit, fastest
from tilewright.targets.mesh.cutting.parts import Parts

Algorithm = Literal["gemv", "meshgemm", "gemm_t"]
_ALGORITHMS: tuple[Algorithm, ...] = ("meshgemm", "gemm_t", "gemv")

#: Channels of machines that find ways by headers of packets.
UNLIMITED = 1024
#: Rows that may lie in each line of cores as a whole.
MOST_ROWS = 16


@dataclass(frozen=True)
class Sizes:
    """One product of a batch.

    Attributes:
        m: rows; None: the left operand is a vector.
        transposed: the right operand is [n, k], and would have to be transposed where it is not fixed.
        fixed: whether the left and the right operand are the same in each call.
    """

    m: int | None
    k: int
    n: int
    dtype: np.dtype
    result: np.dtype
    transposed: bool = False
    fixed: tuple[bool, bool] = (False, False)


@dataclass(frozen=True)
class Choice:
    """The algorithm, its parts, and cycles of one product of the batch by each algorithm that was compared."""

    algorithm: Algorithm
    cycles: dict[str, float]
    parts: Parts = Parts()

    def __str__(self) -> str:
        """For a remark."""
        others = [f"{name} {cycles:,.0f}" for name, cycles in self.cycles.items() if name != self.algorithm]
        told = f"{self.algorithm}: {self.cycles[self.algorithm]:,.0f} cycles simulated"
        told = f"{told}; {', '.join(others)}" if others else told
        return f"{told}; {self.parts}" if self.parts.count > 1 else told


@functools.lru_cache(maxsize=256)
def choose(
    sizes: Sizes, side: int, machine: Machine, row_split: bool = True, beside: int = 0, stays: bool = False
) -> Choice:
    """The fastest algorithm, in parts where a core's memory is too small for the whole.

    Args:
        side: cores along each side of the grid.
        row_split: the left operand's rows lie on several cores, so that a product by vectors has to move them through
            the edge; where not, a product of matrices has to.
        beside: bytes of each core that others take; where nothing fits beside them they can wait outside.
        stays: the result has to lie as the left operand does: in a loop it is that of the next iteration. A product by
            vectors turns it to the other axis.
    """
    row_split = row_split or stays
    room = machine.sram_bytes - machine.mesh.code_bytes - beside
    found = {one: _cost(one, sizes, side, machine, room, row_split) for one in _algorithms(sizes, stays)}
    fitting = {one: cost for one, cost in found.items() if cost is not None}
    if not fitting and beside:  # others wait outside
        return choose(sizes, side, machine, row_split, stays=stays)
    if not fitting:  # the program's own error says what it needs
        return Choice(min(found, key=_ALGORITHMS.index), dict.fromkeys(found, float("nan")))
    best = min(fitting, key=lambda one: fitting[one][1])
    return Choice(best, {one: cycles for one, (_, cycles) in fitting.items()}, fitting[best][0])


def _algorithms(sizes: Sizes, stays: bool) -> list[Algorithm]:
    """What could be taken."""
    if sizes.m is None:
        return ["gemv"]
    matrices: list[Algorithm] = ["gemm_t", "meshgemm"] if sizes.transposed else ["meshgemm"]
    return matrices if stays or sizes.m > MOST_ROWS else ["gemv", *matrices]


def _cost(
    algorithm: Algorithm, sizes: Sizes, side: int, machine: Machine, room: int, row_split: bool
) -> tuple[Parts, float] | None:
    """Parts, and cycles with what passes the edge of the grid."""
    by_rows = algorithm == "gemv"
    found = fastest(_tiles(sizes, side, by_rows), _OfTiles(algorithm, sizes, side, machine), machine, room)
    if found is None:
        return None
    parts, cycles = found
    moved, weights = sizes.dtype.itemsize * (sizes.m or 0) * sizes.k, sizes.dtype.itemsize * sizes.k * sizes.n
    if by_rows == row_split:
        cycles += 2 * _edge(moved, machine)
    if sizes.transposed and not sizes.fixed[1] and algorithm != "gemm_t":
        cycles += 2 * _edge(weights, machine)
    if parts.count > 1 and sizes.fixed[1]:
        cycles += _edge(weights, machine)
    return parts, cycles


@dataclass(frozen=True)
class _OfTiles:
    """Makes the program of a part with such tiles."""

    algorithm: Algorithm
    sizes: Sizes
    side: int
    machine: Machine

    def __call__(self, part: Tiles) -> Program:
        by_rows = self.algorithm == "gemv"
        pairs = _pairs(self.sizes, part, _tiles(self.sizes, self.side, by_rows))
        m, k, n = (own if new == old else new * self.side for own, new, old in pairs)
        rows = self.sizes.m and (part.m if by_rows else m)
        return _program(self.algorithm, replace(self.sizes, m=rows, k=k, n=n), self.side, self.machine)


def fits_in_parts(sizes: Sizes, side: int, room: int) -> bool:
    """Whether a product by matrices fits in some number of parts, of which none is timed.

    Args:
        room: bytes of a core.
    """
    return can_fit(_tiles(sizes, side, False), room)


def _tiles(sizes: Sizes, side: int, by_rows: bool) -> Tiles:
    m = sizes.m or 1
    widths = sizes.dtype.itemsize, sizes.result.itemsize
    moves = (not sizes.fixed[0], not sizes.fixed[1])
    return Tiles(m if by_rows else -(-m // side), -(-sizes.k // side), -(-sizes.n // side), *widths, moves)


def _pairs(sizes: Sizes, part: Tiles, whole: Tiles) -> list[tuple[int, int, int]]:
    return [(sizes.m or 1, part.m, whole.m), (sizes.k, part.k, whole.k), (sizes.n, part.n, whole.n)]


def _program(algorithm: Algorithm, sizes: Sizes, side: int, machine: Machine) -> Program:
    if algorithm == "gemv":
        return _vector(sizes, side, machine)
    kinds = sizes.dtype, sizes.result, sizes.result
    assert sizes.m is not None
    if algorithm == "gemm_t":
        return transposed_product(Product(sizes.m, sizes.k, sizes.n, side, side, *kinds))
    left, right = sizes.fixed
    skews: tuple[Skew, Skew] = ("host" if left and right else "run", "host" if right else "run")
    return shifted_product(Product(sizes.m, sizes.k, sizes.n, side, side, *kinds, *skews))


def _vector(sizes: Sizes, side: int, machine: Machine) -> Program:
    wavelets = max(1, -(-(sizes.m or 1) * -(-sizes.n // side) * sizes.result.itemsize // 4))
    channels = usable_colors(machine) if routes_by_color(machine) else UNLIMITED
    scheme = choose_scheme(side, wavelets, machine.mesh.ramp_cycles, channels, everywhere=True)
    kinds = sizes.dtype, sizes.result, sizes.result
    return matrix_vector(MatrixVector((sizes.k, sizes.n), side, side, "y", *kinds, (scheme, scheme), "ring", sizes.m))


def _edge(count: int, machine: Machine) -> float:
    """Cycles for bytes to the edge of the grid, or from there."""
    rate = machine.mesh.offchip_bytes_per_cycle
    return count / rate if rate else float(count)

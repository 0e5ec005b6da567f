# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which algorithm a product takes: the one whose simulated time (tier T1) is the shortest."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tilewright.plan.mesh.matrix_vector import MatrixVector, matrix_vector
from tilewright.plan.mesh.product import Product
from tilewright.plan.mesh.reduction_cost import choose as choose_scheme
from tilewright.plan.mesh.shifted_product import shifted_product
from tilewright.plan.mesh.transposed_product import transposed_product
from tilewright.sim.coremesh.checks.colors import routes_by_color, usable_colors
from tilewright.sim.coremesh.machine import Machine
from tilewright.sim.coremesh.program import Program
from tilewright.sim.coremesh.timing import time_program

Algorithm = Literal["gemv", "meshgemm", "gemm_t"]

#: Channels of machines that find ways by headers of packets.
UNLIMITED = 1024
#: Rows that may be multiplied one by one.
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
    """The algorithm, and cycles of one product of the batch by each that was compared."""

    algorithm: Algorithm
    cycles: dict[str, float]

    def __str__(self) -> str:
        """For a remark."""
        others = [f"{name} {cycles:,.0f}" for name, cycles in self.cycles.items() if name != self.algorithm]
        told = f"{self.algorithm}: {self.cycles[self.algorithm]:,.0f} cycles simulated"
        return f"{told}; {', '.join(others)}" if others else told


@functools.lru_cache(maxsize=256)
def choose(sizes: Sizes, side: int, machine: Machine, row_split: bool = True) -> Choice:
    """The fastest algorithm.

    Args:
        side: cores along each side of the grid.
        row_split: the left operand's rows lie on several cores, so that a product row by row has to move them through
            the edge; where not, a product of matrices has to.
    """
    found: dict[Algorithm, float] = {"gemv": _time(_vector(sizes, side, machine), machine) * (sizes.m or 1)}
    if sizes.m is None:
        return Choice("gemv", dict(found))
    edge = _edge(sizes.m * sizes.k * sizes.dtype.itemsize, machine)
    found["gemv"] += edge * row_split
    turned = 0.0
    if sizes.transposed:
        product = Product(sizes.m, sizes.k, sizes.n, side, side, *_kinds(sizes))
        found["gemm_t"] = _time(transposed_product(product), machine) + edge * (not row_split)
        if not sizes.fixed[1]:
            turned = _edge(sizes.n * sizes.k * sizes.dtype.itemsize, machine)
            found["gemv"] += turned
    skews = ["host" if fixed else "run" for fixed in sizes.fixed]
    product = Product(sizes.m, sizes.k, sizes.n, side, side, *_kinds(sizes), *skews)
    found["meshgemm"] = _time(shifted_product(product), machine) + edge * (not row_split) + turned
    if sizes.m > MOST_ROWS:
        del found["gemv"]
    return Choice(min(found, key=lambda name: found[name]), dict(found))


def _kinds(sizes: Sizes) -> tuple[np.dtype, np.dtype, np.dtype]:
    return sizes.dtype, sizes.result, sizes.result


def _vector(sizes: Sizes, side: int, machine: Machine) -> Program:
    wavelets = max(1, -(-(-(-sizes.n // side) * sizes.result.itemsize) // 4))
    channels = usable_colors(machine) if routes_by_color(machine) else UNLIMITED
    scheme = choose_scheme(side, wavelets, machine.mesh.ramp_cycles, channels, everywhere=True)
    what = MatrixVector((sizes.k, sizes.n), side, side, "y", *_kinds(sizes), (scheme, scheme), "ring")
    return matrix_vector(what)


def _time(program: Program, machine: Machine) -> float:
    return time_program(program, machine, loads=False).cycles


def _edge(count: int, machine: Machine) -> float:
    """Cycles for bytes to the edge of the grid and back."""
    rate = machine.mesh.offchip_bytes_per_cycle
    return 2 * count / rate if rate else float(count)

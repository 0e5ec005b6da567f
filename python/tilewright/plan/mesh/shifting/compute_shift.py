# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compute-shift products as T10 plans them, for machines whose cores are all equally far from each other.

A plan cuts the loops of a product *spatially*, one part per core, and what several cores need of an operand
*temporally*: each of a group keeps one part, and parts rotate through the group, while all multiply. A temporal factor
of 1 keeps whole copies and moves nothing; that of all cores that share an operand keeps nothing twice, and moves it
past everyone. Between them, memory is traded for communication ("Scaling Deep Learning Computation over the Inter-Core
Connected Intelligence Processor with T10", SOSP 2024: rTensor).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import lcm
from typing import Any

import numpy as np

from tilewright.core.errors import UserError
from tilewright.plan.mesh.product import Accumulator, Product
from tilewright.plan.mesh.shifting.rotation import Rotation, slots
from tilewright.plan.mesh.shifting.shifted_product import compute_shift
from tilewright.plan.mesh.terms import X, Y
from tilewright.plan.mesh.writer import Axis, Writer
from tilewright.sim.coremesh.program import Program


@dataclass(frozen=True)
class Plan:
    """A plan of ``[m, k] @ [k, n]``.

    Attributes:
        spatial: parts of the rows of A and of the columns of B; so many rows and columns of cores.
        temporal: parts of A that rotate through as many neighbours of a row, which divide the row; of B alike, of a
            column.
        pieces: how finely the rotating parts are cut: the rotating pace is k over the pieces of all parts, and memory
            for what arrives is one piece.
    """

    spatial: tuple[int, int]
    temporal: tuple[int, int] = (1, 1)
    pieces: int = 1

    def __post_init__(self) -> None:
        rows, columns = self.spatial
        for name, cores, factor in (("A", columns, self.temporal[0]), ("B", rows, self.temporal[1])):
            if factor < 1 or cores % factor:
                raise UserError(
                    f"{cores} cores share each part of {name}; its temporal factor {factor} does not divide them. Take "
                    f"one of {[one for one in range(1, cores + 1) if cores % one == 0]}."
                )
        if self.pieces < 1:
            raise UserError(f"A part cannot be cut into {self.pieces} pieces.")

    @property
    def blocks(self) -> int:
        """Pieces of the summed dimension, and rounds."""
        return self.pieces * lcm(*self.temporal)


def compute_shift_product(m: int, k: int, n: int, plan: Plan, dtype: Any = np.float32) -> Program:
    """A program of inputs ``A`` [m, k] and ``B`` [k, n] and output ``C`` [m, n], in plain blocks as cores stand.

    The host puts parts where they are needed first. Groups of cores along a row (column) are rings of their own.
    """
    rows, columns = plan.spatial
    writer = Writer("compute_shift", rows, columns)
    total = Accumulator(writer, Product(m, k, n, rows, columns, dtype), "linear")
    depth = -(-k // plan.blocks)
    held_a, held_b = (plan.blocks // factor for factor in plan.temporal)
    first = X % plan.temporal[0] * held_a + Y % plan.temporal[1] * held_b
    left = _operand(writer, "A", "x", plan.temporal[0], (-(-m // rows), depth), held_a, np.dtype(dtype))
    right = _operand(writer, "B", "y", plan.temporal[1], (depth, -(-n // columns)), held_b, np.dtype(dtype))
    for place in range(held_a):
        writer.input("A", (m, k), left.at(place), (Y, (first + place) % plan.blocks), "linear")
    for place in range(held_b):
        writer.input("B", (k, n), right.at(place), ((first + place) % plan.blocks, X), "linear")
    compute_shift(writer, total, left, right, plan.blocks, home=False)
    total.finish()
    return writer.program()


def _operand(
    writer: Writer, name: str, axis: Axis, length: int, shape: tuple[int, int], held: int, dtype: np.dtype
) -> Rotation:
    buffer = writer.buffer(name, shape, dtype, slots(length, held))
    return Rotation(buffer, axis, "linear", length, held)

# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""MeshGEMV: a vector times matrices, each a local product and an allreduce; axes alternate.

The vector is cut along one axis and replicated along the other, so that all cores work. A product reduces along the
axis its input is cut on and leaves the result cut on the other one, replicated along the first; the next matrix lies
the other way round. So nothing is ever transposed (WaferLLM, OSDI 2025, sections 4.2 and 6).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.core.errors import UserError
from tilewright.plan.mesh.allreduce import allreduce
from tilewright.plan.mesh.kernels import Store, VecMat
from tilewright.plan.mesh.product import ALL
from tilewright.plan.mesh.reduction import Line, Scheme
from tilewright.plan.mesh.terms import Term, X, Y, term
from tilewright.plan.mesh.writer import Axis, Writer, slot
from tilewright.sim.coremesh.program import Order, Program, Slot


@dataclass(frozen=True)
class MatrixVector:
    """Products of a vector [sizes[0]] with matrices [sizes[i], sizes[i + 1]], one after the other.

    Attributes:
        axis: along which the vector is cut at first.
        dtype: of vectors and matrices in memory; ``accumulator``: of sums, also of those that travel; ``result``: of
            the last vector (default: of the others).
        schemes: of the allreduces along y and along x.
        order: how parts of vectors and matrices count cores.
        rows: vectors that are multiplied at once, as rows of ``x`` and ``y``; None: one, which is no row.
    """

    sizes: tuple[int, ...]
    height: int
    width: int
    axis: Axis = "y"
    dtype: Any = np.float32
    accumulator: Any = None
    result: Any = None
    schemes: tuple[Scheme, Scheme] = (Scheme(), Scheme())
    order: Order = "linear"
    rows: int | None = None

    def __post_init__(self) -> None:
        if len(self.sizes) < 2 or min(self.sizes) < 1:
            raise UserError(f"A vector and a matrix need two sizes of at least 1; there are {list(self.sizes)}.")
        if self.rows is not None and self.rows < 1:
            raise UserError(f"Vectors as rows are one at least; there are {self.rows}.")
        if any(scheme.kind == "ring" for scheme in self.schemes):
            raise UserError("Vectors of a GEMV are too short to be cut: take a chain, a tree or a K-tree, not a ring.")


def matrix_vector(what: MatrixVector) -> Program:
    """A program of inputs ``x`` [sizes[0]] and ``W1``, ``W2``, ...; output ``y`` [sizes[-1]] on all cores.

    Vectors as rows have a dimension for that before: each core multiplies its part of all, and one allreduce adds up.
    """
    writer = Writer("meshgemv", what.height, what.width)
    sides = {"y": what.height, "x": what.width}
    axis, size = what.axis, what.sizes[0]
    rows = () if what.rows is None else (what.rows,)
    whole = tuple(term(0) for _ in rows)
    vector = slot(writer.buffer("x", (*rows, -(-size // sides[axis])), what.dtype))
    writer.input("x", (*rows, size), vector, (*whole, _place(axis)), what.order)
    accumulator = np.dtype(what.accumulator or what.dtype)
    for number, result in enumerate(what.sizes[1:], 1):
        across: Axis = "x" if axis == "y" else "y"
        shape = (-(-size // sides[axis]), -(-result // sides[across]))
        matrix = slot(writer.buffer(f"W{number}", shape, what.dtype))
        writer.input(f"W{number}", (size, result), matrix, (_place(axis), _place(across)), what.order)
        total = slot(writer.buffer(f"sum{number}", (*rows, shape[1]), accumulator))
        writer.compute(ALL, VecMat(accumulator), (vector, matrix), (total,))
        allreduce([Line(writer, axis, total)], [what.schemes[0 if axis == "y" else 1]])
        last = number == len(what.sizes) - 1
        kind = np.dtype(what.result if last and what.result is not None else what.dtype)
        vector = total if kind == accumulator else _rounded(writer, kind, total)
        axis, size = across, result
    writer.output("y", (*rows, size), vector, (*whole, _place(axis)), what.order)
    return writer.program()


def _rounded(writer: Writer, kind: np.dtype, total: Slot) -> Slot:
    shape, _ = writer.tile(total.buffer)
    home = slot(writer.buffer("x", shape, kind))
    writer.compute(ALL, Store(kind), (total,), (home,))
    return home


def _place(axis: Axis) -> Term:
    return Y if axis == "y" else X

# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Determinants, by elimination with partial pivoting."""

from __future__ import annotations

from tilewright.frontend.builder.dims import Size, same
from tilewright.frontend.builder.dtypes import promoted
from tilewright.frontend.builder.scalars import Scalar
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.registry import Builder, Node, op


class Elimination:
    """What programs on one matrix of a batch, in place, have in common: elements, and the choice of a pivot."""

    def __init__(self, b: Builder, batch: Scalar, size: Size) -> None:
        self.b, self.batch, self.size = b, batch, size

    def at(self, work: Tensor, row: Scalar, column: Scalar) -> Scalar:
        """One element."""
        return self.b.at(work, [self.batch, row, column])

    def pivot(self, work: Tensor, column: Scalar) -> Scalar:
        """The row of the largest element at or below the diagonal."""

        def larger(row: Scalar, best: Scalar, value: Scalar) -> list[Scalar]:
            m, candidate = self.b.math, self.b.math.absolute(self.at(work, row, column))
            better = candidate > value
            return [m.where(better, row, best), m.where(better, candidate, value)]

        start = self.b.math.absolute(self.at(work, column, column))
        return self.b.for_(column + self.b.idx(1), self.size, [column, start], larger)[0]


class _Triangle(Elimination):
    """Elimination below the diagonal."""

    def exchange(self, work: Tensor, row: Scalar, other: Scalar) -> Tensor:
        """Two rows."""

        def swap(column: Scalar, work: Tensor) -> list[Tensor]:
            values = self.at(work, row, column), self.at(work, other, column)
            work = self.b.put(values[1], work, [self.batch, row, column])
            return [self.b.put(values[0], work, [self.batch, other, column])]

        return self.b.for_(row, self.size, [work], swap)[0]

    def clear(self, work: Tensor, column: Scalar) -> Tensor:
        """Zeros below the diagonal (not written: nothing reads them)."""
        b, m = self.b, self.b.math
        after = column + b.idx(1)
        pivot = self.at(work, column, column)

        def row_step(row: Scalar, work: Tensor) -> list[Tensor]:
            value = self.at(work, row, column)
            factor = m.where(m.eq(pivot, 0.0), 0.0, value / pivot)

            def subtract(place: Scalar, work: Tensor) -> list[Tensor]:
                difference = self.at(work, row, place) - factor * self.at(work, column, place)
                return [b.put(difference, work, [self.batch, row, place])]

            return b.for_(after, self.size, [work], subtract)

        return b.for_(after, self.size, [work], row_step)[0]

    def run(self, work: Tensor, one: Scalar) -> list:
        """The worked-on batch and the determinant."""
        b, m = self.b, self.b.math

        def step(column: Scalar, work: Tensor, total: Scalar) -> list:
            row = self.pivot(work, column)
            work = self.exchange(work, column, row)
            value = self.at(work, column, column)
            signed = m.where(m.eq(row, column), value, -value)
            return [self.clear(work, column), total * signed]

        return b.for_(0, self.size, [work, one], step)


@op("Det", since=11)
def determinant(b: Builder, node: Node, x: Tensor) -> Tensor:
    """Of every matrix in the last two dimensions."""
    if x.rank < 2 or (isinstance(x.shape[-1], int) and not same(x.shape[-1], x.shape[-2])):
        node.wrong(f"the last two dimensions of {list(x.shape)} differ; a determinant needs square matrices")
    lead, size, dtype = x.shape[:-2], x.shape[-1], promoted(x.dtype)
    count: Size = 1
    for n in lead:
        count = count * n
    work = b.array(b.reshape(b.cast(x, dtype), (count, size, size)))

    def each(batch: Scalar, work: Tensor, results: Tensor) -> list[Tensor]:
        work, value = _Triangle(b, batch, size).run(work, b.math.scalar(1.0, dtype))
        return [work, b.put(value, results, [batch])]

    _, results = b.for_(0, count, [work, b.blank([count], dtype)], each)
    return b.cast(b.reshape(results, lead), x.dtype)

# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Inverse of matrices, by Gauss-Jordan elimination with partial pivoting."""

from __future__ import annotations

from math import prod

from tilewright.frontend.builder.dims import Size, same
from tilewright.frontend.builder.scalars import Scalar
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.ops.common.precision import widened
from tilewright.frontend.onnx.ops.contrib.domain import DOMAIN
from tilewright.frontend.onnx.ops.math.linear_algebra import Elimination
from tilewright.frontend.onnx.registry import Builder, Node, op


class _Inversion(Elimination):
    """A program on one matrix of a batch and the identity on its right, in place."""

    def put(self, value: Scalar, work: Tensor, row: Scalar, column: Scalar) -> Tensor:
        """One element replaced."""
        return self.b.put(value, work, [self.batch, row, column])

    def lift(self, work: Tensor, row: Scalar, other: Scalar) -> Tensor:
        """Two rows exchanged; the one that comes to `row` divided by its element there."""
        factor = 1.0 / self.at(work, other, row)

        def move(column: Scalar, work: Tensor) -> list[Tensor]:
            own, lifted = self.at(work, row, column), self.at(work, other, column)
            work = self.put(own, work, other, column)
            return [self.put(lifted * factor, work, row, column)]

        return self.b.for_(0, self.size * 2, [work], move)[0]

    def clear(self, work: Tensor, column: Scalar) -> Tensor:
        """Zeros in all other rows of a column."""

        def row_step(row: Scalar, work: Tensor) -> list[Tensor]:
            m = self.b.math
            factor = m.where(m.eq(row, column), 0.0, self.at(work, row, column))

            def subtract(place: Scalar, work: Tensor) -> list[Tensor]:
                difference = self.at(work, row, place) - factor * self.at(work, column, place)
                return [self.put(difference, work, row, place)]

            return self.b.for_(0, self.size * 2, [work], subtract)

        return self.b.for_(0, self.size, [work], row_step)[0]

    def run(self, work: Tensor) -> Tensor:
        """The worked-on batch."""

        def step(column: Scalar, work: Tensor) -> list[Tensor]:
            return [self.clear(self.lift(work, column, self.pivot(work, column)), column)]

        return self.b.for_(0, self.size, [work], step)[0]


@op("Inverse", domain=DOMAIN)
@widened
def inverse(b: Builder, node: Node, x: Tensor) -> Tensor:
    """Of every matrix in the last two dimensions."""
    if x.rank < 2 or (isinstance(x.shape[-1], int) and not same(x.shape[-1], x.shape[-2])):
        node.wrong(f"the last two dimensions of {list(x.shape)} differ; an inverse needs square matrices")
    lead, size = x.shape[:-2], x.shape[-1]
    count: Size = prod(lead)
    flat = b.reshape(x, (count, size, size))
    row, column = b.positions(size).unsqueeze([1]), b.positions(size)
    one = b.elementwise(lambda m, i, j: m.cast(m.eq(i, j), x.dtype), row, column, dtype=x.dtype)
    unit = b.broadcast(one.unsqueeze([0]), (count, size, size))
    work = b.array(b.concat([flat, unit], 2))

    def each(batch: Scalar, work: Tensor) -> list[Tensor]:
        return [_Inversion(b, batch, size).run(work)]

    (work,) = b.for_(0, count, [work], each)
    return b.reshape(b.slice(work, [0, 0, size], [count, size, size], [1, 1, 1]), x.shape)

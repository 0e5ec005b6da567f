# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products in parts, for cores that cannot hold the tiles of a whole one: every core cuts the blocks that it has.

Of a dimension of n elements in blocks of B a part has the same b elements of each block, so that no part of an operand
or a result ever moves: results of parts are joined, or added, by each core alone. Weights are cut outside, and come in
part by part.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.core.errors import UserError
from tilewright.mlir import ir

#: On a product: number of parts along its rows, the summed dimension, its columns.
PARTS = "coremesh.parts"

#: Where a part begins in each block, and how many elements it has there; None: all.
Span = tuple[int, int] | None


@dataclass(frozen=True)
class Parts:
    """Numbers of parts along rows, the summed dimension, and columns."""

    m: int = 1
    k: int = 1
    n: int = 1

    @property
    def count(self) -> int:
        """Products that one becomes."""
        return self.m * self.k * self.n

    def __str__(self) -> str:
        """For a remark; empty where nothing is cut."""
        named = [f"{count} along {name}" for name, count in (("m", self.m), ("k", self.k), ("n", self.n)) if count > 1]
        return f"parts: {', '.join(named)}" if named else ""

    @staticmethod
    def of(op: ir.Operation) -> Parts:
        """What an op says; one part where it says nothing.

        Raises:
            UserError: it says no three numbers.
        """
        if PARTS not in op.attributes:
            return Parts()
        given = op.attributes[PARTS]
        numbers = list(given) if isinstance(given, ir.DenseI64ArrayAttr) else []
        if len(numbers) != 3:
            raise UserError(f"{PARTS} is {given}: write array<i64: m, k, n>, the number of parts along each")
        return Parts(*numbers)

    def attribute(self) -> ir.Attribute:
        """As an op says it."""
        return ir.DenseI64ArrayAttr.get([self.m, self.k, self.n])


def spans(size: int, side: int, count: int) -> list[Span]:
    """The parts of a dimension in blocks of ceil(size / side): as even as can be.

    Raises:
        UserError: there are no so many elements in a block.
    """
    block = -(-size // side)
    if not 1 <= count <= block:
        raise UserError(
            f"{PARTS} asks for {count} parts of a dimension of {size}: {side} cores have {block} elements each, "
            f"so that 1 to {block} parts are possible"
        )
    if count == 1:
        return [None]
    starts = [block * number // count for number in range(count + 1)]
    return [(one, other - one) for one, other in zip(starts, starts[1:], strict=False)]


def length(size: int, side: int, span: Span) -> int:
    """Elements of a part, padding included."""
    return size if span is None else side * span[1]

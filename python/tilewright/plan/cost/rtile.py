# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The rTile: a tile of all loops of an expression, and what follows from it (Roller, section 3.1).

From the shape alone follow the data tiles of the operands, the bytes that they occupy (`footprint`), the bytes that the
whole operator moves with tiles of this shape (`traffic`, in transactions: cache lines, or what a memory moves at
once) and the arithmetic of a tile (`flops`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, prod

from tilewright.plan.cost.expression import Expression, Operand


def data_tile(operand: Operand, shape: Sequence[int]) -> tuple[int, ...]:
    """Sizes of the part of an operand that a tile of the loops touches.

    Along a dimension these are the interval of its index expression, or fewer lines where a dilated window leaves some
    out; along the last one what lies between shares cache lines.
    """
    key = tuple(shape)
    if (found := operand.parts.get(key)) is None:
        walkers = enumerate(operand.walkers)
        spans = [_span(operand, at, shape) if loop is None else shape[loop] for at, loop in walkers]
        found = operand.parts[key] = tuple(map(min, operand.shape, spans))
    return found


def _span(operand: Operand, dim: int, shape: Sequence[int]) -> int:
    """What a tile of the loops touches along a dimension that more than one loop walks, or one in steps."""
    terms = operand.index[dim]
    if terms is None:
        return operand.shape[dim]
    span = 1 + sum(abs(c) * (shape[d] - 1) for d, c in terms)
    return span if dim + 1 == len(operand.shape) else min(span, prod(shape[d] for d, _ in terms))


def runs(sizes: Sequence[int], shape: Sequence[int]) -> tuple[int, int]:
    """Number and length (elements) of the contiguous runs of a box within a row-major tensor."""
    length, at = 1, len(sizes)
    while at > 0:
        at -= 1
        length *= sizes[at]
        if sizes[at] < shape[at]:
            break
    return prod(sizes[:at]), length


def tile_bytes(operand: Operand, sizes: Sequence[int], transaction: int) -> int:
    """Bytes that move when a part of an operand of some sizes is loaded."""
    if operand.fixed:
        return ceil(prod(sizes) * operand.bytes / transaction) * transaction
    count, length = runs(sizes, operand.shape)
    return count * ceil(length * operand.bytes / transaction) * transaction


@dataclass(frozen=True)
class RTile:
    """One tile of an expression.

    Attributes:
        expression: what is computed.
        shape: size per loop, parallel and reduced alike.
        padding: elements added to the innermost dimension of each input's data tile where it is stored.
    """

    expression: Expression
    shape: tuple[int, ...]
    padding: tuple[int, ...] = ()

    def with_size(self, loop: int, size: int) -> RTile:
        """The tile with another size along one loop."""
        return RTile(self.expression, (*self.shape[:loop], size, *self.shape[loop + 1 :]), self.padding)

    @cached_property
    def input_tiles(self) -> tuple[tuple[int, ...], ...]:
        """Sizes of the part of each input."""
        return tuple(data_tile(o, self.shape) for o in self.expression.inputs)

    @cached_property
    def output_tiles(self) -> tuple[tuple[int, ...], ...]:
        """Sizes of the part of each output."""
        return tuple(data_tile(o, self.shape) for o in self.expression.outputs)

    @property
    def footprint(self) -> int:
        """Bytes that the data tiles occupy, storage padding included."""
        key, known = ("footprint", self.shape, self.padding), self.expression.known
        if (found := known.get(key)) is None:
            outputs = zip(self.expression.outputs, self.output_tiles, strict=True)
            stored = sum(prod(sizes) * operand.bytes for operand, sizes in outputs)
            found = known[key] = self.input_footprint + stored
        return found

    @cached_property
    def input_footprint(self) -> int:
        """Bytes of the input data tiles: what is staged where outputs stay in registers."""
        total = 0
        padding = self.padding or (0,) * len(self.expression.inputs)
        for operand, sizes, pad in zip(self.expression.inputs, self.input_tiles, padding, strict=True):
            inner = sizes[-1] + pad if sizes else 1
            total += prod(sizes[:-1]) * inner * operand.bytes
        return total

    @cached_property
    def grid(self) -> int:
        """Tiles that cover the parallel loops."""
        return prod(ceil(self.expression.extents[d] / self.shape[d]) for d in self.expression.parallel)

    @cached_property
    def steps(self) -> int:
        """Tiles that cover the reduced loops."""
        return prod(ceil(self.expression.extents[d] / self.shape[d]) for d in self.expression.reductions)

    def load(self, transaction: int = 1) -> int:
        """Bytes that one tile loads."""
        pairs = zip(self.expression.inputs, self.input_tiles, strict=True)
        return sum(tile_bytes(operand, sizes, transaction) for operand, sizes in pairs)

    def store(self, transaction: int = 1) -> int:
        """Bytes that one tile stores when its reduction is done."""
        pairs = zip(self.expression.outputs, self.output_tiles, strict=True)
        return sum(tile_bytes(operand, sizes, transaction) for operand, sizes in pairs)

    def traffic(self, transaction: int = 1) -> int:
        """Bytes that the whole operator moves if each tile loads what it needs anew: Q in the paper."""
        key, known = ("traffic", self.shape, transaction), self.expression.known
        if (found := known.get(key)) is None:
            found = known[key] = self.grid * (self.steps * self.load(transaction) + self.store(transaction))
        return found

    @cached_property
    def flops(self) -> float:
        """Arithmetic of one tile."""
        expression = self.expression
        return prod(self.shape) * (2 * expression.macs + expression.work)

    @cached_property
    def waste(self) -> tuple[float, ...]:
        """Per loop the share of its extent that is computed in vain: (S - N mod S) / N, 0 where S divides N."""
        pairs = zip(self.shape, self.expression.extents, strict=True)
        return tuple(padding_waste(extent, size) for size, extent in pairs)


def padding_waste(extent: int, size: int) -> float:
    """What tiles of `size` add to an axis, relative to it: (S - N mod S) / N, 0 where S divides N (section 3.2)."""
    rest = extent % size
    return (size - rest) / extent if rest else 0.0

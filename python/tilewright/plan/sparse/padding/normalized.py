# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Numbers that are made of the sum of a vector's squares: by the root of their mean a normalization divides.

What divides need not be known as LayerNorm's or RMSNorm's: it is followed from a sum of squares on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from tilewright.ir.generics import body, constant_of, kinds, maker, maps
from tilewright.mlir import ir

#: What is added to a mean of squares, at least: squares that are too small for f32 do not count then.
_LEAST = 1e-30
#: Elementwise operations between a sum of squares and what divides, at most.
_FAR = 16
#: Elements of a vector, at most: the sum of more squares may lose more than bounds allow for.
_MOST = 1 << 16
#: Squares that f32 holds as zero add up to no more than this.
_LOST = _MOST * 2.0**-126


@dataclass(frozen=True)
class Squares:
    """A number that is no less than ``(share * sum of squares) ** power``; of a negative power, no more.

    Attributes:
        source: the tensor whose elements are squared.
        dim: its dimension along which they are added up; the number has the others.
        share: of the sum.
        power: 1 of a sum, 0.5 of its root, -0.5 of one over that.
        apart: what was added under the root, at least, so that it is not zero; 0 where that may be lost in f32.
    """

    source: ir.Value
    dim: int
    share: float
    power: float = 1.0
    apart: float = 0.0

    @property
    def most(self) -> float:
        """How long the vector is, at most, divided by the root; infinite where that may be zero."""
        if self.apart < _LEAST or self.share <= 0 or abs(self.power) != 0.5:
            return math.inf
        return max(1 / math.sqrt(self.share), math.sqrt(_LOST / self.apart))


def squares_of(value: ir.Value, far: int = _FAR) -> Squares | None:
    """What a tensor of numbers has to do with a sum of squares; None where it has not, or may be less.

    `far`: how many elementwise operations are looked through.
    """
    op = maker(value)
    if op is None or op.name != "linalg.generic" or len(op.results) != 1:
        return None
    if any(kinds(op)):
        return _sum(op)
    if not far or len(op.operands) != 2 or not all(one == maps(op)[-1] and one.is_permutation for one in maps(op)):
        return None
    found = squares_of(op.operands[0], far - 1)
    if found is None:
        return None
    block = body(op)
    held: dict[ir.Value, Squares | None] = {block.arguments[0]: found}
    for one in block.operations:
        operation = one.operation
        if operation.name == "linalg.yield":
            return held.get(operation.operands[0])
        held[operation.results[0]] = follow(operation, held)
    return None


def _sum(op: ir.Operation) -> Squares | None:
    """The sum of the squares of a tensor along one dimension, or of what is a tensor's squares."""
    block, reduced = body(op), [loop for loop, reduces in enumerate(kinds(op)) if reduces]
    start = maker(op.operands[len(op.operands) - 1])
    if len(op.operands) != 2 or len(reduced) != 1 or start is None or start.name != "linalg.fill":
        return None
    first, last = constant_of(start.operands[0]), maker(block.operations[len(block.operations) - 1].operands[0])
    if first is None or first < 0 or last is None or last.name != "arith.addf":
        return None
    added = next((value for value in last.operands if value != block.arguments[1]), None)
    if block.arguments[1] not in last.operands or added is None:
        return None
    source = op.operands[0] if _is_square(added, block.arguments[0]) else None
    if source is None and added == block.arguments[0]:
        source = _squared(op.operands[0])
    return None if source is None else _along(op, source, reduced[0])


def _along(op: ir.Operation, source: ir.Value, loop: int) -> Squares | None:
    read, written = (list(one.results) for one in maps(op))
    if not all(isinstance(expr, ir.AffineDimExpr) for expr in read):
        return None
    dim = next((d for d, expr in enumerate(read) if ir.AffineDimExpr(expr).position == loop), None)
    if dim is None or read[:dim] + read[dim + 1 :] != written:
        return None
    kind = ir.RankedTensorType(source.type)
    wide = isinstance(kind.element_type, ir.F32Type | ir.F64Type)
    return Squares(source, dim, 1.0) if wide and 0 < kind.shape[dim] <= _MOST else None


def _squared(value: ir.Value) -> ir.Value | None:
    """The tensor of which another one is the squares."""
    op = maker(value)
    if op is None or op.name != "linalg.generic" or len(op.operands) != 2 or any(kinds(op)):
        return None
    if not all(one == maps(op)[-1] and one.is_permutation for one in maps(op)):
        return None
    block = body(op)
    return (
        op.operands[0]
        if _is_square(block.operations[len(block.operations) - 1].operands[0], block.arguments[0])
        else None
    )


def _is_square(value: ir.Value, of: ir.Value) -> bool:
    made = maker(value)
    return made is not None and made.name == "arith.mulf" and all(operand == of for operand in made.operands)


def follow(op: ir.Operation, held: dict[ir.Value, Squares | None]) -> Squares | None:
    """What a step of a body makes of such a number, from what is known of others in the body."""
    numbers = [constant_of(operand) for operand in op.operands]
    found = next((held[operand] for operand in op.operands if held.get(operand) is not None), None)
    if found is None:
        return None
    if op.name in ("math.sqrt", "math.rsqrt"):
        root = 0.5 if op.name == "math.sqrt" else -0.5
        return replace(found, power=root) if found.power == 1 else None
    number = next((number for number in numbers if number is not None), None)
    if number is None or len(numbers) != 2:
        return None
    return _with_number(op.name, found, number, first=numbers[0] is not None)


def _with_number(name: str, found: Squares, number: float, first: bool) -> Squares | None:
    """A sum or a root, and a constant."""
    if name == "arith.divf" and first:
        return replace(found, power=-0.5) if number == 1 and found.power == 0.5 else None
    if found.power < 0 or number <= 0:
        return None
    if name == "arith.addf":
        return replace(found, apart=found.apart + (number if found.power == 1 else 0.0))
    if name in ("arith.mulf", "arith.divf"):
        factor = (number if name == "arith.mulf" else 1 / number) ** (1 / found.power)
        apart = found.apart * factor
        return replace(found, share=found.share * factor, apart=apart if apart >= _LEAST else 0.0)
    return found if name in ("arith.maximumf", "arith.maxnumf") else None

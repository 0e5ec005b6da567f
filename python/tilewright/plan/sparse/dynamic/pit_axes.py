# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PIT-axes: loops of a `linalg.generic` whose indices may be visited in any order, and skipped where a zero absorbs.

An axis is one (PIT, SOSP 2023, section 3) where any permutation of its indices, applied to all operands that carry it,
permutes the result along a parallel loop and leaves it as it is along a reduction. Sums of floats count as commutative
and associative: another order rounds otherwise, within the bounds of any order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewright.ir.generics import body, kinds, loops_of, maps
from tilewright.mlir import ir
from tilewright.normalize.sparsity.known import Known, evaluate
from tilewright.reference.types import dtype_of

_SUMS = "sum"
#: Operations that combine an accumulator with a term in any order, and which of them go together.
_COMBINERS = {
    **dict.fromkeys(("arith.addf", "arith.subf", "math.fma"), _SUMS),
    **dict.fromkeys(("arith.addi", "arith.subi"), "integer sum"),
    **{
        name: name
        for name in (
            "arith.mulf arith.muli arith.maximumf arith.minimumf arith.maxnumf arith.minnumf arith.maxsi arith.minsi "
            "arith.maxui arith.minui arith.andi arith.ori arith.xori"
        ).split()
    },
}
#: Where the accumulator must stand in those that are not symmetric: x - term, and a * b + x.
_PLACES = {"arith.subf": 0, "arith.subi": 0, "math.fma": 2}


@dataclass(frozen=True)
class PitAxis:
    """A loop of which the indices may be permuted.

    Attributes:
        loop: its number.
        reduces: whether results are combined over it.
        dims: for each operand, outputs included, the dimensions that it is the index of; mostly one or none.
    """

    loop: int
    reduces: bool
    dims: tuple[tuple[int, ...], ...]


def pit_axes(op: ir.Operation) -> list[PitAxis]:
    """The PIT-axes of a `linalg.generic`, by its maps, iterator types and body.

    A loop is one if every map uses it as a bare index only, the body does not ask for its index, and it is parallel
    (then each result carries it) or all results are combined over it by operations that commute and associate.
    """
    asked = _asked(body(op))
    outputs = maps(op)[len(op.operands) - len(op.results) :]
    combined = all(_combines(op, at) for at in range(len(op.results)))
    found = []
    for loop, reduces in enumerate(kinds(op)):
        dims = _bare_dims(op, loop)
        if dims is None or loop in asked:
            continue
        if combined if reduces else all(dims[len(dims) - len(outputs) :]):
            found.append(PitAxis(loop, reduces, dims))
    return found


def sparse_axes(op: ir.Operation, operand: int) -> list[PitAxis]:
    """The PIT-axes along which slices of an input may be left out where they are zero.

    None unless a zero of that input leaves the accumulators as they are: its slices add nothing then to a reduction,
    and the results that a slice of a parallel loop makes are what the outputs held.

    Args:
        op: a `linalg.generic`.
        operand: number of an input.
    """
    if not annihilates(op, operand):
        return []
    return [axis for axis in pit_axes(op) if axis.dims[operand]]


def annihilates(op: ir.Operation, operand: int) -> bool:
    """Whether each body that reads zero from an input yields its accumulators as they came (0 * inf taken for 0)."""
    arguments = list(body(op).arguments)
    inputs = len(op.operands) - len(op.results)
    if operand >= inputs:
        return False
    knowns = [_argument(argument.type, at == operand, at >= inputs) for at, argument in enumerate(arguments)]
    if any(one is None for one in knowns):
        return False
    return all(bool(one.kept[0]) for one in evaluate(body(op), [k for k in knowns if k], {}, 1)) and len(op.results) > 0


def _argument(kind: ir.Type, zero: bool, held: bool) -> Known | None:
    try:
        dtype = dtype_of(kind)
    except (KeyError, TypeError, ValueError, NotImplementedError):
        return None
    if zero:
        return Known.all(np.zeros(1, dtype))
    return Known(np.ones(1, dtype), np.zeros(1, bool), np.full(1, held))


def _bare_dims(op: ir.Operation, loop: int) -> tuple[tuple[int, ...], ...] | None:
    """For each operand where a loop is the index alone; None where it is part of an expression."""
    result = []
    for access in maps(op):
        uses = [at for at, expr in enumerate(access.results) if loop in loops_of(expr)]
        if not all(isinstance(access.results[at], ir.AffineDimExpr) for at in uses):
            return None
        result.append(tuple(uses))
    return tuple(result)


def _asked(block: ir.Block) -> set[int]:
    """The loops whose index the body reads, in its regions too."""
    found: set[int] = set()

    def visit(inner: ir.Operation) -> ir.WalkResult:
        if inner.name == "linalg.index":
            found.add(ir.IntegerAttr(inner.attributes["dim"]).value)
        return ir.WalkResult.ADVANCE

    for op in block.operations:
        op.operation.walk(visit)
    return found


def _combines(op: ir.Operation, result: int) -> bool:
    """Whether a result is its accumulator, combined with terms by operations of one kind."""
    block = body(op)
    *_, end = block.operations
    yielded = end.operation.operands[result]
    value: ir.Value = block.arguments[len(op.operands) - len(op.results) + result]
    family = None
    while value != yielded:
        uses = list(value.uses)
        if len(uses) != 1:
            return False
        user, at = uses[0].owner.operation, uses[0].operand_number
        kind = _COMBINERS.get(user.name)
        if kind is None or family not in (None, kind) or at != _PLACES.get(user.name, at):
            return False
        family, value = kind, user.results[0]
    return family is not None and len(list(value.uses)) == 1

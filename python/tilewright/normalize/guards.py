# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Zeros instead of what is no number: exporters write them behind a softmax whose mask may hide whole rows."""

from __future__ import annotations

from math import inf

from tilewright.ir.generics import body, constant_of, create, create_number, kinds, maker, maps
from tilewright.mlir import ir

#: Predicates of arith.cmpf: x != x or unordered; not below.
_NOT_EQUAL, _UNORDERED, _NOT_BELOW = 13, 14, 10


def without_guard(value: ir.Value) -> tuple[ir.Value, list[ir.Operation]]:
    """What is read, and the operations that put 0 in the place of its elements that are no numbers, the last one first.

    Without such operations, the value itself.
    """
    choice = maker(value)
    if choice is None or not _is_map(choice) or len(choice.operands) != 3:
        return value, []
    inner, elements = body(choice).operations, list(body(choice).arguments)
    select = inner[0].operation
    if len(inner) != 2 or select.name != "arith.select" or constant_of(select.operands[1]) != 0.0:
        return value, []
    condition, kept = select.operands[0], select.operands[2]
    if condition not in elements[:2] or kept not in elements[:2]:
        return value, []
    source = choice.operands[elements.index(kept)]
    test = maker(choice.operands[elements.index(condition)])
    if test is None or not _is_map(test) or len(test.operands) != 2 or test.operands[0] != source:
        return value, []
    return (source, [choice, test]) if _asks_for_nan(test) else (value, [])


def _is_map(op: ir.Operation) -> bool:
    """Whether an operation computes each element of its result from those at the same place."""
    if op.name != "linalg.generic" or len(op.results) != 1 or any(kinds(op)):
        return False
    own = maps(op)
    return own[0].is_permutation and all(m == own[0] for m in own)


def _asks_for_nan(op: ir.Operation) -> bool:
    """Whether the body tells if its element is no number."""
    block = body(op)
    steps = [inner.operation for inner in block.operations if inner.operation.name != "arith.extf"]
    if [step.name for step in steps] != ["arith.cmpf", "linalg.yield"]:
        return False
    left, right = (made.operands[0] if (made := maker(v)) else v for v in steps[0].operands)
    predicate = ir.IntegerAttr(steps[0].attributes["predicate"]).value
    return left == right == block.arguments[0] and predicate in (_NOT_EQUAL, _UNORDERED)


def is_reciprocal_of_sum(value: ir.Value, terms: ir.Value) -> bool:
    """Whether a tensor holds 1 / the sum of `terms`: not finite where one of these is no number, or all are 0."""
    division = maker(value)
    if division is None or division.name != "linalg.generic" or len(division.operands) != 2 or any(kinds(division)):
        return False
    steps = [inner.operation for inner in body(division).operations if inner.operation.name != "arith.extf"]
    if [step.name for step in steps] != ["arith.divf", "linalg.yield"] or constant_of(steps[0].operands[0]) != 1.0:
        return False
    total = maker(division.operands[0])
    if total is None or total.name != "linalg.generic" or not any(kinds(total)) or total.operands[0] != terms:
        return False
    inner = body(total).operations
    last = maker(inner[len(inner) - 1].operands[0])
    return len(total.operands) == 2 and last is not None and last.name == "arith.addf"


def zero_unless_finite(scale: ir.Value, result: ir.Value) -> ir.Value:
    """0 where a scale that is not negative is infinite or no number, else the result; in the body that is written."""
    kind = result.type
    numbers = [create_number(number, kind) for number in (inf, 0.0)]
    predicate = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), _NOT_BELOW)
    bad = create("arith.cmpf", [scale, numbers[0]], ir.IntegerType.get_signless(1), {"predicate": predicate})
    return create("arith.select", [bad, numbers[1], result], kind)

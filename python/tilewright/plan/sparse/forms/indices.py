# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Integers of bodies and of the host, at the current insertion point: constants and arithmetic with them."""

from __future__ import annotations

from tilewright.ir.generics import create, create_number
from tilewright.mlir import ir


def number(value: int, kind: ir.Type | None = None) -> ir.Value:
    """A constant, an index unless another type is said."""
    return create_number(value, kind or ir.IndexType.get())


def plus(a: ir.Value, b: ir.Value | int) -> ir.Value:
    """a + b."""
    return create("arith.addi", [a, number(b) if isinstance(b, int) else b], a.type)


def times(a: ir.Value, factor: int) -> ir.Value:
    """a * factor."""
    return create("arith.muli", [a, number(factor)], a.type)


def over(a: ir.Value, divisor: int) -> ir.Value:
    """a / divisor, rounded down."""
    return create("arith.divui", [a, number(divisor)], a.type)


def rest(a: ir.Value, divisor: int) -> ir.Value:
    """a mod divisor."""
    return create("arith.remui", [a, number(divisor)], a.type)


def below(a: ir.Value, bound: int) -> ir.Value:
    """a < bound."""
    predicate = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 6)  # ult
    return create("arith.cmpi", [a, number(bound)], ir.IntegerType.get_signless(1), {"predicate": predicate})

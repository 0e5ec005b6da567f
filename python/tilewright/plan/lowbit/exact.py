# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Dequantization in the cheapest steps that give the same numbers.

A byte less its zero point has nine bits, and a scale in f16 eleven: their product fits into an f32, so rounding it to
f16 is what a multiplication in f16 gives, which does two numbers at a time and needs no conversion. Differences of two
bytes are exact in all floats that hold 255, so the difference of two floats stands for a float of a difference.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.ir.generics import body, constant_of, create, create_number, maker
from tilewright.mlir import ir

_FLOATS = ("arith.sitofp", "arith.uitofp")
_WIDENINGS = {"arith.extsi": "arith.sitofp", "arith.extui": "arith.uitofp"}


def cheaply(op: ir.Operation, elements: Sequence[ir.Value]) -> ir.Value:
    """What the body of a `linalg.generic` yields for some elements, at the current insertion point."""
    operations = body(op).operations
    return _Steps(op, elements).value(operations[len(operations) - 1].operands[0])


class _Steps:
    """Makes the scalars of a body anew, each once."""

    def __init__(self, op: ir.Operation, elements: Sequence[ir.Value]) -> None:
        self.block = body(op)
        self.known: dict[ir.Value, ir.Value] = dict(zip(self.block.arguments, elements, strict=True))

    def value(self, old: ir.Value) -> ir.Value:
        """A scalar of the body; one from outside is itself."""
        if old in self.known:
            return self.known[old]
        made = maker(old)
        if made is None or made.block != self.block:
            return old
        new = self._narrow(made)
        if new is None:
            new = self._whole(old, old.type)
        if new is None:
            operands = [self.value(operand) for operand in made.operands]
            copy = made.clone()
            for at, operand in enumerate(operands):
                copy.operands[at] = operand
            new = copy.results[0]
        self.known[old] = new
        return new

    def _narrow(self, op: ir.Operation) -> ir.Value | None:
        """A whole number of few bits times one in f16, rounded to f16, as a product in f16."""
        product = maker(op.operands[0]) if op.name == "arith.truncf" else None
        kind = op.results[0].type if op.results else None
        if product is None or product.name != "arith.mulf" or not isinstance(kind, ir.F16Type):
            return None
        for number, scale in (tuple(product.operands), tuple(product.operands)[::-1]):
            widening = maker(scale)
            if widening is None or widening.name != "arith.extf" or widening.operands[0].type != kind:
                continue
            whole = self._whole(number, kind)
            if whole is not None:
                return create("arith.mulf", [whole, self.value(widening.operands[0])], kind)
        return None

    def _whole(self, value: ir.Value, kind: ir.Type) -> ir.Value | None:
        """A byte, or the difference of two, as a float of type `kind`; None where a scalar is something else."""
        made = maker(value)
        if made is None or made.name not in _FLOATS or isinstance(kind, ir.BF16Type):
            return None
        number = made.operands[0]
        if str(number.type) == "i8":
            return create(made.name, [self.value(number)], kind)
        difference = maker(number)
        if difference is None or difference.name != "arith.subi" or made.name != "arith.sitofp":
            return None
        terms = [made for term in difference.operands if (made := self._byte(term, kind)) is not None]
        return create("arith.subf", terms, kind) if len(terms) == 2 else None

    def _byte(self, value: ir.Value, kind: ir.Type) -> ir.Value | None:
        """A byte that is widened, or a constant in its range, as a float."""
        known = constant_of(value)
        if known is not None:
            return create_number(float(known), kind) if -128 <= known <= 255 else None
        made = maker(value)
        if made is None or made.name not in _WIDENINGS or str(made.operands[0].type) != "i8":
            return None
        return create(_WIDENINGS[made.name], [self.value(made.operands[0])], kind)

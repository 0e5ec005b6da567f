# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Integers that the IR states: constants, and how often a loop runs."""

from __future__ import annotations

from tilewright.mlir import ir


def integer_constant(value: ir.Value) -> int | None:
    """What an integer or index constant is; None where `value` is none."""
    if isinstance(value, ir.BlockArgument) or value.owner.name != "arith.constant":
        return None
    attribute = value.owner.attributes["value"]
    return attribute.value if isinstance(attribute, ir.IntegerAttr) else None


def trip_count(loop: ir.Operation) -> int | None:
    """Iterations of an `scf.for`; None where its bounds or its step are no constants."""
    first, end, step = (integer_constant(loop.operands[i]) for i in range(3))
    return None if first is None or end is None or step is None or step < 1 else len(range(first, end, step))

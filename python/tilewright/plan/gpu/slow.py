# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where a softmax and its products are slower than they could be (`tile.slow`, a remark of tile-verify-plan)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilewright.ir import decisions
from tilewright.ir.structure import Kind, LinalgOp, set_attribute
from tilewright.mlir import ir
from tilewright.plan.attention.online_reduction import exponentials_of, is_maximum

#: The attribute: the reason, on a product.
SLOW = decisions.SLOW


def mark_apart(ops: Sequence[LinalgOp]) -> None:
    """Say of each product that reads exponentials of another task that scores go through memory, and why.

    Args:
        ops: the operations of a block, with their tasks.
    """
    makers = {op.result: op for op in ops}
    for product in ops:
        if product.kind is not Kind.CONTRACTION:
            continue
        powers = next((p for a in product.inputs if (p := _powers(a.value, makers)) is not None), None)
        if powers is not None and _task(powers) != _task(product):
            known = "its rows have a length that a run brings" if powers.dynamic else "it is shared by too few tasks"
            set_attribute(product.op, SLOW, f'"reads a softmax from memory: {known}"')


def _task(op: LinalgOp) -> int:
    return decisions.TASK.read(op.op)


def _powers(value: ir.Value, makers: Mapping[ir.Value, LinalgOp]) -> LinalgOp | None:
    """What computes exponentials relative to a maximum, where elementwise operations make the value of these."""
    op = makers.get(value)
    if op is None or op.reductions:
        return None
    for number, access in enumerate(op.inputs):
        made = makers.get(access.value)
        if made is not None and is_maximum(made) and exponentials_of(op, number):
            return op
    return next((p for a in op.inputs if (p := _powers(a.value, makers)) is not None), None)

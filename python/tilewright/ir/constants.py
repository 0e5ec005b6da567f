# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Integers that the IR states: constants, and how often a loop runs."""

from __future__ import annotations

from math import prod

from tilewright.mlir import ir

_MOST_SPREAD = 1 << 20
"""Bytes that what is only spread over the iterations of a loop may take."""

_OPEN = ir.ShapedType.get_dynamic_size()
"""What stands for an offset that an operand tells."""


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


def loop_of_row(op: ir.Operation | ir.OpView) -> ir.Operation | None:
    """The `scf.for` from whose iterations on a slice is one row of a list each; None for all other operations.

    It counts rows from the first one on: `for %i = 0 to n step 1`, and n are in the list.
    """
    if op.name != "tensor.extract_slice" or len(op.operands) != 2 or not isinstance(op.operands[1], ir.BlockArgument):
        return None
    offsets, sizes = (list(ir.DenseI64ArrayAttr(op.attributes[f"static_{name}"])) for name in ("offsets", "sizes"))
    number = ir.BlockArgument(op.operands[1])
    loop = number.owner.owner.operation
    at = offsets.index(_OPEN) if _OPEN in offsets else None  # a size may be what the run brings
    if at is None or sizes[at] != 1 or loop.name != "scf.for" or number.arg_number != 0:
        return None
    trips = trip_count(loop)
    fits = trips is not None and 0 < trips <= ir.RankedTensorType(op.operands[0].type).shape[at]
    counts = [integer_constant(loop.operands[i]) for i in (0, 2)] == [0, 1]
    return loop if fits and counts else None


def spreads(op: ir.Operation | ir.OpView, loop: ir.Operation) -> bool:
    """Whether a list of what an operation gives in all iterations is only rows of weights in many copies, and large.

    `lib/Transforms/Plan/Weights.cpp` has the same rule.

    Args:
        op: of the loop's body.
        loop: that :func:`loop_of_row` found.
    """
    if not op.name.startswith("linalg.") or len(op.results) != 1 or op.name in ("linalg.pack", "linalg.unpack"):
        return False
    kind = ir.RankedTensorType(op.results[0].type)
    inputs = [ir.RankedTensorType(v.type) for v in list(op.operands)[:-1] if isinstance(v.type, ir.RankedTensorType)]
    copies = prod(kind.shape) > 2 * sum(prod(each.shape) for each in inputs)
    return copies and prod(kind.shape) * _element_bytes(kind.element_type) > _MOST_SPREAD // (trip_count(loop) or 1)


def _element_bytes(element: ir.Type) -> int:
    bits = element.width if isinstance(element, ir.IntegerType | ir.FloatType) else 64
    return -(-bits // 8)

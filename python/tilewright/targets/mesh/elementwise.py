# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise computations on blocks, with operands that are broadcast along some loops."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.ir.generics import body, constant_of, create, create_generic, maker, maps
from tilewright.mlir import ir
from tilewright.targets.mesh.computations import dims
from tilewright.targets.mesh.placement import Axes, Placement, empty_block, laid_type, local


def elementwise(op: ir.Operation, loops: Sequence[str], placement: Placement) -> ir.Value:
    """The result of a generic without reductions, on the grid: no core needs another one's elements."""
    written = maps(op)[-1]
    return computed(op, loops, placement, written, yielded(op), op.results[0].type)


def computed(
    op: ir.Operation,
    loops: Sequence[str],
    placement: Placement,
    written: ir.AffineMap,
    value: ir.Value,
    kind: ir.Type,
) -> ir.Value:
    """What a body makes of the inputs of a generic, at each point of its loops.

    Args:
        loops: the axis along each.
        written: which loops are the result's dimensions.
        value: of the body.
        kind: the type of the result, without a layout.
    """
    reads = maps(op)[:-1]
    inputs = [placement.laid(v, lies(m, loops)) for v, m in zip(op.operands, reads, strict=False)]
    result = laid_type(kind, lies(written, loops), placement.side)
    if not inputs:
        inputs = [placement.laid(op.operands[0], lies(maps(op)[0], loops))]

    def compute(blocks: list[ir.Value]) -> ir.Value:
        pairs = list(zip(blocks, reads, strict=False))
        made = create_generic(
            pairs, empty_block(result), written, [False] * written.n_dims, lambda given: repeated(op, given, value)
        )
        return made

    return local(inputs, result, compute)


def lies(map_: ir.AffineMap, loops: Sequence[str]) -> Axes:
    """How an operand lies whose dimensions are these loops."""
    return tuple("" if loop is None else loops[loop] for loop in dims(map_))


def repeated(op: ir.Operation, elements: Sequence[ir.Value], wanted: ir.Value) -> ir.Value:
    """A value of a generic's body for some elements, one per argument: its steps, copied here, with their constants."""
    known = dict(zip(body(op).arguments, elements, strict=True))

    def value_of(value: ir.Value) -> ir.Value:
        if value not in known:
            made = maker(value)
            assert made is not None
            if constant_of(value) is not None:
                known[value] = create("arith.constant", [], value.type, {"value": made.attributes["value"]})
            else:
                inner = [value_of(operand) for operand in made.operands]
                copy = made.clone()
                for at, operand in enumerate(inner):
                    copy.operands[at] = operand
                known.update(zip(made.results, copy.results, strict=True))
        return known[value]

    return value_of(wanted)


def yielded(op: ir.Operation) -> ir.Value:
    """What the body of a generic yields."""
    operations = body(op).operations
    return operations[len(operations) - 1].operands[0]

# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise computations on blocks, with operands that are broadcast along some loops."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.ir.generics import body, create, create_generic, maps
from tilewright.mlir import ir
from tilewright.targets.mesh.bodies.captures import Captures, Table, captures
from tilewright.targets.mesh.bodies.copies import Copy
from tilewright.targets.mesh.computations import dims, loop_sizes
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
    reads, sizes = maps(op)[:-1], loop_sizes(op)
    around = captures(op, sizes)
    assert isinstance(around, Captures), around
    inputs = [placement.laid(v, lies(m, loops)) for v, m in zip(op.operands, reads, strict=False)]
    numbers = [placement.number(one) for one in around.numbers]
    split = [loop for loop in sorted(around.asked) if loops[loop]]
    starts = [placement.starts(loops[loop], sizes[loop]) for loop in split]
    tables = [placement.laid(one.value, table_axes(one, loops)) for one in around.tables]
    result = laid_type(kind, lies(written, loops), placement.side)
    first = ir.AffineMap.get(len(loops), 0, [ir.AffineExpr.get_constant(0)])
    reads += [first] * (len(numbers) + len(starts))
    inputs += [*numbers, *starts, *tables]
    if not inputs:
        inputs = [placement.laid(op.operands[0], lies(maps(op)[0], loops))]
    padded = {loop for loop, axis in enumerate(loops) if axis and sizes[loop] % placement.side}

    def compute(blocks: list[ir.Value]) -> ir.Value:
        picked = dict(zip(around.tables, blocks[len(reads) :], strict=False))

        def step(given: list[ir.Value]) -> ir.Value:
            own = len(reads) - len(numbers) - len(starts)
            copy = Copy(op, [*given[:own], given[-1]], sizes, padded)
            copy.known.update(zip(around.numbers, map(_as_host, given[own:], around.numbers), strict=False))
            copy.starts = dict(zip(split, given[len(reads) - len(starts) :], strict=False))
            copy.tables = {one.value: (block, one) for one, block in picked.items()}
            return copy.value(value)

        return create_generic(
            list(zip(blocks, reads, strict=False)), empty_block(result), written, [False] * written.n_dims, step
        )

    return local(inputs, result, compute)


def table_axes(table: Table, loops: Sequence[str]) -> Axes:
    """How a tensor lies of which elements are picked: whole along dimensions of which any index is read."""
    return tuple("" if loop is None else loops[loop] for loop in table.loops)


def _as_host(number: ir.Value, like: ir.Value) -> ir.Value:
    """A number that the host sent, of the type that it has there: it sends an index as one of 32 bits."""
    return number if number.type == like.type else create("arith.index_cast", [number], like.type)


def lies(map_: ir.AffineMap, loops: Sequence[str]) -> Axes:
    """How an operand lies whose dimensions are these loops."""
    return tuple("" if loop is None else loops[loop] for loop in dims(map_))


def repeated(op: ir.Operation, elements: Sequence[ir.Value], wanted: ir.Value) -> ir.Value:
    """A value of a generic's body for some elements, one per argument: its steps, copied here, with their constants."""
    return Copy(op, elements).value(wanted)


def yielded(op: ir.Operation) -> ir.Value:
    """What the body of a generic yields."""
    operations = body(op).operations
    return operations[len(operations) - 1].operands[0]

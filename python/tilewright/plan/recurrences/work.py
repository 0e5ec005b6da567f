# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Multiply-adds and bytes of weights at a point of a recurrence's domain, counted in the body of its scan."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from tilewright.mlir import ir
from tilewright.mlir.dialects.fractal import ArrayType
from tilewright.plan.cost.recurrence import Work

_LOOPS = ("fractal.map", "fractal.scan", "fractal.fold", "fractal.reduce", "fractal.filter")


def work_of(scan: ir.Operation) -> Work:
    """What the body of a scan takes per element, times the lists around the scan's recurrence.

    Args:
        scan: `fractal.scan`, in the body of the recurrence whose states go through it.
    """
    block = scan.regions[0].blocks[0]
    states = len(block.arguments) - sum(isinstance(v.type, ArrayType) for v in _lists(scan))
    stateful = _varying(block, list(block.arguments)[:states])
    varying = _varying(block, list(block.arguments))
    around = _repeats(scan.parent)
    recurrent = projected = weights = all_weights = 0
    for op, times in _products(block, 1):
        multiply_adds = prod(_sizes(op)) * times * around
        held = sum(_bytes(value) for value in list(op.operands)[:2] if value not in varying)
        all_weights += held
        if any(value in stateful for value in op.operands):
            recurrent, weights = recurrent + multiply_adds, weights + held
        else:
            projected += multiply_adds
    return Work(recurrent, projected, weights, all_weights)


def _lists(scan: ir.Operation) -> list[ir.Value]:
    inits, _ = ir.DenseI32ArrayAttr(scan.attributes["operandSegmentSizes"])
    return list(scan.operands)[inits:]


def _varying(block: ir.Block, roots: list[ir.Value]) -> set[ir.Value]:
    """Values that follow from the roots."""
    found: set[ir.Value] = set(roots)
    for op in _walk(block):
        if any(value in found for value in _read(op)):
            found.update(op.results)
            for region in op.regions:
                for inner in region.blocks:
                    found.update(inner.arguments)
    return found


def _walk(block: ir.Block) -> Iterator[ir.Operation]:
    """Operations in order, those of a loop's body after the loop."""
    for view in block.operations:
        yield view.operation
        if view.operation.name in _LOOPS:
            yield from _walk(view.operation.regions[0].blocks[0])


def _read(op: ir.Operation) -> Iterator[ir.Value]:
    """Operands of an operation and of those in its regions."""
    yield from op.operands
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield from _read(inner.operation)


def _products(block: ir.Block, times: int) -> Iterator[tuple[ir.Operation, int]]:
    """Contractions in a body, and how often each runs."""
    for view in block.operations:
        op = view.operation
        if op.name in _LOOPS:
            yield from _products(op.regions[0].blocks[0], times * _length(op))
        elif op.name == "linalg.matmul" or _is_contraction(op):
            yield op, times


def _is_contraction(op: ir.Operation) -> bool:
    """Whether a generic multiplies and sums."""
    if op.name != "linalg.generic":
        return False
    sums = any("reduction" in str(kind) for kind in op.attributes["iterator_types"])
    return sums and any(inner.operation.name == "arith.mulf" for inner in op.regions[0].blocks[0].operations)


def _repeats(op: ir.Operation | ir.OpView | None) -> int:
    """How often a recurrence runs: the lengths of all loops around it, but its own."""
    times = 1
    above = op.operation.parent if op is not None else None
    while above is not None:
        if above.operation.name in _LOOPS:
            times *= _length(above.operation)
        above = above.operation.parent
    return times


def _length(op: ir.Operation) -> int:
    """Elements that a loop goes through; 1 where it is not known."""
    known = [ArrayType(v.type).lengths[0] for v in op.operands if isinstance(v.type, ArrayType)]
    return max([n for n in known if n >= 0], default=1)


def _sizes(op: ir.Operation) -> list[int]:
    """Extents of a product's loops."""
    shapes = [ir.RankedTensorType(value.type).shape for value in op.operands]
    if op.name == "linalg.matmul":
        return [*shapes[0], shapes[1][1]]
    extents: dict[int, int] = {}
    for attribute, shape in zip(op.attributes["indexing_maps"], shapes, strict=True):
        for expr, size in zip(ir.AffineMapAttr(attribute).value.results, shape, strict=True):
            if isinstance(expr, ir.AffineDimExpr):
                extents[expr.position] = size
    return list(extents.values())


def _bytes(value: ir.Value) -> int:
    kind = ir.RankedTensorType(value.type)
    return prod(kind.shape) * 4

# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Multiply-adds and bytes of weights at a point of a recurrence's domain, counted in the body of its scan or loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

from tilewright.ir.constants import trip_count
from tilewright.ir.generics import ancestors
from tilewright.ir.structure import EXPECTED, blocks, captured
from tilewright.mlir import ir
from tilewright.mlir.dialects.fractal import ArrayType
from tilewright.plan.cost.recurrence import Work

_LOOPS = ("fractal.map", "fractal.scan", "fractal.fold", "fractal.reduce", "fractal.filter")
_STATE, _POINT, _ROW, _BEFORE = -1, -2, -3, -4
_NOTHING: frozenset[int] = frozenset()


def work_of(scan: ir.Operation) -> Work:
    """What the body of a scan takes per element, times the maps around the scan's recurrence.

    Args:
        scan: `fractal.scan`, in the body of the recurrence whose states go through it.
    """
    body = _Body()
    _define_rows(body, scan)
    _define_points(body, scan)
    body.visit(scan.regions[0].blocks[0], 1)
    around = _repeats(scan.parent)
    recurrent = projected = free = weights = all_weights = own = own_free = 0
    for op, times in body.products:
        multiply_adds = prod(_sizes(op)) * times * around
        operands = list(op.operands)[:2]
        held = sum(map(body.weight_bytes, operands))
        rows = sum(body.weight_bytes(value) for value in operands if _ROW in body.of(value))
        needed = _NOTHING.union(*map(body.of, op.operands))
        if not needed & {_STATE, _BEFORE}:
            free, own_free = free + multiply_adds, own_free + rows
            continue
        all_weights, own = all_weights + held, own + rows
        if _STATE in needed:
            recurrent, weights = recurrent + multiply_adds, weights + held
        else:
            projected += multiply_adds
    return Work(recurrent, projected, weights, all_weights, own, free, own_free)


def _define_points(body: _Body, scan: ir.Operation) -> None:
    """What the arguments of a scan's body are: its states, elements of the row before, elements of other lists."""
    lists = _lists(scan)
    arguments = list(scan.regions[0].blocks[0].arguments)
    states = len(arguments) - len(lists)
    recurrence = scan.parent.operation
    above = list(recurrence.regions[0].blocks[0].arguments)[: -len(_lists(recurrence))]
    for argument in arguments[:states]:
        body.sources[argument] = frozenset((_STATE,))
    for argument, value in zip(arguments[states:], lists, strict=True):
        body.sources[argument] = frozenset((_BEFORE if value in above else _POINT,))


def _define_rows(body: _Body, scan: ir.Operation) -> None:
    """What in front of a scan follows from the elements of its recurrence."""
    recurrence = scan.parent.operation
    inner = recurrence.regions[0].blocks[0]
    for argument in list(inner.arguments)[len(inner.arguments) - len(_lists(recurrence)) :]:
        body.sources[argument] = frozenset((_ROW,))
    for view in inner.operations:
        if view.operation == scan:
            return
        body.define(view.operation, body.read(view.operation))


def work_of_loops(loops: Sequence[ir.Operation]) -> list[Work]:
    """What an iteration of each `scf.for` takes; products between them that need their results are projections.

    Args:
        loops: of one block, in order.
    """
    products: list[list[ir.Operation]] = []
    needing: set[ir.Value] = set()
    between: list[ir.Operation] = []
    first, last = loops[0], loops[-1]
    inside = False
    for view in first.block.operations:
        op = view.operation
        inside = inside or op == first
        if not inside:
            continue
        if op in loops:
            products.append(between)
            between = []
            needing.update(op.results)
        elif any(value in needing for value in [*op.operands, *captured(op)]):
            needing.update(op.results)
            between += [op] if _is_contraction(op) else []
        if op == last:
            break
    return [_work_of_loop(loop, made) for loop, made in zip(loops, products, strict=True)]


def _work_of_loop(loop: ir.Operation, projections: Sequence[ir.Operation]) -> Work:
    trips = trip_count(loop) or EXPECTED
    inner = [op.operation for block in blocks(loop) for op in block.operations if _is_contraction(op.operation)]
    outside = set(captured(loop))
    weights = sum(_bytes(v) for op in inner for v in list(op.operands)[:2] if v in outside)
    others = sum(min(map(_bytes, list(op.operands)[:2])) for op in projections)
    projected = sum(prod(_sizes(op)) for op in projections) // trips
    return Work(sum(prod(_sizes(op)) for op in inner), projected, weights, weights + others)


@dataclass
class _Body:
    """What the values of a body follow from, and its products.

    Attributes:
        sources: of a value, numbers of the loops in the body whose elements it follows from, `_STATE`, `_POINT`,
            `_BEFORE` and `_ROW`.
        lengths: of the loops.
        products: contractions, and how often each runs.
    """

    sources: dict[ir.Value, frozenset[int]] = field(default_factory=dict)
    lengths: list[int] = field(default_factory=list)
    products: list[tuple[ir.Operation, int]] = field(default_factory=list)

    def of(self, value: ir.Value) -> frozenset[int]:
        """What a value follows from; nothing for one from outside."""
        return self.sources.get(value, _NOTHING)

    def weight_bytes(self, value: ir.Value) -> int:
        """Bytes of an operand that no point of the domain changes, for all loops that it varies with; 0 for others."""
        sources = self.of(value)
        if sources & {_STATE, _POINT, _BEFORE}:
            return 0
        return _bytes(value) * prod(self.lengths[loop] for loop in sources - {_ROW})

    def visit(self, block: ir.Block, times: int) -> None:
        """Go through a block that runs so often."""
        for view in block.operations:
            op = view.operation
            if op.name in _LOOPS:
                self._enter(op, times)
                continue
            if op.name == "linalg.matmul" or _is_contraction(op):
                self.products.append((op, times))
            self.define(op, self.read(op))

    def _enter(self, op: ir.Operation, times: int) -> None:
        """A map's elements follow from its lists one by one; arguments of other loops from all that is read."""
        loop, length = len(self.lengths), _length(op)
        self.lengths.append(length)
        inner = op.regions[0].blocks[0]
        read = self.read(op)
        each = [self.of(v) for v in op.operands] if op.name == "fractal.map" else [read] * len(inner.arguments)
        for argument, found in zip(inner.arguments, each, strict=True):
            self.sources[argument] = found | {loop}
        self.visit(inner, times * length)
        ends = inner.operations[len(inner.operations) - 1].operands
        yielded = [self.of(value) - {loop} for value in ends]
        for number, result in enumerate(op.results):
            self.sources[result] = yielded[number] if op.name == "fractal.map" else read

    def read(self, op: ir.Operation) -> frozenset[int]:
        """What all that an operation reads follows from."""
        return _NOTHING.union(*map(self.of, [*op.operands, *captured(op)]))

    def define(self, op: ir.Operation, found: frozenset[int]) -> None:
        """Let the results of an operation follow from something."""
        for result in op.results:
            self.sources[result] = found


def _lists(scan: ir.Operation) -> list[ir.Value]:
    inits, _ = ir.DenseI32ArrayAttr(scan.attributes["operandSegmentSizes"])
    return list(scan.operands)[inits:]


def _is_contraction(op: ir.Operation) -> bool:
    """Whether a generic multiplies and sums."""
    if op.name != "linalg.generic":
        return False
    sums = any("reduction" in str(kind) for kind in op.attributes["iterator_types"])
    return sums and any(inner.operation.name == "arith.mulf" for inner in op.regions[0].blocks[0].operations)


def _repeats(op: ir.Operation | ir.OpView | None) -> int:
    """How many points run beside each other: the lengths of all maps around a recurrence."""
    if op is None:
        return 1
    return prod(_length(above) for above in ancestors(op.operation) if above.name == "fractal.map")


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
    return [EXPECTED if n < 0 else n for n in extents.values()]


def _bytes(value: ir.Value) -> int:
    kind = ir.RankedTensorType(value.type)
    return prod(EXPECTED if n < 0 else n for n in kind.shape) * 4

# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which operands of a launch are the same memory, or may have bytes in common, by the host function's buffers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from tilewright.core.errors import InternalError
from tilewright.ir import decisions
from tilewright.ir.constants import integer_constant
from tilewright.ir.diagnostics import located
from tilewright.ir.generics import terminator
from tilewright.mlir import ir

#: Operations whose result is a view of their first operand.
_VIEWS = frozenset(
    f"memref.{name}"
    for name in "subview cast memory_space_cast reinterpret_cast collapse_shape expand_shape transpose reshape".split()
)


@dataclass(frozen=True)
class Place:
    """Memory that a view lies in: a buffer (its value), or bytes [start, end) of one that holds several."""

    buffer: ir.Value
    start: int = 0
    end: int = 0

    def meets(self, other: Place) -> bool:
        """Whether bytes may be in both."""
        if self.buffer != other.buffer:
            return False
        return not self.end or not other.end or (self.start < other.end and other.start < self.end)


def shared_operands(launch: ir.Operation) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield (`tile.same_memory` or `tile.may_overlap`, (i, j)) of the kernel's arguments i < j, one of them written.

    Raises:
        InternalError: two temporaries overlap in the arena and begin at different places.
    """
    rank, inputs, outputs = list(launch.attributes["operandSegmentSizes"])[:3]
    operands = [launch.operands[rank + i] for i in range(inputs + outputs)]
    for (i, one), (j, other) in itertools.combinations(enumerate(operands), 2):
        if j < inputs or not (_is_memref(one) and _is_memref(other)):
            continue
        if one == other:
            yield decisions.SAME_MEMORY, (i, j)
            continue
        pairs = [(a, b) for a in places(one) for b in places(other) if a.meets(b)]
        for a, b in pairs:
            if a.end and b.end and a.start != b.start:
                raise located(
                    InternalError(
                        f"arguments {i} and {j} of a launch are temporaries that overlap: bytes {a.start} to {a.end} "
                        f"and {b.start} to {b.end} of the arena"
                    ),
                    launch,
                )
        if pairs:
            yield decisions.MAY_OVERLAP, (i, j)


def _is_memref(value: ir.Value) -> bool:
    return isinstance(value.type, ir.MemRefType)


def places(value: ir.Value) -> set[Place]:
    """The memory that a buffer may lie in; through loops and branches all that they may hand on."""
    found: set[Place] = set()
    seen: list[ir.Value] = []
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if value in seen:
            continue
        seen.append(value)
        owner = value.owner
        if isinstance(owner, ir.Block):
            sources = _of_block(ir.BlockArgument(value))
        elif owner.name == "memref.view":
            found.add(_part(owner))
            continue
        else:
            sources = _of_result(owner, ir.OpResult(value).result_number)
        if not sources:
            found.add(Place(value))
        waiting += sources
    return found


def _part(view: ir.Operation) -> Place:
    start, kind = integer_constant(view.operands[1]), ir.MemRefType(view.results[0].type)
    if start is None or not kind.has_static_shape:
        return Place(view.operands[0])
    count = 1
    for size in kind.shape:
        count *= size
    return Place(view.operands[0], start, start + count * _bytes(kind))


def _bytes(kind: ir.MemRefType) -> int:
    # It needs NumPy, which `tile-opt` does not wait for.
    from tilewright.core.dtypes import item_bytes, name_of_mlir

    return item_bytes(name_of_mlir(str(kind.element_type)))


def _of_result(op: ir.Operation, number: int) -> list[ir.Value]:
    """What the result of an operation may be a view of."""
    if op.name in _VIEWS:
        return [op.operands[0]]
    if op.name == "arith.select":
        return [op.operands[1], op.operands[2]]
    if op.name == "scf.if":
        return [terminator(region).operands[number] for region in op.regions]
    if op.name == "scf.for":
        return [op.operands[3 + number], terminator(op.regions[0]).operands[number]]
    if op.name == "scf.while":
        return [terminator(op.regions[0]).operands[1 + number]]
    return []


def _of_block(argument: ir.BlockArgument) -> list[ir.Value]:
    """What the argument of a loop's body may be a view of."""
    block, number = argument.owner, argument.arg_number
    op = block.owner.operation
    if op.name == "scf.for" and number:
        return [op.operands[2 + number], terminator(op.regions[0]).operands[number - 1]]
    if op.name == "scf.while":
        if block == op.regions[0].blocks[0]:
            return [op.operands[number], terminator(op.regions[1]).operands[number]]
        return [terminator(op.regions[0]).operands[1 + number]]
    return []

# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the body of a generic reads besides its elements: where it stands, tensors by index, numbers of the host."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tilewright.ir.generics import body, constant_of, maker
from tilewright.mlir import ir

#: Dialects of bodies; of the last one that decodes a number.
_BODIES = ("arith", "math", "linalg", "sparse_tile")
PICK = "tensor.extract"


@dataclass(frozen=True, eq=False)
class Table:
    """A tensor of which a body picks elements.

    Attributes:
        loops: per dimension the loop that counts it, from its first element to its last; None: any index is read.
    """

    value: ir.Value
    loops: tuple[int | None, ...]


@dataclass(frozen=True, eq=False)
class Captures:
    """What a body reads from around its generic.

    Attributes:
        numbers: that the host has.
        asked: loops with whose index it computes.
    """

    tables: tuple[Table, ...] = ()
    numbers: tuple[ir.Value, ...] = ()
    asked: frozenset[int] = frozenset()

    def __bool__(self) -> bool:
        """Whether there is anything."""
        return bool(self.tables or self.numbers or self.asked)


def captures(op: ir.Operation, sizes: Sequence[int]) -> Captures | str:
    """What the body of a generic reads besides its elements; a text that says why cores do not run it.

    Args:
        sizes: of the loops.
    """
    for inner in _inner(op):
        if inner.name != PICK and (inner.name.partition(".")[0] not in _BODIES or any(inner.regions)):
            return f"its body has {inner.name}"
    tables = _tables(op, sizes)
    for table in tables:
        kind = ir.RankedTensorType(table.value.type)
        if not kind.has_static_shape or 0 in kind.shape:
            return f"it picks elements of a tensor whose sizes are not known, or 0: {kind}"
    numbers = tuple(dict.fromkeys(_outer(op)))
    if any(isinstance(one.type, ir.RankedTensorType | ir.ComplexType) for one in numbers):
        return "its body reads what cores have no number for"
    return Captures(tables, numbers, frozenset(_asked(op, tables)))


def index_loop(value: ir.Value) -> int | None:
    """The loop whose index a value is."""
    made = maker(value)
    return ir.IntegerAttr(made.attributes["dim"]).value if made is not None and made.name == "linalg.index" else None


def _inner(op: ir.Operation) -> Iterator[ir.Operation]:
    for view in body(op).operations:
        yield view.operation


def _tables(op: ir.Operation, sizes: Sequence[int]) -> tuple[Table, ...]:
    """The tensors of which elements are picked; a loop counts one dimension of each at most."""
    found: dict[ir.Value, list[int | None]] = {}
    for inner in _inner(op):
        if inner.name != PICK:
            continue
        value, *indices = inner.operands
        shape = ir.RankedTensorType(value.type).shape
        loops = [index_loop(index) for index in indices]
        loops = [loop if loop is not None and sizes[loop] == shape[dim] else None for dim, loop in enumerate(loops)]
        loops = [None if loop in loops[:dim] else loop for dim, loop in enumerate(loops)]
        before = found.get(value, loops)
        found[value] = [one if one == other else None for one, other in zip(before, loops, strict=True)]
    return tuple(Table(value, tuple(loops)) for value, loops in found.items())


def _outer(op: ir.Operation) -> Iterator[ir.Value]:
    """Values from around a generic, those that are constant and tables excepted."""
    block = body(op)
    own = {*block.arguments, *(result for inner in _inner(op) for result in inner.results)}
    for inner in _inner(op):
        for number, value in enumerate(inner.operands):
            if value not in own and constant_of(value) is None and not (inner.name == PICK and number == 0):
                yield value


def _asked(op: ir.Operation, tables: Sequence[Table]) -> Iterator[int]:
    """Loops whose index is read otherwise than to count a dimension of a table."""
    counted = {table.value: table.loops for table in tables}
    for inner in _inner(op):
        for number, value in enumerate(inner.operands):
            loop = index_loop(value)
            if loop is None or (inner.name == PICK and counted[inner.operands[0]][number - 1] == loop):
                continue
            yield loop

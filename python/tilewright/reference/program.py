# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A light copy of the IR that is quick to walk again and again.

MLIR's Python objects are made anew at each access; a loop body that runs a thousand times would make them a
thousand times. So each function is read once into :class:`Node` and :class:`Block`, with SSA values numbered.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tilewright.mlir import ir
from tilewright.reference.errors import InterpreterError


@dataclass
class Block:
    """A basic block: its arguments and operations; the last one is the terminator where there is one."""

    arguments: tuple[int, ...]
    types: tuple[ir.Type, ...]
    nodes: list[Node]
    code: Any = None


@dataclass
class Node:
    """One operation. Values are numbers that index a frame; ``memo`` holds what handlers derive once."""

    name: str
    operands: tuple[int, ...]
    results: tuple[int, ...]
    regions: tuple[Block | None, ...]
    op: ir.Operation
    handler: Any = None
    memo: dict[str, Any] = field(default_factory=dict)

    @property
    def body(self) -> Block:
        """The single block of the first region."""
        block = self.regions[0]
        if block is None:
            raise InterpreterError(f"{self.name} has an empty region", location=where(self))
        return block

    def once(self, key: str, make: Any) -> Any:
        """Return ``make()``, computed at the first call for ``key`` only."""
        if key not in self.memo:
            self.memo[key] = make()
        return self.memo[key]

    def attribute(self, name: str) -> ir.Attribute | None:
        """Return the attribute called ``name``, or None."""
        attributes = self.op.attributes
        return attributes[name] if name in attributes else None

    def result_type(self, index: int = 0) -> ir.Type:
        """Return the type of result ``index``."""
        return self.once(f"result_type{index}", lambda: self.op.results[index].type)

    def operand_type(self, index: int) -> ir.Type:
        """Return the type of operand ``index``."""
        return self.once(f"operand_type{index}", lambda: self.op.operands[index].type)

    def groups(self, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        """Split operand values by the ``operandSegmentSizes`` of the op."""
        return [values[part] for part in self.once("segments", self._segments)]

    def _segments(self) -> list[slice]:
        ends = list(itertools.accumulate(self.op.attributes["operandSegmentSizes"]))
        return [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]


def where(node: Node) -> str:
    """Return the location of ``node`` as text."""
    return str(node.op.location)


class Reader:
    """Reads one isolated operation (function, kernel, program) into a :class:`Node`."""

    def __init__(self) -> None:
        self.numbers: dict[ir.Value, int] = {}

    def number(self, value: ir.Value) -> int:
        """Return the number of ``value``, giving it the next one when it is new."""
        return self.numbers.setdefault(value, len(self.numbers))

    def block(self, block: ir.Block) -> Block:
        """Read a block."""
        arguments = tuple(self.number(argument) for argument in block.arguments)
        types = tuple(argument.type for argument in block.arguments)
        return Block(arguments, types, [self.node(op.operation) for op in block.operations])

    def region(self, region: ir.Region, name: str) -> Block | None:
        """Read a region of at most one block."""
        blocks = list(region.blocks)
        if len(blocks) > 1:
            raise InterpreterError(f"{name}: the reference interprets structured control flow only (found a CFG)")
        return self.block(blocks[0]) if blocks else None

    def node(self, op: ir.Operation) -> Node:
        """Read one operation with all that is nested in it."""
        operands = tuple(self.number(value) for value in op.operands)
        results = tuple(self.number(value) for value in op.results)
        regions = tuple(self.region(region, op.name) for region in op.regions)
        return Node(op.name, operands, results, regions, op)


def walk(node: Node) -> Iterator[Node]:
    """Yield ``node`` and all nodes nested in it."""
    yield node
    for block in node.regions:
        for inner in block.nodes if block else ():
            yield from walk(inner)

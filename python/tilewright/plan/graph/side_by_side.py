# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Launches that blocks of one kernel run beside each other: none writes what another one touches.

What `LaunchMeetings.cpp` finds of them once addresses are known; here, by buffers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from tilewright.mlir import ir

VIEWS = frozenset(f"memref.{name}" for name in "view subview cast reinterpret_cast expand_shape collapse_shape".split())


def tasks_at_a_time(ops: Iterable[ir.Operation], tasks: Callable[[ir.Operation], int]) -> Iterator[int]:
    """Sums of the tasks of launches that none of them keeps from running at once, between two meetings of all blocks.

    Args:
        ops: of one block, in order; those in their regions are visited, too.
        tasks: those of a launch.
    """
    count, wrote, touched = 0, set[ir.Value](), set[ir.Value]()
    for op in ops:
        if op.name in ("tile.launch", "memref.copy"):
            inputs, outputs = _buffers(op)
            if outputs & touched or inputs & wrote:
                yield count
                count, wrote, touched = 0, set(), set()
            wrote |= outputs
            touched |= inputs | outputs
            count += tasks(op) if op.name == "tile.launch" else 0
        elif op.regions or op.name in ("memref.load", "memref.store"):
            yield count
            count, wrote, touched = 0, set(), set()
        for region in op.regions:
            for block in region.blocks:
                yield from tasks_at_a_time((inner.operation for inner in block.operations), tasks)
    yield count


def _buffers(op: ir.Operation) -> tuple[set[ir.Value], set[ir.Value]]:
    """What a launch or a copy reads, and what it writes."""
    operands = list(op.operands)
    if op.name == "memref.copy":
        first, end = 0, 1
    else:
        first, inputs, *_ = op.attributes["operandSegmentSizes"]
        end = first + inputs
    return {_whole(value) for value in operands[first:end]}, {_whole(value) for value in operands[end:]}


def _whole(value: ir.Value) -> ir.Value:
    """The buffer that a view is of."""
    while not isinstance(value.owner, ir.Block) and value.owner.operation.name in VIEWS:
        value = value.owner.operation.operands[0]
    return value

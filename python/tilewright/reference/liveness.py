# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which values a region reads from outside, and where in a block a value is read for the last time."""

from __future__ import annotations

from tilewright.reference.program import Block, Node


def captured(part: Node | Block) -> frozenset[int]:
    """Return the values that a block, or the regions of an op, read but do not define."""
    if isinstance(part, Block):
        return _of_block(part)
    return part.once("captured", lambda: frozenset().union(*(_of_block(block) for block in part.regions if block)))


def _of_block(block: Block) -> frozenset[int]:
    defined, read = set(block.arguments), set()
    for node in block.nodes:
        read.update(node.operands, captured(node))
        defined.update(node.results)
    return frozenset(read - defined)


class Scope:
    """A block that is being written out.

    Args:
        block: the block.
        repeats: whether it is the body of a loop.
    """

    def __init__(self, block: Block, repeats: bool) -> None:
        self.block = block
        self.repeats = repeats
        self.position = 0
        self.defined = set(block.arguments).union(*(node.results for node in block.nodes))
        self.last: dict[int, int] = {}
        for position, node in enumerate(block.nodes):
            for number in (*node.operands, *captured(node)):
                self.last[number] = position
        self._dying: dict[int, list[int]] = {}
        for number, position in self.last.items():
            if number in self.defined:
                self._dying.setdefault(position, []).append(number)

    def dying(self) -> list[int]:
        """Return the block's own values that are read for the last time at the present position."""
        return self._dying.get(self.position, [])

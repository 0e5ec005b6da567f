# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Chains of launches, loops and branches that need nothing of each other, and how long blocks take for one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from tilewright.mlir import ir
from tilewright.plan.graph.device_loops import CONTROL, launches_in, work_in
from tilewright.plan.graph.host_costs import expected_trips
from tilewright.plan.graph.side_by_side import VIEWS

_WORK = frozenset(("tile.launch", "memref.copy"))
#: Reads and writes of single numbers.
NUMBERS = frozenset(("memref.load", "memref.store"))


@dataclass
class Touched:
    """Buffers that operations read, and those that they write."""

    read: set[ir.Value | str] = field(default_factory=set)
    written: set[ir.Value | str] = field(default_factory=set)

    def needs(self, before: Touched) -> bool:
        """Whether what touches these waits for what touches the others, or would overwrite what it reads."""
        return bool(before.written & (self.read | self.written) or before.read & self.written)

    def add(self, other: Touched) -> None:
        """Touch what others do, too."""
        self.read |= other.read
        self.written |= other.written


@dataclass(eq=False)
class Chain:
    """Operations of one block, none of which needs what another chain does."""

    ops: list[ir.Operation]
    touched: Touched


def touched_by(op: ir.Operation) -> Touched:
    """What an operation touches, with all in it."""
    found = Touched()
    for inner in work_in(op, _WORK | NUMBERS):
        for value, is_written in _operands(inner):
            if isinstance(value.type, ir.MemRefType):
                (found.written if is_written else found.read).update(_buffers(value, set()))
    return found


def _operands(op: ir.Operation) -> Iterator[tuple[ir.Value, bool]]:
    """Each operand, and whether it is written."""
    if op.name == "tile.launch":
        first, inputs, *_ = op.attributes["operandSegmentSizes"]
        written = first + inputs
    else:
        written = {"memref.copy": 1, "memref.store": 1, "memref.load": len(op.operands)}[op.name]
    for number, value in enumerate(op.operands):
        yield value, number >= written


def _buffers(value: ir.Value, seen: set[ir.Value]) -> Iterator[ir.Value | str]:
    """The buffers that a value may be a view of: a loop hands on what it began with, or what an iteration leaves."""
    if value in seen:
        return
    seen.add(value)
    owner = value.owner
    op = owner.owner.operation if isinstance(owner, ir.Block) else owner.operation
    if op.name in VIEWS:
        yield from _buffers(op.operands[0], seen)
    elif op.name == "memref.get_global":
        yield str(op.attributes["name"])
    elif op.name in CONTROL:
        # Which of them it is does not matter: all buffers that it hands round.
        for source in [*op.operands, *(end for inner in _ends(op) for end in inner.operands)]:
            if isinstance(source.type, ir.MemRefType):
                yield from _buffers(source, seen)
    else:
        yield value


def _ends(op: ir.Operation) -> Iterator[ir.Operation]:
    for region in op.regions:
        for block in region.blocks:
            yield block.operations[len(block.operations) - 1].operation


def find_chains(ops: Sequence[ir.Operation]) -> tuple[list[Chain], int]:
    """Chains from the first operation on, as long as none needs two of them that have a loop or a branch.

    Args:
        ops: launches, copies, loops and branches of one block, in order.

    Returns: the chains, and how many operations are theirs.
    """
    chains: list[Chain] = []
    for count, op in enumerate(ops):
        touched = touched_by(op)
        needed = [chain for chain in chains if touched.needs(chain.touched)]
        if sum(_has_nest(chain) for chain in needed) > 1 or not may_be_left_out(op):
            return chains, count
        joined = Chain([op], touched)
        for chain in reversed(needed):
            joined.ops[:0] = chain.ops
            joined.touched.add(chain.touched)
        place = chains.index(needed[0]) if needed else len(chains)
        chains[place:] = [joined, *(chain for chain in chains[place:] if chain not in needed)]
    return chains, len(ops)


def _has_nest(chain: Chain) -> bool:
    return any(op.name in CONTROL for op in chain.ops)


def may_be_left_out(op: ir.Operation) -> bool:
    """Whether blocks that run none of its launches go through a loop or a branch, and have what it gives."""
    if op.name not in CONTROL:
        return op.name in _WORK
    ends_by_data = any(True for _ in work_in(op, NUMBERS | {"scf.while"}))
    return not (ends_by_data and any(True for result in op.results for _ in result.uses))


class Clock:
    """Predicts what blocks take that meet behind what others need.

    Args:
        rounds: of a launch: its tasks, and the seconds in which as many as there are blocks are done.
        meeting: seconds in which blocks meet.
    """

    def __init__(self, rounds: Callable[[ir.Operation], tuple[int, float]], meeting: float) -> None:
        self._rounds, self._meeting = rounds, meeting

    def seconds(self, ops: Sequence[ir.Operation], blocks: int) -> float:
        """Of operations of one block, in order; launches beside each other share a meeting."""
        total, pending = 0.0, Touched()
        beside: list[tuple[int, float]] = []
        for op in ops:
            touched = touched_by(op)
            if op.name in CONTROL or touched.needs(pending):
                total += self._meet(beside, blocks)
                beside, pending = [], Touched()
            if op.name in CONTROL:
                total += self._nest(op, blocks)
                continue
            pending.add(touched)
            beside.append(self._rounds(op) if op.name == "tile.launch" else (1, 0.0))
        return total + self._meet(beside, blocks)

    def _nest(self, op: ir.Operation, blocks: int) -> float:
        bodies = [self.seconds(_work_of(block), blocks) for region in op.regions for block in region.blocks]
        if op.name == "scf.if":
            return max(bodies)
        return expected_trips(op) * sum(bodies)

    def _meet(self, beside: list[tuple[int, float]], blocks: int) -> float:
        if not beside:
            return 0.0
        longest = max(seconds for _, seconds in beside)
        together = sum(tasks * seconds for tasks, seconds in beside) / blocks
        return max(longest, together) + self._meeting

    def widest(self, ops: Sequence[ir.Operation]) -> int:
        """Tasks of the launch with the most of them."""
        return max((self._rounds(op)[0] for each in ops for op in launches_in(each)), default=1)


def _work_of(block: ir.Block) -> list[ir.Operation]:
    return [op.operation for op in block.operations if op.operation.name in _WORK | CONTROL]


def share(weights: Sequence[float], blocks: int, most: Sequence[int]) -> list[int]:
    """Blocks of each chain: in proportion to its work, at least one, and no more than it has tasks at a time.

    Args:
        weights: work of the chains, no more of these than blocks.
        blocks: to share out.
        most: of each chain.
    """
    found = [1] * len(weights)
    for _ in range(blocks - len(weights)):
        wanting = [i for i, limit in enumerate(most) if found[i] < limit]
        if not wanting:
            break
        found[max(wanting, key=lambda i: weights[i] / found[i])] += 1
    return found

# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which reductions of a CTA run in one loop, block by block: rows of scores that registers cannot hold.

What makes a chain is decided in `plan/online.py`, as on the CPU. Here a block is what the registers of a CTA hold, and
all nests of the chain have register tiles of whole blocks: what they hand on never leaves registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.plan.gpu.nest import Nest
from tilewright.plan.gpu.tiles import ROW
from tilewright.plan.online import Chain, find_chains
from tilewright.plan.running import TaskNests, mark_live
from tilewright.plan.structure import Kind, LinalgOp, set_attribute

#: Steps of a block where products are in the chain: a tile of scores.
_SCORES = 128
#: Rows that share a block of keys, where products are in the chain.
BLOCK_ROWS = 64


@dataclass(frozen=True)
class Online:
    """A chain that runs in blocks, and the size of these."""

    chain: Chain
    block: int

    @property
    def multiplies(self) -> bool:
        """Whether products are in the chain."""
        return _multiplies(self.chain)

    def steps(self, root: LinalgOp) -> dict[int, int]:
        """The loop of a nest's root that runs in blocks, with their size."""
        return {self.chain.loops[root]: self.block} if root in self.chain.loops else {}

    def apply(self, members: Sequence[LinalgOp]) -> None:
        """Leave the decision on the operations, which have their tiles by now."""
        nests = TaskNests(list(members), level="shared")
        mark_live(self.chain, nests, self.block)
        for op, loop in self.chain.loops.items():
            set_attribute(op.op, "tile.online", f"array<i64: {loop}, {self.block}>")
        own = {nests.root(op) for op in self.chain.loops}
        for op in self.chain.after:
            if nests.root(op) in own:
                nests.move_out(op)


def _multiplies(chain: Chain) -> bool:
    return any(op.kind is Kind.CONTRACTION for op in chain.loops)


def choose_online(members: Sequence[LinalgOp], nests: Sequence[Nest], rows: int) -> Online | None:
    """The chain of a task that runs in blocks; None where whole rows stay in registers, or there is none.

    Args:
        members: the operations of the task.
        nests: its nests.
        rows: rows that a task takes at once.
    """
    root_of = {member: nest.root for nest in nests for member in nest.members}
    for chain in find_chains(members):
        if any(root_of[op] not in chain.loops for op in chain.loops):
            continue
        if not any(_crosses(op, root_of) for op in chain.made()):
            continue
        block = max(ROW // max(rows, 1), 16)
        if _multiplies(chain):
            block = min(block, _SCORES)
        if rows * chain.extent > ROW and 2 * block <= chain.extent:
            return Online(chain, block)
    return None


def _crosses(op: LinalgOp, root_of: dict[LinalgOp, LinalgOp]) -> bool:
    """Whether another nest reads the result."""
    by_op = {member.op: member for member in root_of}
    readers = [by_op[user] for user in op.readers if user in by_op]
    return any(root_of[reader] is not root_of[op] for reader in readers)

# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which reductions of a CTA run in one loop, block by block: rows of scores that registers cannot hold.

What makes a chain is decided in `plan/attention`, as on the CPU. Here a block is what the registers of a CTA hold, and
all nests of the chain have register tiles of whole blocks: what they hand on never leaves registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from tilewright.ir import decisions
from tilewright.ir.structure import Kind, LinalgOp, set_attribute
from tilewright.mlir import ir
from tilewright.plan.attention.online_reduction import Chain, find_chains
from tilewright.plan.attention.plan_online import TaskNests, mark_live
from tilewright.plan.cost.kernel import live_part
from tilewright.plan.cost.prediction import choice_fields
from tilewright.plan.gpu.products import streams
from tilewright.plan.gpu.slow import SLOW
from tilewright.plan.gpu.warpgroups import rank_warpgroups, slot_bytes, tail_of
from tilewright.plan.model.gpu import Gpu
from tilewright.plan.model.nest import Nest, power_of_two
from tilewright.plan.model.traffic import element_bytes

#: Elements of a tile of scores that a thread holds where wgmma reads keys and values from shared memory, and where
#: their fragments take registers, too; elements of a tile that is only reduced.
_SCORES = {True: 64, False: 32}
_PLAIN = 32
#: Channels whose sums leave a thread registers for the larger tile of scores.
_CHANNELS = 64
#: Keys of a block at most, by bytes of an element: more hide nothing.
_KEYS = {1: 128, 2: 128}
_WIDE_KEYS = 64
#: The same for wide heads on mma.sync: queries, sums and fragments of both operands take registers, too.
_FEW_KEYS = 32
#: Rows of queries of a task: 16 for each warp.
_WARP_ROWS = 16
#: Elements of a block of keys that a thread may hold as fragments, where few queries leave it nothing else to hold.
_FRAGMENTS = 64
#: Sizes of blocks that mma.sync may take: each half of the one before.
_SIZES = 4
#: Why nothing is loaded ahead.
_REASON = "rows of an operand are no multiple of 16 bytes, or part of a larger tensor"
#: Slots of the ring for keys and values.
_SLOTS = {True: 3, False: 2}


@dataclass(frozen=True)
class Online:
    """A chain that runs in blocks.

    Attributes:
        chain: the operations.
        block: steps of a block.
        rows: rows of a task.
        warps: that hold the tiles.
        stages: slots of a ring for what a block reads; 1: plain loads.
        shared: bytes of the ring.
        reached: part of the peak that products reach where warpgroups multiply; 0: mma.sync.
        stagger: whether a step computes the scores of the next block.
        tail: steps of a register tile behind whole blocks; 0: as in blocks.
        number: of the candidate that this is.
        candidates: how many there are.
        runner_up: the one that comes next.
    """

    chain: Chain
    block: int
    rows: int
    warps: int
    stages: int = 1
    shared: int = 0
    reached: float = 0.0
    stagger: bool = False
    tail: int = 0
    number: int = 0
    candidates: int = 1
    runner_up: str = ""

    def __str__(self) -> str:
        """Return e.g. ``128 rows x 64 steps, 8 warps, 2 stages``."""
        text = f"{self.rows} rows x {self.block} steps, {self.warps} warps, {self.stages} stages"
        return text + (", staggered" if self.stagger else "")

    def choice(self) -> Sequence[str]:
        """What `tile.prediction` says of the choice."""
        return choice_fields(str(self), self.candidates, self.number, self.runner_up)

    def steps(self, root: LinalgOp) -> dict[int, int]:
        """The loop of a nest's root that runs in blocks, with their size."""
        return {self.chain.loops[root]: self.block} if root in self.chain.loops else {}

    def apply(self, members: Sequence[LinalgOp]) -> float:
        """Leave the decision on the operations, which have their tiles by now; returns the part that masks leave."""
        nests = TaskNests(list(members), level="shared")
        live = self._live() if mark_live(self.chain, nests, self.block) else 1.0
        tail = f", {self.tail}" if self.tail else ""
        for op, loop in self.chain.loops.items():
            set_attribute(op.op, decisions.ONLINE, f"array<i64: {loop}, {self.block}{tail}>")
        if self.stages > 1:
            first = next(op for op in self.chain.loops if op.kind is Kind.CONTRACTION)
            decisions.STAGES.set(first.op, self.stages)
            if self.reached:
                decisions.SPECIALIZED.set(first.op)
            if self.stagger:
                decisions.STAGGER.set(first.op)
        nests.move_out(self.chain)
        return live

    def _live(self) -> float:
        op = next(op for op in self.chain.loops if decisions.LIVE.on(op.op))
        numbers = list(ir.DenseI64ArrayAttr(op.op.attributes[decisions.LIVE]))
        tasks = -(-op.extents[numbers[0]] // numbers[1])
        return 1 / tasks if self.chain.open else min(live_part(numbers, tasks, self.chain.extent), 1.0)


def choose_online(
    members: Sequence[LinalgOp], nests: Sequence[Nest], rows: Sequence[int], gpu: Gpu, extent: int = 0, number: int = 0
) -> Online | None:
    """The chain of a task that runs in blocks; None where whole rows stay in registers, or there is none.

    Args:
        members: the operations of the task.
        nests: its nests.
        rows: what a task covers of each common row, by now.
        gpu: the machine.
        extent: of the last common row.
        number: of the candidate that a chain with products takes.
    """
    if not rows:
        return None
    root_of = {member: nest.root for nest in nests for member in nest.members}
    for chain in find_chains(members, open_sizes=True):
        roots = {root_of[op] for op in chain.loops}
        if not roots <= set(chain.loops) or not any(_crosses(op, root_of) for op in chain.made()):
            continue
        products = [nest for nest in nests if nest.root in roots and nest.root.kind is Kind.CONTRACTION]
        found = _attention(chain, products, rows, gpu, extent, number) if products else _plain(chain, rows)
        if found is not None:
            return found
    return None


def _crosses(op: LinalgOp, root_of: dict[LinalgOp, LinalgOp]) -> bool:
    """Whether another nest reads the result."""
    readers = [member for member in root_of if any(a.value == op.result for a in member.inputs)]
    return any(root_of[reader] is not root_of[op] for reader in readers)


def _plain(chain: Chain, rows: Sequence[int]) -> Online | None:
    """A chain of reductions: rows longer than a CTA's registers."""
    if chain.open:
        return None  # rows in tiles, as of any reduction: they are read again, from a cache
    warps = 8
    room = _PLAIN * 32 * warps
    block = max(room // prod(rows), 64)
    long = prod(rows) * chain.extent > room and block < chain.extent
    return Online(chain, block, rows[-1], warps) if long else None


def _attention(
    chain: Chain, products: Sequence[Nest], rows: Sequence[int], gpu: Gpu, extent: int, number: int
) -> Online | None:
    """A chain with products: a block of keys at a time meets the queries of a task.

    Candidates are the sizes of warpgroups, the fastest first, then blocks for mma.sync.
    """
    ranked = rank_warpgroups(chain, products, [*rows[:-1], extent], _tasks(products[-1], [1]), gpu)
    found: list[Online] = []
    for groups in ranked:
        ring = groups.stages, groups.shared
        sizes = groups.keys, groups.queries, groups.warps
        found.append(Online(chain, *sizes, *ring, groups.reached, groups.stagger, groups.tail))
    for smaller in range(_SIZES):
        made = _by_threads(chain, products, rows, gpu, smaller)
        if made is None and not found:
            return None  # whole rows stay in registers
        found += [] if made is None or made in found else [made]
    number = min(number, len(found) - 1)
    runner_up = str(found[number + 1]) if number + 1 < len(found) else ""
    return replace(found[number], number=number, candidates=len(found), runner_up=runner_up)


def _by_threads(chain: Chain, products: Sequence[Nest], rows: Sequence[int], gpu: Gpu, smaller: int) -> Online | None:
    """The same by mma.sync and vector units, with blocks (of wide heads, soon rows) that are halved `smaller` times."""
    width = max(element_bytes(access.value) for nest in products for access in nest.root.inputs)
    queries, warps = rows[-1], 4
    if gpu.hopper and width <= 2 and queries == 64 and _tasks(products[-1], rows) >= 2 * gpu.units:
        queries, warps = 128, 8
    ends = [(nest.root, nest.root.parallel[-1]) for nest in products]
    channels = max((op.extents[d] for op, d in ends if d != chain.loops[op]), default=0)
    room = _SCORES[gpu.hopper and width <= 2 and channels <= _CHANNELS] * 32 * warps
    held = max(queries, _WARP_ROWS)  # fewer are padded, or leave registers for the keys themselves
    keys = min(_KEYS.get(width, _WIDE_KEYS), room // held)
    if width <= 2 and channels > _CHANNELS * (1 + gpu.hopper):
        keys = min(keys, _FEW_KEYS)
    if queries < _WARP_ROWS:
        keys = min(keys, max(_FRAGMENTS * 32 * warps // power_of_two(max(channels, 1)), _WARP_ROWS))
    fewer = max(smaller - 1, 0) if width <= 2 and channels > 2 * _CHANNELS and queries > _WARP_ROWS else 0
    keys = max(keys >> (0 if fewer else smaller), min(keys, _WARP_ROWS))
    if not chain.open and (keys >= chain.extent or (queries >= _WARP_ROWS and held * chain.extent <= room)):
        return None
    if fewer:  # sums of wide heads take the registers, not scores
        queries = held = max(queries >> fewer, _WARP_ROWS)
    stages, step = _stages(chain, products, held, keys, gpu)
    return Online(chain, keys, queries, warps, stages, stages * step, tail=tail_of(chain, keys))


def _tasks(nest: Nest, rows: Sequence[int]) -> int:
    """How many tasks of these rows there are."""
    op = nest.root
    others = prod(op.extents[d] for d in op.parallel) // max(op.extents[op.parallel[-1]], 1)
    return others // prod(rows)


def _stages(chain: Chain, products: Sequence[Nest], queries: int, keys: int, gpu: Gpu) -> tuple[int, int]:
    """Slots of the ring that fit into shared memory, and bytes of one; none where rows are no pieces of 16 bytes."""
    for nest in products:
        op = nest.root
        for access in op.inputs:
            if chain.loops[op] not in access.loops or any(access.value == member.result for member in chain.loops):
                continue
            if not streams(access):
                set_attribute(op.op, SLOW, f'"waits for what it reads: {_REASON}"')
                return 1, 0
    step = slot_bytes(chain, products, queries, keys)
    slots = min(_SLOTS[gpu.hopper], (gpu.shared - 4096) // max(step, 1))
    return (slots, step) if slots >= 2 else (1, 0)

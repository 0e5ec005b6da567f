# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention by Hopper's warpgroups: which chains their matrix units take, with how many queries, keys and slots.

A warpgroup has 64 queries: its scores stay in its accumulators, rows over four lanes, and become the left operand of
the second product where they are. Queries, keys and values come by TMA and are read in shared memory (FlashAttention-3,
Shah et al., 2024, section 3).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from tilewright.ir import decisions
from tilewright.ir.structure import Access, LinalgOp
from tilewright.plan.attention.online_reduction import Chain
from tilewright.plan.cost.attention import warpgroups_reached
from tilewright.plan.gpu.products import streams
from tilewright.plan.model.gpu import Gpu
from tilewright.plan.model.nest import Nest, power_of_two
from tilewright.plan.model.traffic import element, element_bytes

_TYPES = frozenset({"f16", "bf16"})
#: Queries of a warpgroup, one for each two of its threads, and warpgroups that compute: registers of three are too few.
_QUERIES = 64
_GROUPS = (2, 1)
#: Keys of a block.
_KEYS = (128, 64)
#: Channels that one instruction multiplies; of fewer, ptxas serializes the products (C7514).
_CHANNELS = range(32, 257)
#: Registers of a computing thread, and those that hold neither scores, probabilities nor sums.
_REGISTERS = 240
_OTHERS = 48
#: Keys that are expected where a run brings them, and registers for bounds of what is left behind whole blocks.
_OPEN = 1024
_BOUNDS = 40
#: Keys of a register tile at least: what is left behind whole blocks is padded to a power of two from there on.
_TAIL = 16
#: Slots of the ring: a block's products take longer than L2's round trip.
_SLOTS = 3
#: Bytes for barriers and alignment.
_RESERVED = 2048


@dataclass(frozen=True)
class Warpgroups:
    """Sizes of attention by warpgroups.

    Attributes:
        queries: rows of a task.
        keys: of a block.
        stages: slots of the ring.
        shared: bytes of shared memory of a CTA.
        reached: part of the peak that its products reach.
        stagger: whether a step computes the scores of the next block.
        tail: keys of a register tile behind whole blocks; 0: nothing is left there.
    """

    queries: int
    keys: int
    stages: int
    shared: int
    reached: float
    stagger: bool
    tail: int

    @property
    def warps(self) -> int:
        """Warps that compute."""
        return 4 * self.queries // _QUERIES


def tail_of(chain: Chain, block: int) -> int:
    """Register tiles along a loop in blocks for what is left behind whole ones; 0 where nothing is, or a block."""
    left = 0 if chain.open else chain.extent % block
    return min(max(power_of_two(left), _TAIL), block) if left else 0


def rank_warpgroups(
    chain: Chain, products: Sequence[Nest], rows: Sequence[int], queries: int, gpu: Gpu
) -> list[Warpgroups]:
    """The sizes by predicted time, the least first; none where warpgroups cannot do the chain's products.

    Args:
        chain: what runs in blocks of keys.
        products: its products, scores first.
        rows: what a task covers of each common row but the last, and how many there are of that.
        queries: rows of all tasks.
        gpu: the machine.
    """
    if not gpu.hopper or prod(rows[:-1]) != 1 or 2 * rows[-1] <= _QUERIES or not all(_fits(chain, n) for n in products):
        return []
    found = _sizes(chain, products, gpu)
    return sorted(found, key=lambda size: _rank(size, rows[-1], queries, gpu), reverse=True)


def _rank(size: Warpgroups, extent: int, queries: int, gpu: Gpu) -> tuple[float, int]:
    """Part of the machine's peak that a size reaches, padded queries and idle multiprocessors counted."""
    down = -(-extent // size.queries)
    tasks = queries // extent * down
    filled = tasks / (-(-tasks // gpu.units) * gpu.units)
    return size.reached * filled * extent / (down * size.queries), size.queries


def _outside(chain: Chain, op: LinalgOp) -> list[Access]:
    """What an operation reads that no other of the chain makes."""
    made = {member.result for member in chain.loops}
    return [access for access in op.inputs if access.dims and access.value not in made]


def _channels(chain: Chain, op: LinalgOp) -> int:
    """What a product sums over for scores, and the lanes of the result of the other one."""
    inner = [d for d in op.reductions if d != chain.loops[op]] or [op.parallel[-1]]
    return prod(op.extents[d] for d in inner)


def _fits(chain: Chain, nest: Nest) -> bool:
    """Whether matrix units take the product, and TMA its operands."""
    op = nest.root
    if op.tables or nest.gathers or len(op.inputs) != 2 or len(op.reductions) != 1:
        return False
    kinds = {element(access) for access in op.inputs}
    return (
        len(kinds) == 1
        and kinds <= _TYPES
        and _channels(chain, op) in _CHANNELS
        and all(streams(access) for access in _outside(chain, op))
    )


def _sizes(chain: Chain, products: Sequence[Nest], gpu: Gpu) -> Iterator[Warpgroups]:
    """All sizes that registers and shared memory hold."""
    exact = [_channels(chain, nest.root) for nest in products]
    channels = [power_of_two(size) for size in exact]
    width = max(element_bytes(access.value) for nest in products for access in nest.root.inputs)
    lanes = channels[-1]
    for groups, keys, stagger in product(_GROUPS, _KEYS, (True, False)):
        # Of a thread: scores, sums, and probabilities in pairs, of two blocks where they are staggered.
        registers = keys // 2 + lanes // 2 + (1 + stagger) * keys // 4 + _BOUNDS * chain.open
        if stagger and channels != exact:
            continue  # bounds of padded channels take registers, too
        # A loop of one step is none, and loads of all its blocks then take registers at once.
        steps = max(chain.extent, _OPEN) if chain.open else chain.extent
        if keys * (1 + 2 * stagger) > steps or keys == steps or registers + _OTHERS > _REGISTERS:
            continue
        queries, tail = groups * _QUERIES, tail_of(chain, keys)
        left = keys if chain.open else tail
        if left and any(decisions.APART.on(op.op) for op in chain.loops):
            continue  # TMA reads zeros behind the end of a tensor, not of a part
        # Queries; what is left over behind whole blocks; the first keys and the last values.
        once = (queries * channels[0] + (left + stagger * keys) * sum(channels)) * width
        slot = slot_bytes(chain, products, queries, keys)
        stages = min(_SLOTS, (gpu.shared - _RESERVED - once) // slot)
        if stages < 2:
            continue
        reached = warpgroups_reached(gpu, 2 * queries * keys * sum(channels), stagger, alone=groups == 1)
        reached *= steps / (steps // keys * keys + tail)
        yield Warpgroups(queries, keys, stages, stages * slot + once + _RESERVED, reached, stagger, tail)


def slot_bytes(chain: Chain, products: Sequence[Nest], queries: int, keys: int) -> int:
    """Bytes that a block of the chain reads for a task: keys and values, and masks that differ by key."""
    operands = {nest.root for nest in products}
    total = 0
    for op, loop in chain.loops.items():
        for access in _outside(chain, op):
            if loop not in access.loops:
                continue
            inner = [d for d in access.loops if d != loop and d in op.parallel and op.extents[d] > 1]
            if op in operands:
                others = power_of_two(_channels(chain, op))
            else:
                others = queries if any(d == max(set(op.parallel) - {loop}, default=-1) for d in inner) else 1
            total += keys * others * element_bytes(access.value)
    return total

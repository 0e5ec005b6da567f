# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What warpgroups have in the background: products that are not waited for, and the registers that these own.

Between a wgmma and the wait for its group, nobody may touch the registers of its accumulator or of its left operand;
between a wgmma.fence and a wgmma, nobody may touch the registers that it uses, except other products of the same shape
(PTX ISA 9.7.15.7.1, "wgmma.fence", and 9.7.15.7.3, "wgmma.wait_group"). Accumulators stay here as matrices while their
products are in flight, and reach their registers with the wait.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

#: group of warps (four neighbours of the batch, as one number) and registers of an accumulator
Key = tuple[int, tuple[int, ...]]


@dataclass
class Batch:
    """The products between two commits.

    Attributes:
        registers: that the products own until the batch is waited for.
        accumulators: their tuples of registers, a subset.
        line: PTX line of the first product.
    """

    registers: set[int] = field(default_factory=set)
    accumulators: set[tuple[int, ...]] = field(default_factory=set)
    line: int = 0


class Warpgroup:
    """One warpgroup's work in the background.

    Attributes:
        fenced: whether it ever ran wgmma.fence.
        touched: registers (of those that products use) that other instructions read or wrote since the fence.
        open: products since the last commit.
        committed: batches that are not waited for, oldest first.
        done: how many batches have been waited for.
        shapes: shape of the last product that used an accumulator.
        busy: all registers owned by products in flight, with the line of the product.
    """

    def __init__(self) -> None:
        self.fenced = False
        self.touched: set[int] = set()
        self.open = Batch()
        self.committed: list[Batch] = []
        self.done = 0
        self.shapes: dict[tuple[int, ...], str] = {}
        self.busy: dict[int, int] = {}

    def epoch(self) -> int:
        """Number of the batch that a product issued now belongs to, from 1."""
        return self.done + len(self.committed) + 1

    def fence(self) -> None:
        """wgmma.fence: earlier accesses to registers are ordered before later products."""
        self.fenced = True
        self.touched.clear()

    def unordered(self, accumulator: tuple[int, ...], fragment: tuple[int, ...], shape: str) -> str | None:
        """Why a product of these registers may not be issued now, or None."""
        if not self.fenced:
            return "no wgmma.fence comes before the first wgmma.mma_async of this warpgroup"
        if not self.touched.isdisjoint(accumulator) or not self.touched.isdisjoint(fragment):
            return "its registers were read or written after the last wgmma.fence"
        if not self.busy:
            return None
        if any(r in self.busy for r in accumulator) and self.shapes.get(accumulator) != shape:
            return "its accumulator is in flight in a product of another shape or of other registers"
        owned = {r for batch in (*self.committed, self.open) for group in batch.accumulators for r in group}
        if not owned.isdisjoint(fragment):
            return "its left operand is the accumulator of a product in flight"
        return None

    def issue(self, accumulator: tuple[int, ...], fragment: tuple[int, ...], shape: str, line: int) -> None:
        """A product was issued."""
        batch = self.open
        batch.line = batch.line or line
        batch.registers.update(accumulator, fragment)
        batch.accumulators.add(accumulator)
        self.shapes[accumulator] = shape
        for register in (*accumulator, *fragment):
            self.busy[register] = line

    def commit(self) -> None:
        """wgmma.commit_group."""
        self.committed.append(self.open)
        self.open = Batch()

    def wait(self, pending: int) -> list[tuple[int, ...]]:
        """wgmma.wait_group: all but the last ``pending`` batches are done. Returns accumulators that became free."""
        count = len(self.committed) - pending
        if count <= 0:
            return []
        finished, self.committed = self.committed[:count], self.committed[count:]
        self.done += count
        left = [*self.committed, self.open]
        owned = set().union(*(batch.registers for batch in left))
        self.busy = {register: line for register, line in self.busy.items() if register in owned}
        still = set().union(*(batch.accumulators for batch in left))
        return list({a for batch in finished for a in batch.accumulators} - still)


class Warpgroups:
    """All warpgroups of a batch of CTAs."""

    def __init__(self) -> None:
        self.groups: dict[int, Warpgroup] = {}
        self.sums: dict[Key, np.ndarray] = {}

    def __getitem__(self, number: int) -> Warpgroup:
        found = self.groups.get(number)
        if found is None:
            found = self.groups[number] = Warpgroup()
        return found

    def forget(self, numbers: set[int]) -> None:
        """Drop what belongs to warpgroups whose threads have exited."""
        for number in numbers:
            self.groups.pop(number, None)
        self.sums = {key: value for key, value in self.sums.items() if key[0] not in numbers}

    def held(self, numbers: list[int], registers: tuple[int, ...], read: Callable[[], np.ndarray]) -> np.ndarray:
        """Accumulators ``(groups, rows, columns)``: those in flight from here, else ``read()`` of the registers."""
        known = [self.sums.get((number, registers)) for number in numbers]
        values = read() if any(one is None for one in known) else None
        found = [values[i] if one is None and values is not None else one for i, one in enumerate(known)]
        return np.stack([one for one in found if one is not None])

    def hold(self, numbers: list[int], registers: tuple[int, ...], sums: np.ndarray) -> None:
        """Keep accumulators until their batch is waited for."""
        for number, matrix in zip(numbers, sums, strict=True):
            self.sums[number, registers] = matrix

# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Races in global memory between CTAs of one launch, which nothing orders.

Every granule of an allocation carries a stamp of the CTA (of the cluster, whose CTAs have barriers) that wrote it last
and of the one that read it last, with the number of the launch. A CTA that reads what another wrote, or writes what
another read or wrote, gives a result that depends on the order of CTAs: in-place kernels whose tiles overlap, two tiles
of output that meet. Kernels that synchronise through global memory (atomics, acquire and release, fences beyond the
CTA) are checked by :mod:`tilewright.sim.ptx.order.grid_order`, with the clocks of shared memory's detector; without
that one they are left alone. Reading through the non-coherent path (ld.global.nc) what the launch wrote is wrong in any
kernel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from tilewright.sim.ptx.machine import Machine
    from tilewright.sim.ptx.memory.global_memory import Allocation
    from tilewright.sim.ptx.program import Program
    from tilewright.sim.ptx.sync.step import Step
    from tilewright.sim.ptx.syntax.tree import Instruction

_GRANULE = 16
_OWNERS = 32  # bits of a stamp below the number of the launch
_WIDE = ("gpu", "sys", "gl")


def synchronises(program: Program) -> bool:
    """Whether a kernel has instructions by which its CTAs can wait for each other."""
    return any(_orders(op.ins.parts) for op in program.ops)


def orders_grid(ins: Instruction) -> bool:
    """Whether an instruction is for more than the CTA (or its cluster): its scope, or that of what has none."""
    return ins.has("volatile") or ins.has("mmio") or any(part in _WIDE for part in ins.parts)


def _orders(parts: list[str]) -> bool:
    if parts[0] in ("atom", "red"):
        return "shared" not in parts and "shared::cta" not in parts and "shared::cluster" not in parts
    if parts[0] in ("membar", "fence"):
        return any(part in _WIDE for part in parts)
    return parts[0] in ("ld", "st") and any(p in ("acquire", "release", "volatile", "relaxed", "mmio") for p in parts)


class Stamps:
    """Who touched an allocation last: launch << 32 | number of the cluster + 1, per granule."""

    def __init__(self, size: int) -> None:
        self.granule = _GRANULE
        self.writer = np.zeros(size // _GRANULE, np.int64)
        self.reader = np.zeros(size // _GRANULE, np.int64)

    def fit(self, nbytes: int) -> None:
        """Make granules no larger than ``nbytes``."""
        if nbytes < self.granule:
            factor = self.granule // nbytes
            self.granule = nbytes
            self.writer, self.reader = np.repeat(self.writer, factor), np.repeat(self.reader, factor)


def _stamps(allocation: Allocation) -> Stamps:
    found = getattr(allocation, "stamps", None)
    if found is None:
        found = allocation.stamps = Stamps(allocation.data.size)
    return found


class GridRaces:
    """The detector of one batch of CTAs."""

    def __init__(self, machine: Machine) -> None:
        launch = machine.launch
        clusters = [-(-g // c) for g, c in zip(launch.grid, launch.cluster, strict=True)]
        x, y, z = (machine.cta_of // np.array(launch.cluster)).T
        self.machine = machine
        self.base = machine.memory.launches << _OWNERS
        self.many = self.base + (1 << _OWNERS) - 1
        self.of_slot = self.base + 1 + (z * clusters[1] + y) * clusters[0] + x
        self.ordered = synchronises(machine.program)

    def read(self, step: Step, allocation: Allocation, offsets: np.ndarray, nbytes: int) -> None:
        """Lanes read."""
        stamps = _stamps(allocation)
        where, mine = self._places(stamps, offsets, nbytes, self.of_slot[step.slots])
        self._check_read(step, stamps, where, mine, step.ins.has("nc"))

    def read_rows(self, step: Step, allocation: Allocation, starts: np.ndarray, nbytes: int) -> None:
        """A bulk copy of a step's first lane reads rows."""
        stamps = _stamps(allocation)
        where = self._rows(stamps, starts, nbytes)
        self._check_read(step, stamps, where, np.full(where.size, self.of_slot[step.slots[0]]), False)

    def write(self, step: Step, allocation: Allocation, offsets: np.ndarray, values: np.ndarray) -> None:
        """Lanes write ``values`` (n, ...); writing what is there already is no race."""
        stamps, nbytes = _stamps(allocation), values.nbytes // len(values)
        where, mine = self._places(stamps, offsets, nbytes, self.of_slot[step.slots])
        bad = self._foreign(stamps.writer[where], mine) | self._foreign(stamps.reader[where], mine)
        if bad.any() and not self.ordered:
            new = np.ascontiguousarray(values).view(np.uint8).reshape(len(values), -1)
            at = offsets[:, None] + np.arange(nbytes)
            same = (allocation.data[at] == new).all(axis=1) & allocation.defined[at].all(axis=1)
            bad &= ~np.repeat(same, where.size // len(values))
            if bad.any():
                self._fail(step, bad, "writes what", stamps, where)
        stamps.writer[where] = mine

    def write_rows(self, step: Step, allocation: Allocation, starts: np.ndarray, nbytes: int) -> None:
        """A bulk copy of a step's first lane writes rows."""
        stamps = _stamps(allocation)
        where = self._rows(stamps, starts, nbytes)
        mine = np.full(where.size, self.of_slot[step.slots[0]])
        bad = self._foreign(stamps.writer[where], mine) | self._foreign(stamps.reader[where], mine)
        if bad.any() and not self.ordered:
            self._fail(step, bad, "writes what", stamps, where)
        stamps.writer[where] = mine

    def atomic(self, step: Step, allocation: Allocation, offsets: np.ndarray, nbytes: int) -> None:
        """Lanes read and write in one go."""

    def fence(self, step: Step) -> None:
        """A fence of threads."""

    # ---- parts ---------------------------------------------------------------

    def _foreign(self, stamps: np.ndarray, mine: np.ndarray) -> np.ndarray:
        return (stamps >= self.base) & (stamps != mine)

    def _check_read(self, step: Step, stamps: Stamps, where: np.ndarray, mine: np.ndarray, stale: bool) -> None:
        writer = stamps.writer[where]
        if int(writer.max()) >= self.base:
            bad = writer >= self.base if stale else self._foreign(writer, mine)
            if bad.any() and (stale or not self.ordered):
                self._fail(step, bad, "reads through .nc what" if stale else "reads what", stamps, where)
        if self.ordered:
            return
        reader = stamps.reader[where]
        if int(reader.min()) == self.many:
            return
        stamps.reader[where] = np.where(self._foreign(reader, mine), self.many, mine)
        last = stamps.reader[where]
        stamps.reader[where[last != mine]] = self.many

    def _places(self, stamps: Stamps, offsets: np.ndarray, nbytes: int, mine: np.ndarray):
        stamps.fit(nbytes)
        count = nbytes // stamps.granule
        first = offsets // stamps.granule
        if count == 1:
            return first, mine
        return (first[:, None] + np.arange(count)).ravel(), np.repeat(mine, count)

    def _rows(self, stamps: Stamps, starts: np.ndarray, nbytes: int) -> np.ndarray:
        odd = int(np.bitwise_or.reduce(starts)) | nbytes | _GRANULE
        stamps.fit(odd & -odd)
        return (starts[:, None] // stamps.granule + np.arange(nbytes // stamps.granule)).ravel()

    def _fail(self, step: Step, bad: np.ndarray, does: str, stamps: Stamps, where: np.ndarray) -> None:
        at = int(np.flatnonzero(bad)[0])
        lane = at * step.n // len(bad)
        place = int(where[at])
        touched = stamps.writer[place] >= self.base
        other = "wrote" if touched else "read"
        step.fail(
            "race",
            f"a CTA {does} another part of the launch {other} in global memory (offset {place * stamps.granule} of the "
            "allocation): nothing orders CTAs, and the result depends on which comes first",
            step.only(lane),
        )

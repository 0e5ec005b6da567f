# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Races in global memory between CTAs that wait for each other.

A kernel with atomics, or with accesses that acquire or release, may order its CTAs: what a thread released at an
address (all that its warp has seen and done) is seen by whoever acquires there later (PTX ISA 8.6, "Memory
Consistency Model": causality order). Everything else between CTAs is a race: an access behind no acquire, one that
another warp of the CTA made with no barrier before the release, an acquire or release for the CTA alone.

Each granule of an allocation knows which warp of the launch wrote it last, and when by that warp's own clock; a warp
knows how far it has seen the warps of other clusters by columns of its clocks
(:mod:`tilewright.sim.ptx.order.clocks`), which barriers within its CTA hand on.
Accesses that are strong (atomics, acquire, release, relaxed, volatile) do not race
with each other, and a plain read of what they wrote is let pass: loops of compare-and-swap begin with one. Of several
readers the last one is known, and none where they are of several clusters: a write behind such is not checked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tilewright.sim.ptx.order.clocks import FENCED, NEVER, PLAIN, Clocks
from tilewright.sim.ptx.order.far_clocks import NOTHING, FarClocks, Record
from tilewright.sim.ptx.order.grid_races import GridRaces, Stamps, orders_grid, synchronises
from tilewright.sim.ptx.order.races import detector

if TYPE_CHECKING:
    from tilewright.sim.ptx.machine import Machine
    from tilewright.sim.ptx.memory.global_memory import Allocation
    from tilewright.sim.ptx.sync.step import Step
    from tilewright.sim.ptx.syntax.tree import Instruction

_STRONG = frozenset(("acquire", "release", "relaxed", "acq_rel", "volatile", "mmio"))


class OrderedStamps(Stamps):
    """Also when the last writer and reader did it, and whether the write was strong."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.written = np.zeros(self.writer.size, np.int32)
        self.read = np.zeros(self.writer.size, np.int32)
        self.strong = np.zeros(self.writer.size, np.bool_)

    def fit(self, nbytes: int) -> None:
        """Make granules no larger than ``nbytes``."""
        factor = self.granule // nbytes
        super().fit(nbytes)
        if factor > 1:
            self.written, self.read = np.repeat(self.written, factor), np.repeat(self.read, factor)
            self.strong = np.repeat(self.strong, factor)


def _stamps(allocation: Allocation) -> OrderedStamps:
    found = getattr(allocation, "ordered_stamps", None)
    if found is None:
        found = allocation.ordered_stamps = OrderedStamps(allocation.data.size)
    return found


def make_grid_races(machine: Machine) -> GridRaces | None:
    """The detector that the machine's options and program ask for."""
    if "grid race" not in machine.checks:
        return None
    found = detector(machine)
    if found is None or not synchronises(machine.program):
        return GridRaces(machine)
    return OrderedRaces(machine, found.clocks)


class OrderedRaces(GridRaces):
    """The detector of a batch of CTAs of which some may wait for others."""

    def __init__(self, machine: Machine, clocks: Clocks) -> None:
        super().__init__(machine)
        self.clocks = clocks
        per_cta = machine.threads // 32
        warps = np.arange(machine.lanes // 32)
        clusters = self.of_slot[warps // per_cta] - self.base - 1
        #: the warp of the launch that each warp of the batch is
        self.number = clusters * clocks.per_cluster + warps % clocks.per_cluster
        self.far = FarClocks(clocks, self.number)
        self._marked: dict[int, Record] = {}
        self._pending: dict[int, Record] = {}
        #: what a warp found at a place last: one that polls finds it again
        self._found: dict[tuple[int, int], Record] = {}

    # ---- accesses --------------------------------------------------------

    def read(self, step: Step, allocation: Allocation, offsets: np.ndarray, nbytes: int) -> None:
        """Lanes read."""
        stamps = _stamps(allocation)
        strong = _is_strong(step.ins)
        where, warps = self._places(stamps, offsets, nbytes, step.warps)
        if int(stamps.writer[where].max()) >= self.base:
            self._stale(step, stamps, where)
            self._check(step, stamps, where, warps, "reads", weak=False)
        if strong:
            self._observe(step, allocation, offsets)
        else:
            self._note_reads(stamps, where, warps)

    def read_rows(self, step: Step, allocation: Allocation, starts: np.ndarray, nbytes: int) -> None:
        """A bulk copy of a step's first lane reads rows, by the asynchronous proxy."""
        stamps = _stamps(allocation)
        where = self._rows(stamps, starts, nbytes)
        warps = np.full(where.size, step.warps[0])
        if int(stamps.writer[where].max()) >= self.base:
            self._check(step, stamps, where, warps, "copies", plane=FENCED)
        self._note_reads(stamps, where, warps)

    def write(self, step: Step, allocation: Allocation, offsets: np.ndarray, values: np.ndarray) -> None:
        """Lanes write ``values`` (n, ...); writing what is there already is no race."""
        stamps, nbytes = _stamps(allocation), values.nbytes // len(values)
        strong = _is_strong(step.ins)
        where, warps = self._places(stamps, offsets, nbytes, step.warps)
        same = None if strong else self._unchanged(allocation, offsets, values, where.size)
        self._check(step, stamps, where, warps, "writes", weak=not strong, but=same)
        self._check_readers(step, stamps, where, warps, same)
        if strong:
            self._release(step, allocation, offsets, replace=True)
        self._note_writes(stamps, where, warps, strong)

    def write_rows(self, step: Step, allocation: Allocation, starts: np.ndarray, nbytes: int) -> None:
        """A bulk copy writes rows. Nobody of this launch can know when it is done."""
        stamps = _stamps(allocation)
        where = self._rows(stamps, starts, nbytes)
        warps = np.full(where.size, step.warps[0])
        self._check(step, stamps, where, warps, "writes")
        self._check_readers(step, stamps, where, warps, None)
        self._note_writes(stamps, where, warps, False)
        stamps.written[where] = NEVER

    def atomic(self, step: Step, allocation: Allocation, offsets: np.ndarray, nbytes: int) -> None:
        """Lanes read and write in one go."""
        stamps = _stamps(allocation)
        where, warps = self._places(stamps, offsets, nbytes, step.warps)
        self._check(step, stamps, where, warps, "changes", weak=False)
        if step.ins.parts[0] == "atom":
            self._observe(step, allocation, offsets)
        self._release(step, allocation, offsets, replace=False)
        self._note_writes(stamps, where, warps, True)

    def fence(self, step: Step) -> None:
        """A fence for more than the CTA: relaxed accesses before it acquire, those behind it release."""
        if not orders_grid(step.ins):
            return
        for warp in step.lanes.distinct_warps.tolist():
            if warp in self._pending:
                self.far.see(warp, self._pending.pop(warp))
            self._marked[warp] = self.far.seen(warp)
            self.clocks.rows[PLAIN, warp, warp % self.clocks.per_cluster] += 1

    # ---- acquire and release ---------------------------------------------

    def _observe(self, step: Step, allocation: Allocation, offsets: np.ndarray) -> None:
        """A strong read: it sees what was released there, at once or at the next fence."""
        records = self.machine.memory.released
        acquires = any(step.ins.has(part) for part in ("acquire", "acq_rel")) and orders_grid(step.ins)
        for warp, offset in {*zip(step.warps.tolist(), offsets.tolist(), strict=True)}:
            place = allocation.address + offset
            record = records.get(place)
            if record is None or self._found.get((warp, place)) is record:
                continue
            self._found[warp, place] = record
            if acquires:
                self.far.see(warp, record)
            else:
                self._pending[warp] = record.merged(self._pending.get(warp))

    def _release(self, step: Step, allocation: Allocation, offsets: np.ndarray, replace: bool) -> None:
        """A strong write: what a warp has seen, or had seen at its last fence, is there for those who acquire."""
        records = self.machine.memory.released
        releases = any(step.ins.has(part) for part in ("release", "acq_rel")) and orders_grid(step.ins)
        pairs = {*zip(step.warps.tolist(), offsets.tolist(), strict=True)}
        for warp, offset in pairs:
            made = self.far.seen(warp) if releases else self._marked.get(warp, NOTHING)
            place = allocation.address + offset
            records[place] = made if replace else made.merged(records.get(place))
        if releases:
            warps = np.array(sorted({warp for warp, _ in pairs}))
            self.clocks.rows[PLAIN, warps, warps % self.clocks.per_cluster] += 1

    # ---- checks ----------------------------------------------------------

    def _check(
        self, step: Step, stamps: OrderedStamps, where: np.ndarray, warps: np.ndarray, does: str,
        weak: bool = True, plane: int = PLAIN, but: np.ndarray | None = None,
    ) -> None:  # fmt: skip
        """The last writes of the launch, by warps of other clusters, must have been seen."""
        bad = self._unseen(stamps.writer[where], stamps.written[where], warps, plane)
        if not weak:
            bad &= ~stamps.strong[where]
        if but is not None:
            bad &= ~but
        if bad.any():
            self._refuse(step, stamps, where, warps, bad, does, "wrote", plane)

    def _check_readers(
        self, step: Step, stamps: OrderedStamps, where: np.ndarray, warps: np.ndarray, but: np.ndarray | None
    ) -> None:
        reader = np.where(stamps.reader[where] == self.many, 0, stamps.reader[where])
        bad = self._unseen(reader, stamps.read[where], warps, PLAIN)
        if but is not None:
            bad &= ~but
        if bad.any():
            self._refuse(step, stamps, where, warps, bad, "writes", "read", PLAIN)

    def _unseen(self, stamps: np.ndarray, epochs: np.ndarray, warps: np.ndarray, plane: int) -> np.ndarray:
        """Which accesses of other clusters, with these stamps and times, warps have not seen."""
        per_cluster = self.clocks.per_cluster
        others = stamps - self.base - 1
        bad = (others >= 0) & (others // per_cluster != self.number[warps] // per_cluster)
        if bad.any():
            bad[bad] = self.far.epochs(warps[bad], others[bad], plane) < epochs[bad]
        return bad

    def _stale(self, step: Step, stamps: OrderedStamps, where: np.ndarray) -> None:
        if step.ins.has("nc"):
            bad = stamps.writer[where] >= self.base
            if bad.any():
                self._fail(step, bad, "reads through .nc what", stamps, where)

    def _unchanged(self, allocation: Allocation, offsets: np.ndarray, values: np.ndarray, count: int) -> np.ndarray:
        new = np.ascontiguousarray(values).view(np.uint8).reshape(len(values), -1)
        at = offsets[:, None] + np.arange(new.shape[1])
        same = (allocation.data[at] == new).all(axis=1) & allocation.defined[at].all(axis=1)
        return np.repeat(same, count // len(values))

    def _note_reads(self, stamps: OrderedStamps, where: np.ndarray, warps: np.ndarray) -> None:
        per_cluster = self.clocks.per_cluster
        mine = self.base + 1 + self.number[warps]
        last = stamps.reader[where]
        others = last - self.base - 1
        several = (last == self.many) | ((others >= 0) & (others // per_cluster != self.number[warps] // per_cluster))
        stamps.reader[where] = np.where(several, self.many, mine)
        stamps.read[where] = self.clocks.epochs(warps)

    def _note_writes(self, stamps: OrderedStamps, where: np.ndarray, warps: np.ndarray, strong: bool) -> None:
        stamps.writer[where] = self.base + 1 + self.number[warps]
        stamps.written[where] = self.clocks.epochs(warps)
        stamps.strong[where] = strong

    def _refuse(
        self, step: Step, stamps: OrderedStamps, where: np.ndarray, warps: np.ndarray, bad: np.ndarray,
        does: str, did: str, plane: int,
    ) -> None:  # fmt: skip
        at = int(np.flatnonzero(bad)[0])
        place = int(where[at])
        stamp = int((stamps.writer if did == "wrote" else stamps.reader)[place])
        other = (stamp - self.base - 1) // self.clocks.per_cluster
        proxy = " through the asynchronous proxy, with no fence.proxy.async between or" if plane == FENCED else ""
        step.fail(
            "race",
            f"a CTA {does}{proxy} what CTA (or cluster) number {other} of the launch {did} in global memory (offset "
            f"{place * stamps.granule} of the allocation), and has not acquired what that released behind it: a "
            "release by a thread that all writers had met, an acquire, and a barrier for the others are needed, for "
            "the whole GPU",
            step.only(at * step.n // len(bad)),
        )


def _is_strong(ins: Instruction) -> bool:
    return not _STRONG.isdisjoint(ins.parts)

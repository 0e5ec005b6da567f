# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Races in shared memory: accesses that no barrier, mbarrier or wait puts in order.

For every granule of memory (16 bytes, fewer once a smaller access is seen) the last writer and, per column of the
clocks, the last read are known. A read must come after the last write; a write after the last write and all reads.
A warp counts as sequential: what its lanes do in different instructions is in order. Work in the background (copies,
products) has columns of its own, so that a copy which nobody waited for is in order with nothing: it is found by the
first access, whenever the data really arrived.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

import numpy as np

from tilewright.sim.ptx.errors import EmulationError
from tilewright.sim.ptx.order.clocks import FENCED, NEVER, PLAIN, Clocks
from tilewright.sim.ptx.order.lifetimes import Lifetimes

if TYPE_CHECKING:
    from tilewright.sim.ptx.machine import Machine
    from tilewright.sim.ptx.sync.step import Step

_GRANULE = 16
#: the warp of each access, or one for all
Warps = int | np.ndarray


def _at(warps: Warps, place: int) -> int:
    return warps if isinstance(warps, int) else int(warps[place])


class NoRaces:
    """The detector that is switched off: the calls of the core, nothing done."""

    def read(self, step: Step, flat: np.ndarray, nbytes: int) -> None:
        """A read of shared memory."""

    def write(self, step: Step, flat: np.ndarray, nbytes: int, values: np.ndarray | None = None) -> None:
        """A write to shared memory."""

    def atomic(self, step: Step, flat: np.ndarray, nbytes: int) -> None:
        """An atomic access to shared memory."""

    def release(self, step: Step, key: Hashable) -> None:
        """A step's warps arrive on an object."""

    def acquire(self, warps: np.ndarray, key: Hashable) -> None:
        """Warps go on behind an object."""

    def all_met(self, slots: np.ndarray) -> None:
        """All warps of CTAs are at one barrier, which opens."""

    def phase(self, key: Hashable) -> None:
        """An object's phase is complete."""

    def fence(self, step: Step) -> None:
        """A fence of threads."""

    def warp_sync(self, step: Step) -> None:
        """Lanes of a warp meet."""

    def acquire_global(self, step: Step) -> None:
        """A load with acquire semantics (shared memory only is watched)."""

    def release_global(self, step: Step) -> None:
        """A store with release semantics."""

    def mbarrier_init(self, step: Step, flat: np.ndarray) -> None:
        """mbarriers are made."""

    def uses(self, step: Step, flat: np.ndarray) -> None:
        """Lanes look at mbarriers, or change their counts of bytes."""


def make_races(machine: Machine) -> NoRaces:
    """The detector that the machine's options ask for."""
    return RaceDetector(machine) if "race" in machine.checks else NoRaces()


def detector(machine: Machine) -> RaceDetector | None:
    """The machine's detector, or None where races are not looked for."""
    found = machine.races
    return found if isinstance(found, RaceDetector) else None


class RaceDetector(NoRaces):
    """The detector of one batch of CTAs.

    Attributes:
        clocks: who has seen what; see :class:`Clocks`.
        lifetimes: which CTA's memory is reached for from outside.
        granule: bytes per record.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        per_cluster = machine.threads // 32 * machine.cluster_size
        self.clocks = Clocks(machine.lanes // 32, per_cluster)
        self.lifetimes = Lifetimes(machine, self.clocks)
        self.granule = _GRANULE
        count = machine.shared.data.size // _GRANULE
        self._writer = np.zeros(count, np.int16)
        self._written = np.zeros(count, np.int32)  # epoch; 0 = nobody
        self._atomic = np.zeros(count, np.bool_)
        self._when = np.zeros(
            count, np.int32
        )  # number of the instruction that wrote last; NEVER = work in the background
        self._warp_reads = np.zeros((per_cluster, count), np.int32)
        self._reads: dict[int, np.ndarray] = {}
        everyone = np.arange(machine.lanes // 32)
        self._everyone, self._column_of = everyone, everyone % per_cluster
        self._met = np.zeros(everyone.size, np.int64)  # all that came before this instruction is before the warp's next
        self._synced = np.zeros(everyone.size, np.int64)  # the instruction at which the warp's lanes last met
        self._lane = np.zeros(count, np.int8)  # that wrote last
        self._tables: dict[str, np.ndarray] = {}
        self._fresh: dict[
            int, list[int]
        ] = {}  # place of an mbarrier -> [warp that made it, epoch, handed to the async proxy]
        self._users: dict[int, set[int]] = {}  # place of an mbarrier -> warps that have seen that it was made

    # ---- accesses of warps -------------------------------------------------

    def read(self, step: Step, flat: np.ndarray, nbytes: int) -> None:
        """Lanes of a step read ``nbytes`` bytes at each of ``flat`` (n,)."""
        self.lifetimes.reach(step, flat)
        if nbytes < self.granule:
            self._refine(nbytes)
        warps = step.warps
        count = nbytes // self.granule
        first = flat // nbytes
        if int(_rows(self._when, count).take(first, axis=0).max()) > int(self._met[step.lanes.distinct_warps].min()):
            where, by = self._granules(flat, nbytes, warps)
            self._after_write(step, where, by, PLAIN, "reads")
            self._within_warp(step, where, np.asarray(by))
        table = _rows(self._warp_reads.reshape(-1), count)
        index = (self._column_of * (self._when.size // count))[warps] + first
        epochs = self.clocks.rows[PLAIN, self._everyone, self._column_of][warps]
        table[index] = epochs if count == 1 else epochs[:, None]

    def _within_warp(self, step: Step, where: np.ndarray, warps: np.ndarray) -> None:
        """What another lane of the same warp wrote needs a bar.warp.sync (or more) before it is read."""
        lanes = np.repeat(step.ids & 31, where.size // step.n)
        other = (self._writer[where] == warps % self.clocks.per_cluster) & (self._lane[where] != lanes)
        when = self._when[where]
        bad = other & (when > self._synced[warps]) & (when != NEVER) & ~self._atomic[where]
        if bad.any():
            at = int(np.flatnonzero(bad)[0])
            who = f"lane {int(lanes[at])} of {self._place(int(warps[at]))}"
            why = f"{who} reads what lane {int(self._lane[where[at]])} wrote, with no bar.warp.sync between"
            self._fail(step, int(warps[at]), int(where[at]), why)

    def warp_sync(self, step: Step) -> None:
        """bar.warp.sync: the lanes of a warp see each other's writes."""
        self._synced[step.lanes.distinct_warps] = self.machine.issued

    def all_met(self, slots: np.ndarray) -> None:
        """All warps of CTAs are at one barrier, which opens: publish, phase and acquire of all in one go."""
        clocks, per_cta = self.clocks, self.machine.threads // 32
        warps = slots[:, None] * per_cta + np.arange(per_cta)
        rows = clocks.rows[:, warps]
        clocks.rows[:, warps] = rows.max(axis=2, keepdims=True)
        clocks.rows[PLAIN, warps, warps % clocks.per_cluster] += 1
        self._synced[warps] = self.machine.issued
        if self.machine.cluster_size == 1:
            self._met[warps] = self.machine.issued

    def write(self, step: Step, flat: np.ndarray, nbytes: int, values: np.ndarray | None = None) -> None:
        """Lanes of a step write, `values` (n, ...) if they are known.

        Writing again what is there is no race: threads that hold copies of a value may all store it.
        """
        self.lifetimes.reach(step, flat)
        where, warps = self._granules(flat, nbytes, step.warps)
        try:
            self._after_write(step, where, warps, PLAIN, "writes")
            self._after_reads(step, where, warps)
        except EmulationError:
            changed = self._changed(flat, nbytes, values)
            if changed.any():
                at, by = self._granules(flat[changed], nbytes, step.warps[changed])
                self._after_write(step, at, by, PLAIN, "writes")
                self._after_reads(step, at, by)
        self._record_write(step, where, warps)

    def _changed(self, flat: np.ndarray, nbytes: int, values: np.ndarray | None) -> np.ndarray:
        """Which accesses change what is in memory."""
        if values is None:
            return np.ones(flat.size, np.bool_)
        shared = self.machine.shared
        new = np.ascontiguousarray(values).view(np.uint8).reshape(-1, nbytes)
        places = flat[:, None] + np.arange(nbytes)
        return (shared.data[places] != new).any(axis=1) | ~shared.defined[places].all(axis=1)

    def atomic(self, step: Step, flat: np.ndarray, nbytes: int) -> None:
        """Lanes of a step read and write in one go; such accesses do not race with each other."""
        self.lifetimes.reach(step, flat)
        where, warps = self._granules(flat, nbytes, step.warps)
        plain = ~self._atomic[where]
        if plain.any():
            self._after_write(step, where[plain], np.asarray(warps)[plain], PLAIN, "changes")
        self._after_reads(step, where, warps)
        self._record_write(step, where, warps)
        self._atomic[where] = True

    # ---- accesses in the background ----------------------------------------

    def column(self, key: Hashable, warp: int) -> int:
        """The column of an agent, e.g. ("mbarrier", place), in the cluster of a warp."""
        return self.clocks.column(warp // self.clocks.per_cluster, key)

    def columns(self, kind: str, warps: np.ndarray) -> np.ndarray:
        """Columns of the agents (kind, warp), one for each of `warps`."""
        table = self._tables.get(kind)
        if table is None:
            table = self._tables[kind] = np.full(self.clocks.rows.shape[1], -1)
        found = table[warps]
        if (found < 0).any():
            for warp in np.unique(warps[found < 0]):
                table[warp] = self.column((kind, int(warp)), int(warp))
            found = table[warps]
        return found

    def write_later(
        self,
        step: Step,
        columns: int | np.ndarray,
        flat: np.ndarray,
        nbytes: int,
        warps: Warps,
        through: int,
        epochs: int | np.ndarray = NEVER,
    ) -> None:
        """Work in the background will write at `flat`; until the agent's epoch is seen nobody may touch it.

        Args:
            step: for messages.
            columns: the agent (of each place).
            flat: (m,) starts of ranges of `nbytes` bytes.
            nbytes: 16 or less.
            warps: who issued it.
            through: FENCED where the asynchronous proxy writes, PLAIN where the generic one does.
            epochs: of the agent; NEVER if :meth:`settle` will tell.
        """
        where, by = self._granules(flat, nbytes, warps)
        self._after_write(step, where, by, through, "writes in the background")
        self._after_reads(step, where, by)
        times = where.size // flat.size
        self._when[where] = NEVER
        self._writer[where] = columns if np.ndim(columns) == 0 else np.repeat(columns, times)
        self._written[where] = epochs if np.ndim(epochs) == 0 else np.repeat(epochs, times)
        self._atomic[where] = False

    def settle(self, column: int, flat: np.ndarray, nbytes: int, epoch: int) -> None:
        """What the agent writes or reads at `flat` is over for those who have seen the agent's epoch."""
        where, _ = self._granules(flat, nbytes, 0)
        mine = where[(self._writer[where] == column) & (self._written[where] == NEVER)]
        self._written[mine] = epoch
        reads = self._reads.get(column)
        if reads is not None:
            reads[where[reads[where] == NEVER]] = epoch

    def read_later(
        self, step: Step, column: int, epoch: int, flat: np.ndarray, nbytes: int, warp: int, through: int = FENCED
    ) -> None:
        """Work issued by `warp` reads at `flat` (m,) until somebody has seen the agent's epoch (NEVER: `settle`)."""
        where, _ = self._granules(flat, nbytes, warp)
        self._after_write(step, where, warp, through, "reads in the background")
        plane = self._plane(column)
        plane[where] = np.maximum(plane[where], epoch)

    def read_by_lane(self, step: Step, flat: np.ndarray, nbytes: int, warp: int) -> None:
        """One lane hands over what its warp wrote at `flat` (m,): other lanes must have met it since."""
        where, _ = self._granules(flat, nbytes, warp)
        self._within_warp(step, where, np.full(where.size, warp))

    def see(self, warps: np.ndarray, columns: int | np.ndarray, epochs: int | np.ndarray) -> None:
        """Warps (each once) waited for an agent up to an epoch."""
        self.clocks.see(warps, columns, epochs)

    # ---- synchronisation ---------------------------------------------------

    def release(self, step: Step, key: Hashable) -> None:
        """A step's warps arrive on an object, such as ("barrier", slot, number) or ("mbarrier", place)."""
        if isinstance(key, tuple) and key[0] == "mbarrier":
            self.uses(step, np.full(step.n, key[1]))
        self.clocks.publish(step.lanes.distinct_warps, key)

    def release_fenced(self, step: Step, key: Hashable) -> None:
        """The same for a relaxed arrival: it publishes only what came before the last fence of each warp."""
        self.clocks.publish(step.lanes.distinct_warps, key, True)

    def phase(self, key: Hashable) -> None:
        """The object's phase is complete."""
        self.clocks.phase(key, self._cluster_of_key(key))

    def acquire(self, warps: np.ndarray, key: Hashable) -> None:
        """Warps go on behind an object whose phase is complete, and have seen what was released to it."""
        mine = np.unique(warps)
        self._synced[mine] = self.machine.issued
        self.clocks.acquire(mine, key)

    def fence(self, step: Step) -> None:
        """A fence of threads: a relaxed arrival behind it publishes what came before it."""
        self.clocks.mark(step.lanes.distinct_warps)

    def proxy_fence(self, step: Step) -> None:
        """fence.proxy.async."""
        warps = step.lanes.distinct_warps
        self._hand_over(set(warps.tolist()))
        self.clocks.fence(warps)

    # ---- mbarriers -----------------------------------------------------------

    def mbarrier_init(self, step: Step, flat: np.ndarray) -> None:
        """mbarriers are made, one by each lane of a step."""
        self.write(step, flat, 8)
        for place, warp in zip(flat.tolist(), step.warps.tolist(), strict=True):
            self.clocks.forget(("mbarrier", place))
            self._users.pop(place, None)
            self._fresh[place] = [warp, int(self.clocks.epochs(np.array([warp]))[0]), 0]

    def promise(self, step: Step, flat: np.ndarray, columns: np.ndarray, epochs: np.ndarray) -> None:
        """Lanes will arrive on mbarriers once agents have reached epochs; what they did until now goes with it."""
        for place, warp, column, epoch in zip(
            flat.tolist(), step.warps.tolist(), columns.tolist(), epochs.tolist(), strict=True
        ):
            self.used(step, place, warp)
            self.clocks.publish(np.array([warp]), ("mbarrier", place))
            self.clocks.add(("mbarrier", place), column, epoch)

    def fence_init(self, step: Step) -> None:
        """fence.mbarrier_init: the mbarriers that these warps made are handed to the asynchronous proxy."""
        self._hand_over(set(step.warps.tolist()))
        self.clocks.mark(step.lanes.distinct_warps)

    def _hand_over(self, warps: set[int]) -> None:
        for state in self._fresh.values():
            if state[0] in warps:
                state[2] = 1

    def uses(self, step: Step, flat: np.ndarray) -> None:
        """Lanes look at mbarriers, or change them: their initialisation must come before, and their CTA be there."""
        self.lifetimes.reach(step, flat)
        pairs = np.unique(flat * len(self._everyone) + step.warps)
        for place, warp in zip(*(part.tolist() for part in np.divmod(pairs, len(self._everyone))), strict=True):
            known = self._users.setdefault(place, set())
            if warp not in known:
                self.used(step, place, warp)
                known.add(warp)

    def used(self, step: Step, place: int, warp: int, in_background: bool = False) -> None:
        """A warp uses the mbarrier at a place: its initialisation must come before."""
        state = self._fresh.get(place)
        if state is None:
            return
        maker, epoch, handed = state
        if self.clocks.rows[PLAIN, warp, maker % self.clocks.per_cluster] < epoch:
            step.fail(
                "race",
                f"an mbarrier is used that {self._place(maker)} makes, with no barrier between",
                step.warps == warp,
            )
        if in_background and not handed:
            step.fail(
                "race",
                "a copy signals an mbarrier whose initialisation the asynchronous proxy may not see: "
                "put fence.mbarrier_init or fence.proxy.async behind mbarrier.init",
                step.warps == warp,
            )

    # ---- checks --------------------------------------------------------------

    def _after_write(self, step: Step, where: np.ndarray, warps: Warps, through: int, does: str) -> None:
        """The last write of each granule must have been seen, by the proxy that looks."""
        clocks, columns = self.clocks, self._writer[where]
        epochs = self._written[where]
        good = clocks.rows[PLAIN, warps, columns] >= epochs
        if through == FENCED:
            generic = columns < clocks.per_cluster
            good &= ~generic | (clocks.rows[FENCED, warps, columns] >= epochs)
        if good.all():
            return
        at = int(np.flatnonzero(~good)[0])
        column, warp = int(columns[at]), _at(warps, at)
        other = self._agent(column, warp)
        plain = clocks.rows[PLAIN, warp, column] >= epochs[at]
        why = "no fence.proxy.async" if plain else "no barrier and no wait"
        self._fail(step, warp, int(where[at]), f"{self._place(warp)} {does} what {other} wrote, with {why} between")

    def _after_reads(self, step: Step, where: np.ndarray, warps: Warps) -> None:
        """All reads of each granule must have been seen."""
        rows, count = self.clocks.rows[PLAIN], len(self._warp_reads)
        seen = rows[warps, :count]
        bad = self._warp_reads[:, where] > (seen[:, None] if seen.ndim == 1 else seen.T)
        if bad.any():
            column = int(np.flatnonzero(bad.any(axis=1))[0])
            self._fail_writing(step, where, warps, column, bad[column])
        for column, plane in self._reads.items():
            bad = plane[where] > rows[warps, column]
            if bad.any():
                self._fail_writing(step, where, warps, column, bad)

    def _fail_writing(self, step: Step, where: np.ndarray, warps: Warps, column: int, bad: np.ndarray) -> None:
        at = int(np.flatnonzero(bad)[0])
        warp = _at(warps, at)
        what = "is still reading" if column >= self.clocks.per_cluster else "read"
        why = f"{self._agent(column, warp)} {what}, with no barrier and no wait between"
        self._fail(step, warp, int(where[at]), f"{self._place(warp)} writes what {why}")

    def _fail(self, step: Step, warp: int, place: int, message: str) -> None:
        offset = place * self.granule % self.machine.shared.stride
        lanes = step.warps == warp
        step.fail("race", f"{message}: shared memory at offset {offset}", lanes if lanes.any() else None)

    def _agent(self, column: int, warp: int) -> str:
        """Name of a column as warp ``warp`` (which fixes the cluster) sees it."""
        if column < self.clocks.per_cluster:
            first = warp - warp % self.clocks.per_cluster
            return self._place(first + column)
        return {
            "mbarrier": "a bulk copy that signals an mbarrier",
            "bulk": "a bulk copy out of shared memory",
            "cp.async": "a cp.async",
            "wgmma": "a wgmma",
        }.get(self.clocks.names[column], self.clocks.names[column])

    def _place(self, warp: int) -> str:
        in_cta = self.machine.threads // 32
        if self.machine.cluster_size == 1:
            return f"warp {warp % in_cta}"
        return f"warp {warp % in_cta} of rank {warp // in_cta % self.machine.cluster_size}"

    def _cluster_of_key(self, key: Hashable) -> int:
        kind, place = key[0], key[1]  # type: ignore[index]
        if kind == "cluster":
            return place
        slot = place // self.machine.shared.stride if kind == "mbarrier" else place
        return slot // self.machine.cluster_size

    # ---- records ---------------------------------------------------------------

    def _record_write(self, step: Step, where: np.ndarray, warps: np.ndarray) -> None:
        self._lane[where] = np.repeat(step.ids & 31, where.size // step.n)
        self._writer[where] = warps % self.clocks.per_cluster
        self._written[where] = self.clocks.rows[PLAIN, self._everyone, self._column_of][warps]
        self._when[where] = self.machine.issued
        self._atomic[where] = False

    def _plane(self, column: int) -> np.ndarray:
        if column < self.clocks.per_cluster:
            return self._warp_reads[column]
        plane = self._reads.get(column)
        if plane is None:
            plane = self._reads[column] = np.zeros(self._written.size, np.int32)
        return plane

    def _granules(self, flat: np.ndarray, nbytes: int, warps: Warps) -> tuple[np.ndarray, Warps]:
        """Numbers of the granules that accesses touch, and the warp of each."""
        if nbytes < self.granule:
            self._refine(nbytes)
        count = nbytes // self.granule
        first = flat // self.granule
        if count == 1:
            return first, warps
        where = (first[:, None] + np.arange(count)).ravel()
        return where, warps if isinstance(warps, int) else np.repeat(warps, count)

    def _refine(self, nbytes: int) -> None:
        """Go over to smaller granules, keeping what is known."""
        factor = self.granule // nbytes
        self.granule = nbytes
        self._writer, self._written = np.repeat(self._writer, factor), np.repeat(self._written, factor)
        self._atomic, self._when = np.repeat(self._atomic, factor), np.repeat(self._when, factor)
        self._lane = np.repeat(self._lane, factor)
        self._warp_reads = np.repeat(self._warp_reads, factor, axis=1)
        self._reads = {column: np.repeat(plane, factor) for column, plane in self._reads.items()}


def _rows(table: np.ndarray, count: int) -> np.ndarray:
    return table if count == 1 else table.reshape(-1, count)

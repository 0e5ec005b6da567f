# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Moves sets of lanes through the code: least place first, so that warps meet again; waits; dead-lock."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.sim.ptx.sync import mbarrier
from tilewright.sim.ptx.sync.step import Lanes, Step, Wait

if TYPE_CHECKING:
    from tilewright.sim.ptx.errors import EmulationError
    from tilewright.sim.ptx.machine import Machine
    from tilewright.sim.ptx.program import Op
    from tilewright.sim.ptx.syntax.tree import Instruction

#: rounds of polling by everyone, with nothing written and nothing arriving, before other batches get a turn
_IDLE_ROUNDS = 200
#: sets of lanes that the report of a dead-lock names
_SHOWN = 16


class Scheduler:
    """Sets of lanes by their place in the code.

    Attributes:
        ready: {place: (lanes, rank)}; sets with a lower rank go first, then those at a lower place. Polling raises the
        rank.
        gathering: {place: lanes} that wait there for the rest of their warp.
        parked: {key: [(lanes, place, why, instruction)]}.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.ops = machine.program.ops
        self.ready: dict[int, tuple[Lanes, int]] = {}
        self.gathering: dict[int, Lanes] = {}
        self.parked: dict[Hashable, list[tuple[Lanes, int, str, Instruction]]] = {}
        self._seen, self._idle = -1, 0
        self.alive = np.zeros(machine.lanes, np.bool_)
        self.alive[machine.tid_of < machine.block_threads] = True

    def run(self) -> Iterator[None]:
        """Run all lanes to their exit; yields where all that could run are polling, for what other batches may do."""
        self.push(0, Lanes(np.flatnonzero(self.alive)), 0)
        pick = self._pick if self.machine.options.seed is None else self._pick_any
        while True:
            while self.ready:
                place, lanes, rank = pick()
                self._advance(place, lanes, rank)
                if self._idle > _IDLE_ROUNDS * (len(self.ready) + 1):
                    self._idle = 0
                    if self.machine.pending:
                        self.machine.complete_one()
                    else:
                        yield
            if not self.alive.any():
                return
            if not self.machine.pending:
                raise self.dead_lock()
            self.machine.complete_one()

    # ---- sets ------------------------------------------------------------

    def push(self, place: int, lanes: Lanes, rank: int = 0) -> None:
        """Make lanes ready at a place; they join those that are there."""
        found = self.ready.get(place)
        if found is not None:
            lanes, rank = found[0].join(lanes), max(rank, found[1])
        self.ready[place] = (lanes, rank)

    def wake(self, key: Hashable) -> None:
        """Make the lanes ready that wait for a key."""
        waiting = self.parked.pop(key, None)
        if waiting:
            for lanes, place, _, _ in waiting:
                self.push(place, lanes)

    def _pick(self) -> tuple[int, Lanes, int]:
        ready = self.ready
        if len(ready) == 1:
            place, (lanes, rank) = ready.popitem()
            return place, lanes, rank
        place = min(ready, key=lambda at: (ready[at][1], at))
        lanes, rank = ready.pop(place)
        return place, lanes, rank

    def _pick_any(self) -> tuple[int, Lanes, int]:
        """Any set of those with the least rank; some of its warps where chance wills."""
        machine, ready = self.machine, self.ready
        if machine.pending and machine.completion == "random" and machine.random.random() < 0.1:
            machine.complete_one()
        least = min(rank for _, rank in ready.values())
        places = [at for at, (_, rank) in ready.items() if rank == least]
        place = places[int(machine.random.integers(len(places)))]
        lanes, rank = ready.pop(place)
        if machine.random.random() < 0.25:
            warps = np.unique(lanes.warps)
            chosen = warps[machine.random.random(len(warps)) < 0.5]
            mask = np.isin(lanes.warps, chosen)
            if mask.any() and not mask.all():
                self.ready[place] = (lanes.where(~mask), rank)
                lanes = lanes.where(mask)
        return place, lanes, rank

    def _stop(self, place: int) -> int:
        """The next place behind `place` where other lanes are ready."""
        return min((at for at in self.ready if at > place), default=len(self.ops))

    # ---- running ---------------------------------------------------------

    def _advance(self, place: int, lanes: Lanes, rank: int) -> None:
        """Run a set of lanes until it branches apart, waits, polls, or comes to a place where others are ready."""
        machine, ops = self.machine, self.ops
        stop = self._stop(place)
        while True:
            op = ops[place]
            machine.issued += 1
            if op.control:
                self._control(op, place, lanes, rank)
                if len(self.ready) != 1 or machine.options.seed is not None:
                    return
                place, lanes, rank = self._pick()
                stop = len(ops)
                continue
            if op.plain and machine.trace is None:  # most are, and the way through all cases costs as much as they do
                wait = op.run(Step(machine, op.ins, lanes))
                going = lanes if wait is None else self._park(wait, place, lanes, lanes)
            else:
                going = self._ordinary(op, place, lanes)
            if going is None:
                return
            if going is not lanes:
                lanes, stop = going, self._stop(place)
            place += 1
            if op.spin:
                self.push(place, lanes, rank + 1)
                self._spun()
                return
            if place == stop:
                break
        self.push(place, lanes, rank)

    def _ordinary(self, op: Op, place: int, lanes: Lanes) -> Lanes | None:
        """Run one instruction. Returns the lanes that go on behind it now; None: all wait."""
        if op.members is not None:
            return self._by_mask(op, op.members, place, lanes)
        whole = lanes if op.sync == 1 else self._gather(op, place, lanes)
        if whole is None:
            return None
        lanes = whole
        active = lanes if op.ins.guard is None else self._guarded(op, lanes)
        if active is None:
            return lanes
        if op.sync > 1 and active is not lanes and not active.is_whole(op.sync):
            group = "warp" if op.sync == 32 else "warpgroup"
            text = f"the predicate of '{op.ins.op}' is not the same in all lanes of a {group}"
            Step(self.machine, op.ins, active).fail("convergence", text)
        wait = self._issue(op, place, active)
        return lanes if wait is None else self._park(wait, place, lanes, active)

    def _by_mask(self, op: Op, members: Callable[[Step], Any], place: int, lanes: Lanes) -> Lanes | None:
        """Run an instruction with a member mask for the lanes whose fellows are all there; the others wait for them."""
        active = self._guarded(op, lanes)
        if active is None:
            return lanes
        going = None if active is lanes else without(lanes, active)
        early = self.gathering.pop(place, None)
        if early is not None:
            active = active.join(early)
        step = Step(self.machine, op.ins, active)
        named = step.full(members(step)).astype(np.int64) & 0xFFFFFFFF
        if not (active.is_whole(32) and (named == 0xFFFFFFFF).all()):
            here = np.zeros(self.machine.lanes // 32, np.int64)
            np.bitwise_or.at(here, active.warps, np.int64(1) << (active.ids & 31))
            ready = named & ~here[active.warps] == 0
            if not ready.all():
                self.gathering[place] = active.where(~ready)
                active = active.where(ready)
        if active.n:
            self._issue(op, place, active)
            going = active if going is None else going.join(active)
        return going if going is not None and going.n else None

    def _issue(self, op: Op, place: int, active: Lanes) -> Wait | None:
        machine = self.machine
        if machine.trace is not None:
            machine.trace.issue(place, op.ins, active)
        return op.run(Step(machine, op.ins, active))

    def _guarded(self, op: Op, lanes: Lanes) -> Lanes | None:
        guard = op.ins.guard
        if guard is None:
            return lanes
        if guard.index in self.machine.defined:
            self.machine.require_register(Step(self.machine, op.ins, lanes), guard.index)
        mask = self.machine.registers[guard.index][lanes.sel]
        if guard.negated:
            mask = ~mask
        if mask.all():
            return lanes
        return lanes.where(mask) if mask.any() else None

    def _control(self, op: Op, place: int, lanes: Lanes, rank: int) -> None:
        """Branch or exit: the lanes are made ready where they go."""
        if self.machine.trace is not None:
            self.machine.trace.issue(place, op.ins, lanes)
        taken = self._guarded(op, lanes)
        if taken is not lanes:
            self.push(place + 1, lanes if taken is None else without(lanes, taken), rank)
        if taken is not None:
            if op.control == "exit":
                self._exit(taken)
            elif op.control == "bra":
                self.push(op.table[0], taken, rank)
            else:
                self._indexed(op, taken, rank)
        self._limit()

    def _indexed(self, op: Op, lanes: Lanes, rank: int) -> None:
        table = op.table
        index = self.machine.registers[op.index][lanes.sel]
        for value in np.unique(index):
            if value >= len(table):
                text = f"branch number {value} of {len(table)}"
                Step(self.machine, op.ins, lanes).fail("out-of-bounds", text, index == value)
            self.push(table[int(value)], lanes.where(index == value), rank)

    def _exit(self, lanes: Lanes) -> None:
        self.alive[lanes.sel] = False
        self.machine.progress += 1
        for watch in self.machine.on_exit:
            watch(self.machine, lanes)

    def _limit(self) -> None:
        limit = self.machine.options.limit
        if limit is not None and self.machine.issued > limit:
            raise self.machine.error(
                "limit", f"the batch has issued {self.machine.issued} instructions, more than allowed", None
            )

    # ---- waiting ---------------------------------------------------------

    def _gather(self, op: Op, place: int, lanes: Lanes) -> Lanes | None:
        """The lanes that are there with their whole warp (or warpgroup); the others wait for the rest."""
        early = self.gathering.pop(place, None)
        if early is not None:
            lanes = lanes.join(early)
        if lanes.is_whole(op.sync):
            return lanes
        group = lanes.ids // op.sync
        names, counts = np.unique(group, return_counts=True)
        need = np.add.reduceat(self._exists(), np.arange(0, self.machine.lanes, op.sync))[names]
        complete = np.isin(group, names[counts == need])
        if not complete.all():
            self.gathering[place] = lanes.where(~complete)
            lanes = lanes.where(complete)
        return lanes if lanes.n else None

    def _exists(self) -> np.ndarray:
        return (self.machine.tid_of < self.machine.block_threads).astype(np.int64)

    def _park(self, wait: Wait, place: int, lanes: Lanes, active: Lanes) -> Lanes | None:
        blocked = active if wait.mask is None else active.where(wait.mask)
        at = place if wait.retry else place + 1
        ins = self.ops[place].ins
        if isinstance(wait.keys, list):
            by_key: dict[Hashable, list[int]] = {}
            for key, lane in zip(wait.keys, blocked.ids, strict=True):
                by_key.setdefault(key, []).append(int(lane))
            for key, ids in by_key.items():
                self.parked.setdefault(key, []).append((Lanes(np.array(ids)), at, wait.why, ins))
        else:
            self.parked.setdefault(wait.keys, []).append((blocked, at, wait.why, ins))
        rest = without(lanes, blocked)
        return rest if rest.n else None

    def _spun(self) -> None:
        """A set of lanes polled: others go first."""
        machine = self.machine
        if self._seen != machine.progress:
            self._seen, self._idle = machine.progress, 0
        self._idle += 1

    # ---- dead-lock -------------------------------------------------------

    def dead_lock(self, first: str = "no thread can go on") -> EmulationError:
        """The error that says who waits where for what."""
        waits: list[tuple[Lanes, Instruction, str]] = []
        for key, sets in self.parked.items():
            waits += [(lanes, ins, f"{why} ({self._describe(key)})") for lanes, _, why, ins in sets]
        for place, lanes in self.gathering.items():
            ins = self.ops[place].ins
            waits.append((lanes, ins, f"the rest of the warp does not come to '{ins.op}'"))
        for place, (lanes, _) in self.ready.items():
            waits.append((lanes, self.ops[place].ins, "polling"))
        lines = [f"{self._who(lanes)} at {ins.where()}: {why}" for lanes, ins, why in waits]
        if len(lines) > _SHOWN:
            lines[_SHOWN:] = [f"... ({len(lines) - _SHOWN} more)"]
        lanes, ins, _ = waits[0]
        return self.machine.error("dead-lock", first + ":\n  " + "\n  ".join(lines), ins, int(lanes.ids[0]))

    def _describe(self, key: Hashable) -> str:
        if isinstance(key, tuple) and key[0] == "mbarrier":
            return mbarrier.describe(self.machine, key[1])
        if isinstance(key, tuple) and key[0] == "barrier":
            return self.machine.barriers.describe(key[1], key[2])
        return " ".join(str(part) for part in key) if isinstance(key, tuple) else str(key)

    def _who(self, lanes: Lanes) -> str:
        machine = self.machine
        slot = int(machine.slot_of[lanes.ids[0]])
        mine = lanes.ids[machine.slot_of[lanes.sel] == slot] % machine.threads
        more = len(np.unique(machine.slot_of[lanes.sel])) - 1
        text = f"CTA {tuple(int(c) for c in machine.cta_of[slot])} threads {_ranges(mine)}"
        return text + (f" (and {more} more CTAs)" if more else "")


def without(lanes: Lanes, others: Lanes) -> Lanes:
    """The lanes that are not in another set."""
    if others.n == lanes.n:
        return Lanes(lanes.ids[:0])
    return Lanes(np.setdiff1d(lanes.ids, others.ids, assume_unique=True))


def _ranges(ids: np.ndarray) -> str:
    breaks = np.flatnonzero(np.diff(ids) != 1)
    starts = [0, *(breaks + 1)]
    ends = [*breaks, len(ids) - 1]
    parts = [f"{ids[a]}" if a == b else f"{ids[a]}-{ids[b]}" for a, b in zip(starts, ends, strict=True)]
    return ", ".join(parts[:6]) + (", ..." if len(parts) > 6 else "")

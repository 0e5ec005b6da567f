# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bulk copies on their way: what signals mbarriers, and the groups of threads that copy out of shared memory.

A load takes effect as a whole, per CTA that it goes to, at a moment of the machine's choice; so do stores, which read
shared memory at that moment too. Both keep their bytes of shared memory until somebody has waited for them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tilewright.sim.ptx.memory.copies import Combine, Linear, Tiled, read_shared, write_shared
from tilewright.sim.ptx.memory.transfer import Transfer
from tilewright.sim.ptx.order.clocks import FENCED, NEVER
from tilewright.sim.ptx.order.races import detector
from tilewright.sim.ptx.sync import mbarrier
from tilewright.sim.ptx.sync.step import Lanes, Step

if TYPE_CHECKING:
    from tilewright.sim.ptx.machine import Machine

_KIND = "bulk"


@dataclass
class Groups:
    """One thread's copies out of shared memory: groups committed, groups waited for, whether a group is open."""

    committed: int = 0
    waited: int = 0
    open: bool = False


class BulkCopies:
    """The state of a batch: the groups of each thread, and loads that have not arrived, by slot."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.groups: dict[int, Groups] = {}
        self.loads = np.zeros(machine.slots, np.int64)
        machine.on_exit.append(self._exited)

    def of(self, lane: int) -> Groups:
        """The groups of a thread."""
        return self.groups.setdefault(lane, Groups())

    def _exited(self, machine: Machine, lanes: Lanes) -> None:
        for lane in lanes.ids.tolist():
            groups = self.groups.pop(lane, None)
            if groups and (groups.waited < groups.committed or groups.open):
                why = "a thread ends while its bulk copies may still read shared memory: no cp.async.bulk.wait_group"
                raise machine.error("asynchronous", why, None, lane)
        for slot in np.unique(machine.slot_of[lanes.ids]):
            if self.loads[slot] and not machine.scheduler.alive[machine.slot_of == slot].any():
                why = "the CTA ends while a bulk copy into its shared memory is on its way"
                raise machine.error("asynchronous", why, None, int(lanes.ids[machine.slot_of[lanes.ids] == slot][0]))


def state(machine: Machine) -> BulkCopies:
    """The state of a machine's bulk copies."""
    found = machine.state.get(_KIND)
    if found is None:
        found = machine.state[_KIND] = BulkCopies(machine)
    return found


def load(
    step: Step,
    lane: int,
    fetch: Callable[[], np.ndarray],
    chunks: np.ndarray,
    barrier: int,
    source: np.ndarray | None = None,
) -> None:
    """Issue a copy into shared memory that signals an mbarrier.

    Args:
        step: the instruction; ``lane`` is the place in it of the thread that issues.
        lane: place in the step.
        fetch: gives the bytes, when the copy takes effect.
        chunks: flat positions of the 16-byte chunks of the destination.
        barrier: flat position of the mbarrier, in the destination's CTA.
        source: flat positions of the chunks of the source, where that is shared memory, too.
    """
    machine, copies = step.machine, state(step.machine)
    warp, slot = int(step.warps[lane]), int(chunks[0]) // machine.shared.stride
    races, column = detector(machine), 0
    if races is not None:
        races.used(step, barrier, warp, in_background=True)
        column = races.column(("mbarrier", barrier), warp)
        races.write_later(step, column, chunks, 16, warp, FENCED)
        races.lifetimes.begin(slot, column, step.ins, "write to")
        if source is not None:
            races.read_later(step, column, int(NEVER), source, 16, warp)
            races.lifetimes.begin(int(source[0]) // machine.shared.stride, column, step.ins, "read from")
    copies.loads[slot] += 1

    def complete(owner: Machine) -> None:
        copies.loads[slot] -= 1
        write_shared(owner, chunks, fetch())
        if races is not None:
            epoch = races.clocks.phases(("mbarrier", barrier)) + 1
            for places in [chunks] if source is None else [chunks, source]:
                races.settle(column, places, 16, epoch)
                races.lifetimes.finish(int(places[0]) // owner.shared.stride, column, epoch)
        mbarrier.complete_tx(owner, barrier, 16 * len(chunks), step.ins)

    machine.later(Transfer(complete, f"{step.ins.op.split('.')[0]} into shared memory", {}, step.ins, slot))


def store(step: Step, lane: int, target: Linear | Tiled, chunks: np.ndarray, combine: Combine | None) -> None:
    """Issue a copy out of shared memory, of the issuing thread's open group."""
    machine, thread = step.machine, int(step.ids[lane])
    groups, warp = state(machine).of(thread), int(step.warps[lane])
    groups.open = True
    if step.check("uninitialised") and machine.shared.undefined(chunks, 16) is not None:
        step.fail("uninitialised", "a bulk copy reads shared memory that was never written", step.only(lane))
    races = detector(machine)
    if races is not None:
        races.read_by_lane(step, chunks, 16, warp)
        races.read_later(step, races.column((_KIND, thread), warp), groups.committed + 1, chunks, 16, warp)
    keys = {_KIND: thread, "group": groups.committed}
    complete = _writer(target, chunks, combine)
    machine.later(Transfer(complete, "a bulk copy out of shared memory", keys, step.ins, int(step.slots[lane])))


def _writer(target: Linear | Tiled, chunks: np.ndarray, combine: Combine | None) -> Callable[[Machine], None]:
    def complete(owner: Machine) -> None:
        target.write(read_shared(owner, chunks), combine)
        owner.progress += 1

    return complete


def commit(step: Step) -> None:
    """cp.async.bulk.commit_group."""
    copies = state(step.machine)
    for thread in step.ids.tolist():
        groups = copies.of(thread)
        groups.committed += 1
        groups.open = False


def wait(step: Step, pending: int) -> None:
    """cp.async.bulk.wait_group: at most so many groups of each thread are on their way."""
    machine, copies, races = step.machine, state(step.machine), detector(step.machine)
    for lane, thread in enumerate(step.ids.tolist()):
        groups = copies.of(thread)
        done = max(groups.committed - pending, groups.waited)
        if done == groups.waited:
            continue
        groups.waited = done
        machine.finish(lambda t, me=thread, n=done: t.keys.get(_KIND) == me and t.keys["group"] < n)
        if races is not None:
            warp = int(step.warps[lane])
            races.see(np.array([warp]), races.column((_KIND, thread), warp), done)

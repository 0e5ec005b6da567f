# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How long shared memory lives: from the start of its CTA to the end of it, whoever reaches for it.

A CTA of a cluster may touch another one's shared memory only behind something that the other did (it has started), and
the other may end only when one of its threads knows that the access is over (PTX ISA, "Cluster of Cooperative Thread
Arrays"; CUDA C++ Programming Guide, "Distributed Shared Memory"). Both are questions to the vector clocks, so that one
order finds what happens in another. Copies on their way into or out of a CTA's shared memory are such accesses, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tilewright.sim.ptx.order.clocks import PLAIN, Clocks

if TYPE_CHECKING:
    from tilewright.sim.ptx.machine import Machine
    from tilewright.sim.ptx.sync.step import Lanes, Step
    from tilewright.sim.ptx.syntax.tree import Instruction


@dataclass
class _Visit:
    """The last access of a column of the clocks to a CTA's shared memory.

    Attributes:
        who: of the messages.
        ins: the instruction that made it.
        epoch: of the column, from which on the access is over.
        under_way: copies whose epoch is not known yet.
    """

    who: str
    ins: Instruction
    epoch: int = 0
    under_way: int = 0


class Lifetimes:
    """Who reached for the shared memory of each CTA of a batch from outside.

    Args:
        machine: the batch.
        clocks: of its race detector.
    """

    def __init__(self, machine: Machine, clocks: Clocks) -> None:
        self.machine, self.clocks = machine, clocks
        self._visits: dict[int, dict[int, _Visit]] = {}
        machine.on_exit.append(self._exited)

    def reach(self, step: Step, flat: np.ndarray) -> None:
        """Lanes of a step touch shared memory at `flat` (n,)."""
        if self.machine.cluster_size == 1:
            return
        slots = flat // self.machine.shared.stride
        remote = slots != step.slots
        if not remote.any():
            return
        warps = step.warps
        for slot, warp in np.unique(np.stack([slots[remote], warps[remote]], axis=1), axis=0).tolist():
            self._started(step, slot, warp)
            column = warp % self.clocks.per_cluster
            visit = _Visit(f"{self._warp(warp)} may still reach for", step.ins)
            visit.epoch = int(self.clocks.epochs(np.array([warp]))[0])
            self._visits.setdefault(slot, {})[column] = visit

    def begin(self, slot: int, column: int, ins: Instruction, does: str) -> None:
        """A copy of an agent begins to read or write (`does`) the shared memory of a CTA."""
        visit = self._visits.setdefault(slot, {}).setdefault(column, _Visit(f"a bulk copy may still {does}", ins))
        visit.ins, visit.under_way = ins, visit.under_way + 1

    def finish(self, slot: int, column: int, epoch: int) -> None:
        """One of these copies is over for those who have seen the agent's epoch."""
        visit = self._visits[slot][column]
        visit.epoch, visit.under_way = max(visit.epoch, epoch), visit.under_way - 1

    def _of(self, slot: int) -> np.ndarray:
        """The warps of a CTA."""
        count = self.machine.threads // 32
        return slot * count + np.arange(count)

    def _started(self, step: Step, slot: int, warp: int) -> None:
        """Something that the other CTA did must come before."""
        others = self._of(slot) % self.clocks.per_cluster
        if not self.clocks.rows[PLAIN, warp, others].any():
            why = f"shared memory of rank {int(self.machine.rank_of[slot])}, which may not have started: "
            why = f"{self._warp(warp)} reaches for {why}put barrier.cluster.arrive and .wait before"
            step.fail("race", why, step.warps == warp)

    def _exited(self, machine: Machine, lanes: Lanes) -> None:
        """Lanes have ended; of CTAs that end with them, all visits must be known to be over."""
        if not self._visits:
            return
        for slot in np.unique(machine.slot_of[lanes.sel]).tolist():
            mine = slice(slot * machine.threads, (slot + 1) * machine.threads)
            if slot in self._visits and not machine.scheduler.alive[mine].any():
                self._ended(slot, int(lanes.ids[machine.slot_of[lanes.sel] == slot][-1]))

    def _ended(self, slot: int, lane: int) -> None:
        seen = self.clocks.rows[PLAIN, self._of(slot)].max(axis=0)
        for column, visit in self._visits.pop(slot).items():
            if visit.under_way or visit.epoch > seen[column]:
                why = f"the CTA ends while {visit.who} its shared memory ({visit.ins.where()}): no thread of it has "
                why += "seen the end of that by a wait, such as barrier.cluster.arrive and .wait"
                raise self.machine.error("race", why, visit.ins, lane)

    def _warp(self, warp: int) -> str:
        in_cta = self.machine.threads // 32
        return f"warp {warp % in_cta} of rank {warp // in_cta % self.machine.cluster_size}"

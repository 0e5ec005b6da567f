# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The 16 named barriers of each CTA."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tilewright.sim.ptx.sync.step import Lanes, Step

if TYPE_CHECKING:
    from tilewright.sim.ptx.machine import Machine


class Barriers:
    """How many threads have come to each barrier, and how many must come.

    `expected` is 0 while a barrier is idle, and -1 where all threads of the CTA that are alive must come.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.arrived = np.zeros((machine.slots, 16), np.int64)
        self.expected = np.zeros((machine.slots, 16), np.int64)
        self.brought: dict[tuple[int, int], list] = {}

    def arrive(
        self, step: Step, numbers: np.ndarray, need: np.ndarray | None, arrive_only: bool, reduction
    ) -> np.ndarray | None:
        """Lanes come to barriers. Returns which of them must wait, or None."""
        slots = step.slots
        if reduction is None and self._together(step, slots, numbers, need):
            return None
        keys = slots * 16 + numbers
        coming = np.bincount(keys, minlength=self.arrived.size).reshape(self.arrived.shape)
        want = np.zeros_like(self.expected)
        want[slots, numbers] = -1 if need is None else need
        self._agree(step, keys, want, coming, need)
        touched = coming > 0
        self.expected[touched] = want[touched]
        self.arrived += coming
        self._publish(step, keys)
        if reduction is not None:
            self._bring(step, keys, reduction)
        done = touched & self._complete()
        if (self.arrived[touched & (self.expected > 0)] > self.expected[touched & (self.expected > 0)]).any():
            over = touched & (self.expected > 0) & (self.arrived > self.expected)
            step.fail("barrier", "more threads come to a barrier than it was told to expect", over[slots, numbers])
        if done.any():
            self._release(step, done, keys, arrive_only)
        waiting = ~done[slots, numbers]
        return waiting if waiting.any() else None

    def _together(self, step: Step, slots: np.ndarray, numbers: np.ndarray, need: np.ndarray | None) -> bool:
        """Whether all threads of whole CTAs come at once to an idle barrier, which is then over for them."""
        threads, number = self.machine.block_threads, int(numbers[0])
        if step.n % threads or (numbers != number).any():
            return False
        if need is not None and (need != self.machine.threads).any():
            return False
        first = slots[::threads]
        if (slots[threads - 1 :: threads] != first).any() or self.arrived[first, number].any():
            return False
        self.machine.progress += 1
        self.machine.races.all_met(first)
        return True

    def _publish(self, step: Step, keys: np.ndarray) -> None:
        """What the warps that come have done is there for those that the barrier lets go."""
        names = np.unique(keys)
        for key in names:
            part = step if len(names) == 1 else step.narrowed(keys == key)
            self.machine.races.release(part, ("barrier", int(key) // 16, int(key) % 16))

    def _agree(
        self, step: Step, keys: np.ndarray, want: np.ndarray, coming: np.ndarray, need: np.ndarray | None
    ) -> None:
        known = self.expected.ravel()[keys]
        asked = want.ravel()[keys]
        mine = -1 if need is None else need
        bad = ((known != 0) & (known != mine)) | (asked != mine)
        if bad.any():
            step.fail("barrier", "threads expect different numbers of threads at one barrier", bad)

    def _complete(self) -> np.ndarray:
        if (self.expected < 0).any():
            alive = self.machine.scheduler.alive.reshape(self.machine.slots, -1).sum(1)
            target = np.where(self.expected < 0, alive[:, None], self.expected)
        else:
            target = self.expected
        return (self.arrived >= target) & (self.arrived > 0)

    def _release(
        self, step: Step | None, done: np.ndarray, keys: np.ndarray | None = None, arrive_only: bool = True
    ) -> None:
        """Open barriers: those that wait go on."""
        machine = self.machine
        machine.progress += 1
        for slot, number in np.argwhere(done):
            slot, number = int(slot), int(number)
            self.arrived[slot, number] = 0
            self.expected[slot, number] = 0
            if (slot, number) in self.brought:
                self._reduce(slot, number)
            key = ("barrier", slot, number)
            warps = [lanes.warps for lanes, *_ in machine.scheduler.parked.get(key, ())]
            if step is not None and not arrive_only:
                warps.append(step.warps[keys == slot * 16 + number])
            machine.races.phase(key)
            if warps:
                machine.races.acquire(np.unique(np.concatenate(warps)), key)
            machine.wake(key)

    def _bring(self, step: Step, keys: np.ndarray, reduction) -> None:
        values = reduction.values(step)
        for key in np.unique(keys):
            mask = keys == key
            entry = self.brought.setdefault((int(key) // 16, int(key) % 16), [])
            entry.append((reduction, step.ins, step.ids[mask], values[mask]))

    def _reduce(self, slot: int, number: int) -> None:
        entries = self.brought.pop((slot, number))
        values = np.concatenate([values for _, _, _, values in entries])
        for reduction, ins, ids, _ in entries:
            reduction.write(Step(self.machine, ins, Lanes(ids)), values)

    def describe(self, slot: int, number: int) -> str:
        """How many threads a barrier has and needs, for messages."""
        need = int(self.expected[slot, number])
        alive = int(self.machine.scheduler.alive.reshape(self.machine.slots, -1)[slot].sum())
        text = f"barrier {number}: {int(self.arrived[slot, number])} of "
        return text + (f"{need} threads are there" if need > 0 else f"all {alive} threads that are left are there")

    def exited(self, lanes: Lanes) -> None:
        """Threads left: barriers for all threads of their CTAs may be complete now."""
        if (self.expected < 0).any():
            done = self._complete() & (self.expected < 0)
            if done.any():
                self._release(None, done)

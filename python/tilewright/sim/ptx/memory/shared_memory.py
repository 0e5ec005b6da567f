# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shared memory of a batch of CTAs, and the addresses of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tilewright.sim.ptx.memory.global_memory import SHARED_WINDOW, SLOT, Store

if TYPE_CHECKING:
    from tilewright.sim.ptx.machine import Machine
    from tilewright.sim.ptx.sync.step import Step

#: the address of a CTA's first byte: on sm_90 the first KiB is the system's, and so no variable has address 0
BASE = 0x400
#: an address carries the CTA's rank in its cluster above these bits
RANK_SHIFT = 24
_OFFSET = (1 << RANK_SHIFT) - 1
_ROUND = 1024


class SharedMemory(Store):
    """All CTAs' shared memory as one array: slot s has bytes [s * stride, s * stride + used)."""

    def __init__(self, machine: Machine, used: int, slots: int) -> None:
        self.used = used
        self.stride = max(-(-used // _ROUND) * _ROUND, _ROUND)
        self.machine = machine
        super().__init__(self.stride * slots)
        #: per lane: address of its CTA's first byte, and that byte's index in `data`
        self.own = (machine.rank_of.astype(np.int64) << RANK_SHIFT)[machine.slot_of] + BASE
        self.start = machine.slot_of.astype(np.int64) * self.stride

    def window(self, step: Step) -> np.ndarray | np.int64:
        """The address of each lane's own shared memory (32 bits)."""
        return np.int64(BASE) if self.machine.cluster_size == 1 else self.own[step.sel]

    def flat(self, step: Step, addresses: np.ndarray, nbytes: int, cluster: bool = False) -> np.ndarray:
        """Index into `data` of accesses of `nbytes` bytes.

        Args:
            step: the lanes.
            addresses: int64 (n,): 32-bit shared addresses, or generic ones.
            nbytes: size of each access.
            cluster: whether other CTAs of the cluster may be meant (.shared::cluster).

        Raises:
            EmulationError: out of bounds, or another CTA's memory through .shared::cta.
        """
        own = self.own[step.sel]
        offset = addresses - own
        if int(offset.min()) >= 0 and int(offset.max()) + nbytes <= self.used:
            return offset + self.start[step.sel]
        return self._other(step, addresses, nbytes, cluster)

    def _other(self, step: Step, addresses: np.ndarray, nbytes: int, cluster: bool) -> np.ndarray:
        """The general case of `flat`: generic addresses, other CTAs, errors."""
        low = addresses & 0xFFFFFFFF
        odd = (addresses >> SLOT) & ~np.int64(SHARED_WINDOW)
        if odd.any():
            step.fail(
                "out-of-bounds",
                f"address {int(addresses[np.flatnonzero(odd)[0]]):#x} is not in shared memory",
                odd != 0,
            )
        offset = (low & _OFFSET) - BASE
        slots = step.slots
        if self.machine.cluster_size > 1 or int(low.max()) > _OFFSET:
            slots = self._slots(step, slots, low >> RANK_SHIFT, cluster)
        self._bounds(step, offset, nbytes)
        return slots * self.stride + offset

    def flat_local(self, slots: np.ndarray, addresses: np.ndarray) -> np.ndarray:
        """Index into `data` of addresses that carry no rank (as in matrix descriptors), without checks."""
        return slots * self.stride + (addresses - BASE)

    def _slots(self, step: Step, slots: np.ndarray, ranks: np.ndarray, cluster: bool) -> np.ndarray:
        own = self.machine.rank_of[slots]
        bad = ranks >= self.machine.cluster_size
        if bad.any():
            step.fail(
                "out-of-bounds", f"rank {int(ranks[bad][0])} in a cluster of {self.machine.cluster_size} CTAs", bad
            )
        if not cluster:
            bad = ranks != own
            if bad.any():
                step.fail(
                    "out-of-bounds", f"memory of CTA {int(ranks[bad][0])} of the cluster through .shared::cta", bad
                )
        self.check_alive(step, slots - own + ranks, np.not_equal(ranks, own))
        return slots - own + ranks

    def check_alive(self, step: Step, slots: np.ndarray, remote: np.ndarray) -> None:
        """Fail where lanes reach for the shared memory of another CTA whose threads have all exited."""
        if not remote.any():
            return
        alive = np.asarray(self.machine.scheduler.alive.reshape(self.machine.slots, -1).any(axis=1))
        bad = remote & ~alive[slots]
        if bad.any():
            why = "shared memory of a CTA of the cluster that has ended: keep it alive with barrier.cluster"
            step.fail("asynchronous", why, bad)

    def _bounds(self, step: Step, offset: np.ndarray, nbytes: int) -> None:
        if int(offset.min()) < 0 or int(offset.max()) + nbytes > self.used:
            bad = (offset < 0) | (offset + nbytes > self.used)
            at = int(offset[bad][0])
            step.fail("out-of-bounds", f"{nbytes} bytes at offset {at} of {self.used} bytes of shared memory", bad)

# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loads and stores with every check, for all state spaces."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tilewright.sim.ptx.memory.global_memory import (
    FIRST,
    LOCAL_WINDOW,
    PARAM_WINDOW,
    SHARED_WINDOW,
    SLOT,
    Allocation,
    Store,
)
from tilewright.sim.ptx.syntax.types import WORDS

if TYPE_CHECKING:
    from tilewright.sim.ptx.machine import Machine
    from tilewright.sim.ptx.sync.step import Step

_LOW = (1 << SLOT) - 1


class Access:
    """The memory pipeline of a machine: addresses to arrays."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine

    def load(self, step: Step, space: str, addresses: np.ndarray, width: int, count: int = 1) -> np.ndarray:
        """Read `count` words of `width` bytes at each lane's address.

        Args:
            step: the lanes.
            space: "global", "shared", "shared::cluster", "local", "param", "const" or "generic".
            addresses: int64 (n,).
            width: bytes of a word: 1, 2, 4, 8.
            count: words, neighbours in memory.

        Returns:
            Unsigned words: (n,) for count 1, else (n, count).

        Raises:
            EmulationError: misaligned, out of bounds, uninitialised, a race.
        """
        total = width * count
        self.aligned(step, addresses, total)
        out = np.empty(0, WORDS[width])
        for mask, store, offsets in self._parts(step, space, addresses, total):
            part = step if mask is None else step.narrowed(mask)
            self.readable(part, store, offsets, total)
            values = store.rows(width, count).take(offsets // total, axis=0)
            if mask is None:
                out = values
            else:
                if not out.size:
                    out = np.empty((step.n,) if count == 1 else (step.n, count), WORDS[width])
                out[mask] = values
        trace = self.machine.trace
        if trace is not None:
            trace.access(step, space, addresses, total, "read")
        return out

    def store(self, step: Step, space: str, addresses: np.ndarray, values: np.ndarray) -> None:
        """Write words, (n,) or (n, count) unsigned, at each lane's address.

        Raises:
            EmulationError: misaligned, out of bounds, a race.
        """
        width = values.dtype.itemsize
        count = values.shape[1] if values.ndim == 2 else 1
        if values.ndim == 2 and count == 1:
            values = values[:, 0]
        total = width * count
        self.aligned(step, addresses, total)
        for mask, store, offsets in self._parts(step, space, addresses, total):
            part, data = (step, values) if mask is None else (step.narrowed(mask), values[mask])
            if space in ("param", "const"):
                step.fail("out-of-bounds", f"a store to the {space} space")
            if store is self.machine.shared:
                self.machine.races.write(part, offsets, total, data)
            elif self.machine.grid_races is not None and isinstance(store, Allocation):
                self.machine.grid_races.write(part, store, offsets, data)
            rows = store.rows(width, count)
            index = offsets // total
            rows[index] = data
            if not getattr(store, "fully_defined", False):
                store.mark(offsets, total)
            if store is not self.machine.local:
                self._distinct(part, rows, index, data)
        self.machine.progress += 1
        if self.machine.trace is not None:
            self.machine.trace.access(step, space, addresses, total, "write")

    def locate(
        self, step: Step, space: str, addresses: np.ndarray, nbytes: int
    ) -> list[tuple[np.ndarray | None, Store, np.ndarray]]:
        """Where accesses go: (mask of the lanes or None for all, memory, byte offsets in it); alignment is checked."""
        self.aligned(step, addresses, nbytes)
        return list(self._parts(step, space, addresses, nbytes))

    # ---- checks ----------------------------------------------------------

    def aligned(self, step: Step, addresses: np.ndarray, nbytes: int) -> None:
        """Fail where an address is no multiple of the size."""
        if nbytes & (nbytes - 1):
            step.fail("misaligned", f"an access of {nbytes} bytes: not a power of two")
        if int(np.bitwise_or.reduce(addresses)) & (nbytes - 1):
            bad = addresses & (nbytes - 1)
            at = int(addresses[np.flatnonzero(bad)[0]])
            step.fail(
                "misaligned", f"address {at:#x} of an access of {nbytes} bytes is no multiple of {nbytes}", bad != 0
            )

    def readable(self, step: Step, store: Store, offsets: np.ndarray, nbytes: int, atomic: bool = False) -> None:
        """Fail where bytes are read that nothing has written, or that another thread writes at the same time."""
        if not atomic and store is self.machine.shared:
            self.machine.races.read(step, offsets, nbytes)
        elif not atomic and self.machine.grid_races is not None and isinstance(store, Allocation):
            self.machine.grid_races.read(step, store, offsets, nbytes)
        if getattr(store, "fully_defined", False) or not self.machine.check_memory:
            return
        bad = store.undefined(offsets, nbytes)
        if bad is not None:
            at = int(offsets[bad][0])
            step.fail(
                "uninitialised", f"a read of {nbytes} bytes that nothing has written, {self._name(store, at)}", bad
            )

    def _distinct(self, step: Step, rows: np.ndarray, index: np.ndarray, data: np.ndarray) -> None:
        """Two lanes that write different values to one place in one instruction."""
        if "race" not in self.machine.checks:
            return
        differs = rows.take(index, axis=0) != data
        if differs.any():
            bad = differs if differs.ndim == 1 else differs.any(axis=1)
            step.fail("race", "two threads write different values to one address in one instruction", bad)

    def _name(self, store: Store, offset: int) -> str:
        if store is self.machine.shared:
            return f"at offset {offset % self.machine.shared.stride} of shared memory"
        if store is self.machine.local:
            return "in local memory"
        return f"at offset {offset} of {store}"

    # ---- addresses -------------------------------------------------------

    def _parts(self, step: Step, space: str, addresses: np.ndarray, nbytes: int):
        if space == "global" or space == "const":
            return self._global(step, addresses, nbytes)
        if space.startswith("shared"):
            return [(None, self.machine.shared, self.machine.shared.flat(step, addresses, nbytes, space != "shared"))]
        if space == "param":
            return [
                (
                    None,
                    self.machine.parameters,
                    self._window(
                        step,
                        addresses,
                        nbytes,
                        self.machine.parameters,
                        f"{self.machine.parameters.size} bytes of parameters",
                    ),
                )
            ]
        if space == "local":
            return [(None, self.machine.local, self._local(step, addresses, nbytes))]
        return self._generic(step, addresses, nbytes)

    def _generic(self, step: Step, addresses: np.ndarray, nbytes: int):
        windows = addresses >> SLOT
        first = int(windows[0])
        if (windows == first).all():
            return self._in_window(step, first, addresses, nbytes, None)
        parts = []
        for window in np.unique(np.minimum(windows, FIRST)):
            mask = np.minimum(windows, FIRST) == window
            part = step.narrowed(mask)
            parts += self._in_window(part, int(window), addresses[mask], nbytes, mask)
        return parts

    def _in_window(self, step: Step, window: int, addresses: np.ndarray, nbytes: int, mask: np.ndarray | None):
        low = addresses & _LOW
        if window == SHARED_WINDOW:
            return [(mask, self.machine.shared, self.machine.shared.flat(step, low, nbytes, True))]
        if window == LOCAL_WINDOW:
            return [(mask, self.machine.local, self._local(step, low, nbytes))]
        if window == PARAM_WINDOW:
            return [
                (
                    mask,
                    self.machine.parameters,
                    self._window(
                        step,
                        low,
                        nbytes,
                        self.machine.parameters,
                        f"{self.machine.parameters.size} bytes of parameters",
                    ),
                )
            ]
        parts = self._global(step, addresses, nbytes)
        if mask is None:
            return parts
        return [(_widen(mask, inner), store, offsets) for inner, store, offsets in parts]

    def _global(self, step: Step, addresses: np.ndarray, nbytes: int):
        allocation = self.machine.memory.allocations.get(int(addresses[0]) >> SLOT)
        if allocation is not None:
            offsets = addresses - allocation.address
            if int(offsets.min()) >= 0 and int(offsets.max()) + nbytes <= allocation.size:
                return [(None, allocation, offsets)]
        numbers = addresses >> SLOT
        first = int(numbers[0])
        if (numbers == first).all():
            allocation = self._allocation(step, first, addresses, None)
            return [
                (
                    None,
                    allocation,
                    self._window(step, addresses - allocation.address, nbytes, allocation, str(allocation)),
                )
            ]
        parts = []
        for number in np.unique(numbers):
            mask = numbers == number
            allocation = self._allocation(step, int(number), addresses, mask)
            part = step.narrowed(mask)
            offsets = self._window(part, addresses[mask] - allocation.address, nbytes, allocation, str(allocation))
            parts.append((mask, allocation, offsets))
        return parts

    def _allocation(self, step: Step, number: int, addresses: np.ndarray, mask: np.ndarray | None) -> Allocation:
        found = self.machine.memory.allocations.get(number)
        if found is None:
            at = int(addresses[0] if mask is None else addresses[mask][0])
            if FIRST > number > 0:
                step.fail(
                    "out-of-bounds", f"address {at:#x} belongs to another state space, not to global memory", mask
                )
            step.fail("out-of-bounds", f"address {at:#x}: {self.machine.memory.describe(at)}", mask)
        return found

    def _window(self, step: Step, offsets: np.ndarray, nbytes: int, store: Store, name: str) -> np.ndarray:
        if int(offsets.min()) < 0 or int(offsets.max()) + nbytes > store.size:
            bad = (offsets < 0) | (offsets + nbytes > store.size)
            at = int(offsets[bad][0])
            step.fail("out-of-bounds", f"{nbytes} bytes at offset {at} of {name}", bad)
        return offsets

    def _local(self, step: Step, offsets: np.ndarray, nbytes: int) -> np.ndarray:
        size = self.machine.local_bytes
        if int(offsets.min()) < 0 or int(offsets.max()) + nbytes > size:
            bad = (offsets < 0) | (offsets + nbytes > size)
            step.fail(
                "out-of-bounds", f"{nbytes} bytes at offset {int(offsets[bad][0])} of {size} bytes of local memory", bad
            )
        return step.ids * self.machine.local_stride + offsets


def _widen(outer: np.ndarray, inner: np.ndarray | None) -> np.ndarray:
    if inner is None:
        return outer
    mask = np.zeros_like(outer)
    mask[np.flatnonzero(outer)[inner]] = True
    return mask

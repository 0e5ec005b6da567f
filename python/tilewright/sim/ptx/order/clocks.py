# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Who has seen what: vector clocks of warps and of asynchronous agents.

A *column* is somebody whose accesses are counted: a warp, or an asynchronous agent such as "the copies that signal
this mbarrier". Row w of the clocks says how far along each column warp w has seen. There are two planes: plain
happens-before, and the same *through a proxy fence*: what warps wrote and then handed to the asynchronous proxy by
fence.proxy.async (PTX ISA 8.6, "Proxies"; 9.7.13.4, "membar / fence"). CTAs of different clusters never meet in shared
memory, so columns are numbered within a cluster. Epoch 1 of a warp is its start: its accesses carry 2 and more, so that
who has seen 1 knows that the warp is there, and nothing else.

Source: the vector clocks of Mattern and Fidge, as race detectors use them (Flanagan and Freund, "FastTrack", PLDI
2009).
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

#: an access in the background that nobody has waited for yet
NEVER = np.int32(2**31 - 1)
PLAIN, FENCED = 0, 1


class Clocks:
    """The clocks of a batch.

    Args:
        warps: number of warps in the batch.
        per_cluster: warps of a cluster; columns 0 to per_cluster - 1 are its warps.
    """

    def __init__(self, warps: int, per_cluster: int) -> None:
        self.per_cluster = per_cluster
        self.columns = per_cluster
        self.rows = np.zeros((2, warps, per_cluster + 16), np.int32)
        own = np.arange(warps)
        self.rows[PLAIN, own, own % per_cluster] = 2
        self._agents: dict[tuple[int, Hashable], int] = {}
        self._used = [per_cluster] * (warps // per_cluster)
        self._published: dict[Hashable, np.ndarray] = {}
        self._visible: dict[Hashable, np.ndarray] = {}
        self._phases: dict[Hashable, int] = {}
        self._marked: dict[int, np.ndarray] = {}
        self.names: dict[int, str] = {}

    def column(self, cluster: int, key: Hashable) -> int:
        """The column of an asynchronous agent of a cluster."""
        found = self._agents.get((cluster, key))
        if found is None:
            found = self._agents[cluster, key] = self._used[cluster]
            self._used[cluster] += 1
            self.columns = max(self.columns, self._used[cluster])
            if self.columns > self.rows.shape[2]:
                self._widen()
            self.names[found] = key[0] if isinstance(key, tuple) else str(key)
        return found

    def shared(self, count: int) -> int:
        """The first of ``count`` new columns for agents that all clusters know alike."""
        first = max(self._used)
        self._used = [first + count] * len(self._used)
        self.columns = max(self.columns, first + count)
        while self.columns > self.rows.shape[2]:
            self._widen()
        return first

    def _widen(self) -> None:
        extra = self.rows.shape[2]
        self.rows = np.concatenate([self.rows, np.zeros((*self.rows.shape[:2], extra), np.int32)], axis=2)
        for table in (self._published, self._visible):
            for key, row in table.items():
                table[key] = np.concatenate([row, np.zeros((2, extra), np.int32)], axis=1)

    def epochs(self, warps: np.ndarray) -> np.ndarray:
        """The present epoch of warps: accesses made now carry it."""
        return self.rows[PLAIN, warps, warps % self.per_cluster]

    def mark(self, warps: np.ndarray) -> None:
        """A fence: what these warps have seen and done may be published by relaxed arrivals."""
        for warp in warps.tolist():
            self._marked[warp] = self.rows[:, warp].copy()
        self.rows[PLAIN, warps, warps % self.per_cluster] += 1

    def publish(self, warps: np.ndarray, key: Hashable, relaxed: bool = False) -> None:
        """Warps (each once) publish on an object what they have seen and did; if relaxed, up to their last fence,
        or that they have started."""
        if relaxed:
            rows = [self._marked[warp] for warp in warps.tolist() if warp in self._marked]
            row = np.zeros((2, self.rows.shape[2]), np.int32)
            for one in rows:
                np.maximum(row[:, : one.shape[1]], one, out=row[:, : one.shape[1]])
            started = warps % self.per_cluster
            row[PLAIN, started] = np.maximum(row[PLAIN, started], 1)
        else:
            row = self.rows[:, warps].max(axis=1)
        found = self._published.get(key)
        self._published[key] = row if found is None else np.maximum(found, row)
        self.rows[PLAIN, warps, warps % self.per_cluster] += 1

    def add(self, key: Hashable, column: int, epoch: int) -> None:
        """What an agent did up to an epoch is published on an object as well (after `publish`)."""
        row = self._published[key]
        row[:, column] = np.maximum(row[:, column], epoch)

    def phase(self, key: Hashable, cluster: int) -> None:
        """A phase of an object is complete: what was published on it can be acquired, its copies as well."""
        row = self._published.get(key)
        if row is None:
            row = self._published[key] = np.zeros((2, self.rows.shape[2]), np.int32)
        self._phases[key] = self._phases.get(key, 0) + 1
        if (cluster, key) in self._agents:
            row[:, self._agents[cluster, key]] = self._phases[key]
        self._visible[key] = row.copy()

    def phases(self, key: Hashable) -> int:
        """How many phases of an object are complete."""
        return self._phases.get(key, 0)

    def acquire(self, warps: np.ndarray, key: Hashable) -> None:
        """Warps take over what the completed phases of an object made visible."""
        row = self._visible.get(key)
        if row is not None:
            self.rows[:, warps] = np.maximum(self.rows[:, warps], row[:, None])

    def forget(self, key: Hashable) -> None:
        """An object's place in memory becomes another object."""
        for table in (self._published, self._visible):
            table.pop(key, None)

    def see(self, warps: np.ndarray, columns: int | np.ndarray, epochs: int | np.ndarray) -> None:
        """Warps (each once) have waited for an agent's accesses up to an epoch."""
        self.rows[:, warps, columns] = np.maximum(self.rows[:, warps, columns], epochs)

    def fence(self, warps: np.ndarray) -> None:
        """fence.proxy.async: what these warps have seen and done is handed to the asynchronous proxy."""
        warps = np.unique(warps)
        self.rows[FENCED, warps] = self.rows[PLAIN, warps]
        self.rows[PLAIN, warps, warps % self.per_cluster] += 1

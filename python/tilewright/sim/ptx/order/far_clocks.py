# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How far the warps of a batch have seen the warps of other clusters, and what a release leaves for an acquire.

Within a cluster the columns of the clocks (:mod:`tilewright.sim.ptx.order.clocks`) are its warps; a warp of another
cluster gets a column when it is first heard of, the same for all clusters of the batch. A barrier of the whole grid
brings every warp to every other one, so all of it goes by arrays: a record of a thousand warps costs microseconds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewright.sim.ptx.order.clocks import FENCED, PLAIN, Clocks


@dataclass(frozen=True, eq=False)
class Record:
    """What was seen up to a release: warps of the launch (n,), int64, rising, and their epochs (2, n), int32.

    The second row is what was seen through a fence of proxies: a release alone hands nothing to the asynchronous proxy.
    """

    warps: np.ndarray
    epochs: np.ndarray

    def merged(self, other: Record | None) -> Record:
        """What either of two says."""
        if other is None or other.warps.size == 0 or other is self:
            return self
        warps = np.union1d(self.warps, other.warps)
        epochs = np.zeros((2, warps.size), np.int32)
        epochs[:, np.searchsorted(warps, self.warps)] = self.epochs
        at = np.searchsorted(warps, other.warps)
        epochs[:, at] = np.maximum(epochs[:, at], other.epochs)
        return Record(warps, epochs)


NOTHING = Record(np.zeros(0, np.int64), np.zeros((2, 0), np.int32))


class FarClocks:
    """The columns of a batch's clocks that are warps of other clusters.

    Args:
        clocks: the batch's clocks.
        number: the warp of the launch that each warp of the batch is.
    """

    def __init__(self, clocks: Clocks, number: np.ndarray) -> None:
        self.clocks = clocks
        self.number = number
        self._known = np.zeros(0, np.int64)
        self._columns = np.zeros(0, np.int64)

    def seen(self, warp: int) -> Record:
        """How far a warp of the batch has seen each warp of the launch, itself among them."""
        per_cluster = self.clocks.per_cluster
        rows = self.clocks.rows[[PLAIN, FENCED], warp]
        own = np.flatnonzero(rows[0, :per_cluster])
        first = int(self.number[warp]) - warp % per_cluster
        far = rows[:, self._columns]
        there = far[0] > 0
        warps = np.concatenate([own + first, self._known[there]])
        order = np.argsort(warps, kind="stable")
        return Record(warps[order], np.concatenate([rows[:, own], far[:, there]], axis=1)[:, order])

    def see(self, warp: int, record: Record) -> None:
        """A warp of the batch has seen what a record says."""
        if record.warps.size:
            columns = self._find(np.full(record.warps.size, warp), record.warps, make=True)
            rows = self.clocks.rows
            for plane, epochs in zip((PLAIN, FENCED), record.epochs, strict=True):
                rows[plane, warp, columns] = np.maximum(rows[plane, warp, columns], epochs)

    def epochs(self, warps: np.ndarray, others: np.ndarray, plane: int) -> np.ndarray:
        """How far warps of the batch (n,) have each seen a warp of the launch (n,); 0 where never."""
        columns = self._find(warps, others, make=False)
        return np.where(columns < 0, 0, self.clocks.rows[plane, warps, columns])

    def _find(self, warps: np.ndarray, others: np.ndarray, make: bool) -> np.ndarray:
        """The columns of warps of the launch in the clocks of warps of the batch; -1 for one not heard of."""
        per_cluster = self.clocks.per_cluster
        near = others // per_cluster == self.number[warps] // per_cluster
        columns = np.where(near, others % per_cluster, self._look_up(others))
        if make and (columns < 0).any():
            self._learn(np.unique(others[columns < 0]))
            columns = np.where(near, columns, self._look_up(others))
        return columns

    def _look_up(self, others: np.ndarray) -> np.ndarray:
        if self._known.size == 0:
            return np.full(others.size, -1)
        at = np.minimum(np.searchsorted(self._known, others), self._known.size - 1)
        return np.where(self._known[at] == others, self._columns[at], -1)

    def _learn(self, new: np.ndarray) -> None:
        first = self.clocks.shared(new.size)
        known = np.concatenate([self._known, new])
        order = np.argsort(known)
        self._known = known[order]
        self._columns = np.concatenate([self._columns, np.arange(first, first + new.size)])[order]

# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which micro-tile covers a pattern at the least cost: PIT's selection by a database of kernels (SOSP 2023, section 3).

The pattern is seen through each micro-tile: the share of those that are all zero. A kernel's time is looked up at the
largest share recorded that is not above it, so that the choice never promises what was not measured; the dense kernel
stands beside them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Choice:
    """What covers a pattern.

    Attributes:
        unit: sizes of the micro-tile; None: the dense kernel.
        time: predicted, in the unit of the database.
    """

    unit: tuple[int, ...] | None
    time: float


@dataclass(frozen=True)
class Database:
    """Times of kernels.

    Attributes:
        dense: of the dense kernel.
        kernels: of each micro-tile, by the share of zero micro-tiles; a share of 0 among them.
    """

    dense: float
    kernels: Mapping[tuple[int, ...], Mapping[float, float]]

    def time(self, unit: tuple[int, ...], zeros: float) -> float:
        """The time recorded at the largest share that is not above `zeros`; infinite where there is none."""
        recorded = self.kernels[unit]
        shares = [share for share in recorded if share <= zeros]
        return recorded[max(shares)] if shares else math.inf

    def choose(self, zeros: Callable[[tuple[int, ...]], float]) -> Choice:
        """The cheapest cover.

        Args:
            zeros: the share of micro-tiles of some size that are all zero.
        """
        best = Choice(None, self.dense)
        for unit in self.kernels:
            time = self.time(unit, zeros(unit))
            if time < best.time:
                best = Choice(unit, time)
        return best


def zeros_of(sample: np.ndarray, unit: Sequence[int]) -> float:
    """The share of micro-tiles of a tensor that are all zero.

    Args:
        sample: any shape; ragged micro-tiles at the border count as whole ones.
        unit: sizes of a micro-tile.
    """
    live = sample != 0
    for axis, step in enumerate(unit):
        live = np.add.reduceat(live, np.arange(0, live.shape[axis], step), axis=axis, dtype=np.int64) > 0
    return float(1 - live.mean()) if live.size else 1.0


def zeros_of_blocks(share: float, block: Sequence[int]) -> Callable[[tuple[int, ...]], float]:
    """What :func:`zeros_of` gives for a random pattern of independent zero blocks, for micro-tiles of any size.

    Args:
        share: of zero blocks.
        block: their sizes.
    """
    return lambda unit: share ** math.prod(math.ceil(u / b) for u, b in zip(unit, block, strict=True))

# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The Pareto front of points: what nothing else beats in one way without losing in another."""

from __future__ import annotations

from collections.abc import Sequence


def front(costs: Sequence[tuple[float, ...]]) -> list[int]:
    """Return the numbers of the points that no other dominates; of equal ones all.

    A point dominates another if it costs no more in any way and less in one.
    """
    order = sorted(range(len(costs)), key=lambda number: costs[number])
    kept: list[int] = []
    for number in order:  # what dominates a point comes before it
        if not any(dominates(costs[other], costs[number]) for other in kept):
            kept.append(number)
    return sorted(kept)


def dominates(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    """Whether one costs no more than the other in any way, and less in one."""
    return one != other and all(mine <= its for mine, its in zip(one, other, strict=True))

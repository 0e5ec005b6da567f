# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The folded ring: a ring of cores laid along a line so that neighbours stand at most two hops apart.

Two is the least there is: on a line of three cores or more no closed walk through all takes single hops only (WaferLLM,
OSDI 2025, section 5, "interleaving"). Even positions are visited upwards, odd ones back down.
"""

from __future__ import annotations

import numpy as np


def physical(logical: int, length: int) -> int:
    """Where along the line the core stands that is ``logical``-th along the ring of ``length`` cores."""
    return min(2 * logical, 2 * (length - logical) - 1)


def logical(physical: int, length: int) -> int:
    """Which place along the ring of ``length`` cores the core has that stands at ``physical`` on the line."""
    return physical // 2 if physical % 2 == 0 else length - (physical + 1) // 2


def ring_positions(length: int) -> np.ndarray:
    """Place along the ring of each position on the line, int64 [length]."""
    return np.array([logical(position, length) for position in range(length)], dtype=np.int64)


def walk(length: int) -> list[int]:
    """Positions on the line in the order of the ring."""
    return [physical(place, length) for place in range(length)]


def successor(position: int, length: int) -> int:
    """To whom the core at this position on the line sends: the next along the ring."""
    return physical((logical(position, length) + 1) % length, length)


def predecessor(position: int, length: int) -> int:
    """From whom the core at this position on the line receives: the one before along the ring."""
    return physical((logical(position, length) - 1) % length, length)


def link_loads(length: int) -> tuple[list[int], list[int]]:
    """Flows over each link of the line when every core sends to its successor: (upward links, downward links).

    Returns:
        per link between positions i and i + 1, how many paths cross it upwards, and how many downwards.
    """
    up, down = [0] * max(0, length - 1), [0] * max(0, length - 1)
    for position in range(length):
        target = successor(position, length)
        links = up if target > position else down
        for link in range(min(position, target), max(position, target)):
            links[link] += 1
    return up, down

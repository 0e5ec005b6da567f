# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Best-fit placement of buffers with known lifetimes in one block of memory (Welder, OSDI 2023, section 4.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

#: Buffers start at multiples of that many bytes.
ALIGNMENT = 64


@dataclass(frozen=True)
class Request:
    """A buffer that lives from one step to another, both included."""

    first: int
    last: int
    bytes: int


@dataclass(frozen=True)
class Placement:
    """Offsets in the order of the requests, and the size of the block."""

    offsets: tuple[int, ...]
    bytes: int


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def pack(requests: Sequence[Request]) -> Placement:
    """Place each request, in order of its first step, into the smallest hole that is free for its whole life.

    The block grows at its end where no hole is large enough.
    """
    offsets = [0] * len(requests)
    placed: list[int] = []
    total = 0
    for number in sorted(range(len(requests)), key=lambda n: (requests[n].first, -requests[n].bytes)):
        request = requests[number]
        size = _aligned(request.bytes)
        busy = sorted(
            (offsets[other], offsets[other] + _aligned(requests[other].bytes))
            for other in placed
            if requests[other].first <= request.last and request.first <= requests[other].last
        )
        holes, end = [], 0
        for start, stop in busy:
            if start - end >= size:
                holes.append((start - end, end))
            end = max(end, stop)
        offsets[number] = min(holes)[1] if holes else end
        total = max(total, offsets[number] + size)
        placed.append(number)
    return Placement(tuple(offsets), total)

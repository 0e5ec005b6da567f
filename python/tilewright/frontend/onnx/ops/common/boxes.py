# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rectangles as detectors give them, for bodies on elements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Number = Any  # a Scalar, or an array of known elements


@dataclass(frozen=True)
class Box:
    """Corners, the smaller first."""

    low: tuple[Number, Number]
    high: tuple[Number, Number]


def box_of(m: Any, numbers: Sequence[Number], centered: bool) -> Box:
    """The box of four numbers: two opposite corners, or the center with width and height (`centered`)."""
    a, c, d, e = numbers
    if centered:
        return Box((a - d * 0.5, c - e * 0.5), (a + d * 0.5, c + e * 0.5))
    return Box((m.minimum(a, d), m.minimum(c, e)), (m.maximum(a, d), m.maximum(c, e)))


def overlap(m: Any, one: Box, other: Box) -> Number:
    """Intersection over union; 0 where a box has no area."""

    def area(low: tuple[Number, Number], high: tuple[Number, Number]) -> Number:
        sides = [m.maximum(h - lo, 0.0) for lo, h in zip(low, high, strict=True)]
        return sides[0] * sides[1]

    low = tuple(m.maximum(p, q) for p, q in zip(one.low, other.low, strict=True))
    high = tuple(m.minimum(p, q) for p, q in zip(one.high, other.high, strict=True))
    first, second, common = area(one.low, one.high), area(other.low, other.high), area(low, high)
    empty = m.logical_or(first <= 0.0, second <= 0.0)
    return m.where(empty, 0.0, common / m.where(empty, 1.0, first + second - common))

# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Positions that the body of a `linalg.generic` computes, between floats and integers, and interpolation there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tilewright.frontend.builder.dims import Size
from tilewright.frontend.builder.dtypes import I32, I64
from tilewright.frontend.builder.scalars import Scalar
from tilewright.frontend.onnx.registry import Builder

Number = Any  # float | Scalar


class Tap(NamedTuple):
    """One position along an axis that an interpolated value reads."""

    at: Scalar  # a whole number as a float; it is limited to the axis where it is read
    weight: Scalar | None = None
    inside: Scalar | None = None  # what lies elsewhere counts as 0


def number(m, value: Scalar, dtype: np.dtype) -> Scalar:
    """An integer or index as a float."""
    return m.cast(m.cast(value, I64), dtype)


def measure(b: Builder, size: Size, dtype: np.dtype) -> Number:
    """A size as a float: of Python where it is known."""
    return float(size) if isinstance(size, int) else number(b.math, b.idx(size), dtype)


def bounded(m, value: Scalar, low: Number, high: Number) -> Scalar:
    """`value` limited to a range; NaN becomes `low`, so that a position stays one."""
    value = m.where(value > low, value, low)
    return m.where(value < high, value, high)


def interpolate(
    m, read: Callable[[list[Scalar]], Scalar], taps: Sequence[Sequence[Tap]], extents: Sequence[Number]
) -> Scalar:
    """The weighted sum over the taps of each axis in turn; `read` gets one position (i32) per axis."""

    def along(axis: int, place: list[Scalar]) -> Scalar:
        if axis == len(taps):
            return read(place)
        total: Scalar | None = None
        for tap in taps[axis]:
            at = m.cast(bounded(m, tap.at, 0.0, extents[axis] - 1.0), I32)
            value = along(axis + 1, [*place, at])
            value = value if tap.inside is None else m.where(tap.inside, value, 0)
            value = value if tap.weight is None else value * tap.weight
            total = value if total is None else total + value
        assert total is not None
        return total

    return along(0, [])


def linear_taps(m, x: Scalar) -> list[Tap]:
    """The two neighbours of a coordinate."""
    base = m.floor(x)
    part = x - base
    return [Tap(base, 1.0 - part), Tap(base + 1.0, part)]


def cubic_weights(part: Number, a: float) -> list[Number]:
    """Keys' weights of the four neighbours of a place that lies `part` behind the second."""
    before, behind, rest = part + 1.0, 2.0 - part, 1.0 - part
    return [
        ((before * a - 5.0 * a) * before + 8.0 * a) * before - 4.0 * a,
        (part * (a + 2.0) - (a + 3.0)) * part * part + 1.0,
        (rest * (a + 2.0) - (a + 3.0)) * rest * rest + 1.0,
        ((behind * a - 5.0 * a) * behind + 8.0 * a) * behind - 4.0 * a,
    ]


def cubic_taps(m, x: Scalar, a: float) -> list[Tap]:
    """The four neighbours of a coordinate."""
    base = m.floor(x)
    return [Tap(base + float(i - 1), w) for i, w in enumerate(cubic_weights(x - base, a))]


def or_zero(m, taps: Sequence[Tap], extent: Number) -> list[Tap]:
    """Taps outside of the axis count as 0."""
    return [Tap(t.at, t.weight, m.logical_and(t.at >= 0.0, t.at <= extent - 1.0)) for t in taps]

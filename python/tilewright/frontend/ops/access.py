# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Positions that the body of a `linalg.generic` computes, between floats and integers."""

from __future__ import annotations

import numpy as np

from ..scalars import Scalar

I32, I64 = np.dtype(np.int32), np.dtype(np.int64)


def number(m, value: Scalar, dtype: np.dtype) -> Scalar:
    """An integer or index as a float."""
    return m.cast(m.cast(value, I64), dtype)


def bounded(m, value: Scalar, low: float, high: float) -> Scalar:
    """`value` limited to a range; NaN becomes `low`, so that a position stays one."""
    value = m.where(value > low, value, low)
    return m.where(value < high, value, high)


def whole(m, value: Scalar, low: int, high: int) -> Scalar:
    """A float that holds an integer as an i32, limited to a range."""
    return m.cast(bounded(m, value, float(low), float(high)), I32)

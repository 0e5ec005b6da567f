# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Numbers rounded to codes of a few bits: the bodies that the front end and the lowering of formats share."""

from __future__ import annotations

import numpy as np

from tilewright.frontend.builder.dtypes import F32, int_range, is_int, is_narrow, promoted


def saturated(m, value, dtype: np.dtype, saturate: bool = True):
    """A number (a whole one for integers) as a small type, limited to its range; NaN is the smallest integer."""
    if not is_int(dtype):
        return m.cast(value, dtype, saturate)
    low, high = (float(limit) for limit in int_range(dtype))
    value = m.where(value > low, value, low)
    return m.fitting_int(m.where(value < high, value, high), dtype)


def quantized(m, x, scale, *zero, dtype: np.dtype, precision: np.dtype | None = None, saturate: bool = True):
    """``saturate(round(x / scale) + zero)`` as `dtype`; the quotient is of type `precision`, that of the scale."""
    precision = scale.dtype if precision is None else precision
    quotient = m.div(m.cast(x, precision), m.cast(scale, precision))
    if is_narrow(precision):
        quotient = m.cast(m.cast(quotient, precision), F32)
    if is_int(dtype):
        quotient = m.round(quotient)
    for z in zero:
        quotient = quotient + m.cast(z, promoted(precision))
    return saturated(m, quotient, dtype, saturate)

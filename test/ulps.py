# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Errors of functions, in units in the last place."""

from __future__ import annotations

import numpy as np


def ulps(got: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Return how far each of `got` is from the exact result, in units in the last place of that in `got`'s type.

    Args:
        got: results, of f16, f32 or f64.
        exact: the same in a wider type (f64; longdouble beside f64), not rounded.

    Returns:
        f64 or longdouble, of the same shape. Where the rounded result is infinite or NaN, or `got` is NaN: 0 if both
        are the same, infinity if not.
    """
    rounded = exact.astype(got.dtype)
    same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    wide = np.longdouble if got.itemsize == 8 else np.float64
    with np.errstate(invalid="ignore"):
        error = np.abs(got.astype(wide) - exact.astype(wide)) / np.spacing(np.abs(rounded)).astype(wide)
    finite = np.isfinite(rounded) & ~np.isnan(got)
    return np.where(finite, error, np.where(same, 0, np.inf))

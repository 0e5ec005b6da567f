# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How far results are from others, and what an error says: for all environments, on NumPy alone."""

from __future__ import annotations

import re

import numpy as np

Arrays = dict[str, np.ndarray]


def difference(expected: Arrays, found: Arrays) -> float:
    """The largest difference of results, in units of the largest number of each (at least of 1).

    Results are matched by name, or in order where the names differ. Infinite: another shape, other words, another
    number of results.
    """
    if len(expected) != len(found):
        return float("inf")
    pairs = zip(expected.items(), found.values(), strict=True)
    return max((_one(a, found.get(name, b)) for (name, a), b in pairs), default=0.0)


def _one(a: np.ndarray, b: np.ndarray) -> float:
    if a.shape != b.shape:
        return float("inf")
    if a.dtype.kind in "USO" or b.dtype.kind in "USO":
        return 0.0 if bool((a.astype(str) == b.astype(str)).all()) else float("inf")
    x, y = a.astype(np.float64), b.astype(np.float64)
    equal = (x == y) | (np.isnan(x) & np.isnan(y))
    with np.errstate(invalid="ignore"):
        gap = np.where(equal, 0.0, np.abs(x - y))
    gap = np.where(np.isfinite(gap), gap, np.inf)
    finite = np.abs(x[np.isfinite(x)])
    scale = max(1.0, float(finite.max())) if finite.size else 1.0
    return float(gap.max()) / scale if gap.size else 0.0


def first_line(error: BaseException) -> str:
    """What an error says, shortened to one line. The exporter of torch.export has the cause in the error below it."""
    cause = error.__cause__ if "Failed to " in str(error) and error.__cause__ is not None else error
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(cause)).strip().splitlines() or [""]
    return f"{type(cause).__name__}: {text[0][:300]}"

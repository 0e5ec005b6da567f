# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Codes of fewer than 8 bits, several to a byte."""

from __future__ import annotations

import numpy as np


def unpacked(rows: np.ndarray, bits: int, count: int) -> np.ndarray:
    """Elements of the rows of an array of bytes, lowest bits first: the first `count` of each row, a byte each."""
    each = 8 // bits
    shifts = (np.arange(each) * bits).astype(np.uint8)
    parts = (rows.view(np.uint8)[..., None] >> shifts) & np.uint8((1 << bits) - 1)
    return np.ascontiguousarray(parts.reshape(*rows.shape[:-1], -1)[..., :count])

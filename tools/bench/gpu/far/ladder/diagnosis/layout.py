# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Swizzles of shared memory: which 16-byte chunk of a row goes where.

Source: CUTLASS's ``Swizzle<3,4,3>``, ``<2,4,3>``, ``<1,4,3>`` and the PTX ISA's figures of layouts of asynchronous
copies: a pattern of rows of 128 bytes, whose row r exchanges chunks c and c ^ s(r).
"""

from __future__ import annotations

import numpy as np

#: for each swizzle: s(r) of the eight rows of 128 bytes in turn
_EXCHANGED = {
    0: (0,) * 8,
    32: (0, 1, 0, 1, 0, 1, 0, 1),
    64: (0, 1, 2, 3, 0, 1, 2, 3),
    128: (0, 1, 2, 3, 4, 5, 6, 7),
}
MODES = tuple(_EXCHANGED)


def placed(addresses: np.ndarray, mode: int, base_offset: int = 0) -> np.ndarray:
    """Where bytes of these logical shared-memory addresses lie.

    Args:
        addresses: bytes, integers.
        mode: 0, 32, 64 or 128.
        base_offset: row of the pattern that address 0 is in, counted backwards: as in a matrix descriptor.
    """
    row = (addresses // 128 - base_offset) % 8
    chunk = addresses // 16 % 8
    other = chunk ^ np.array(_EXCHANGED[mode])[row]
    return addresses + 16 * (other - chunk)

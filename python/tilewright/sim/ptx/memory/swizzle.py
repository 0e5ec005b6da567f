# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The swizzles of shared memory that TMA writes and wgmma reads.

A swizzle of 32, 64 or 128 bytes exchanges the 16-byte chunks of a row of that many bytes: address bits 4 and up are
combined by exclusive or with bits 7 and up, one, two or three of them (PTX ISA 5.5.4; CuTe's Swizzle<B, 4, 3>). It
acts on addresses, not on offsets: the pattern repeats at multiples of 256, 512 and 1024 bytes.
"""

from __future__ import annotations

import numpy as np


def swizzle(addresses: np.ndarray, mode: int, phase: int = 0) -> np.ndarray:
    """Where the bytes of these shared-memory addresses really are.

    Args:
        addresses: integers, in bytes.
        mode: 0 (none), 32, 64 or 128: the width of a swizzled row in bytes.
        phase: the row (of 128 bytes, modulo 8) at which the pattern starts; a matrix descriptor's base offset.
    """
    if not mode:
        return addresses
    return addresses ^ ((((addresses >> 7) - phase) & (mode // 16 - 1)) << 4)

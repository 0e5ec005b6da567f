# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Memory for arenas (page aligned, zero until touched, in huge pages where that pays) and for results."""

from __future__ import annotations

import math
import mmap
from collections.abc import Sequence

import numpy as np

from tilewright.core import config

_HUGE = 2 << 20
#: A cache line. Smaller results than this many of them stay in the caches, wherever they begin.
_LINE, _FEW_LINES = 64, 1024


def allocate(size: int) -> np.ndarray:
    """Return `size` bytes (at least one page), aligned to a page; released with the last reference.

    Raises:
        MemoryError: the system has not that much.
    """
    try:
        mapping = mmap.mmap(-1, max(size, mmap.PAGESIZE))
    except OSError as error:
        raise MemoryError(
            f"the model needs {size / 1e6:.0f} MB of working memory for each running call: {error.strerror}"
        ) from None
    if size >= _HUGE and hasattr(mmap, "MADV_HUGEPAGE"):
        try:
            mapping.madvise(mmap.MADV_HUGEPAGE)
        except OSError:
            pass  # a kernel without huge pages: small ones do
    return np.frombuffer(mapping, np.uint8)


def empty(shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
    """Return an array of undefined content; a large one begins at a cache line, so that stores fill whole ones.

    Where code checks its accesses, its memory ends with it: what lies behind is poisoned.
    """
    size = math.prod(shape) * dtype.itemsize
    if size < _FEW_LINES * _LINE or config.sanitize.get():
        return np.empty(shape, dtype)
    block = np.empty(size + _LINE, np.uint8)
    return np.ndarray(shape, dtype, buffer=block, offset=-block.__array_interface__["data"][0] % _LINE)

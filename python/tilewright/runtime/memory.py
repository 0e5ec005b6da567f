# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Anonymous memory for arenas: page aligned, zero until touched, in huge pages where that pays."""

from __future__ import annotations

import mmap

import numpy as np

_HUGE = 2 << 20


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

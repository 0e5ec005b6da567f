# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Memory for arenas (page aligned, zero until touched, in huge pages where that pays), weights and results."""

from __future__ import annotations

import math
import mmap
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tilewright.core import config

_HUGE = 2 << 20
#: A cache line. Smaller results than this many of them stay in the caches, wherever they begin.
_LINE, _FEW_LINES = 64, 1024
#: Python's mappings of no file are shared with child processes: Linux takes these for files in memory, which get no
#: huge pages unless `shmem_enabled` says so, and a forked child would compute in its parent's arena.
_OWN: dict[str, int] = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}
_STATE = Path("/sys/kernel/mm/transparent_hugepage/enabled")


def allocate(size: int) -> np.ndarray:
    """Return `size` bytes (at least one page), aligned to a page; released with the last reference.

    Raises:
        MemoryError: the system has not that much.
    """
    try:
        mapping = mmap.mmap(-1, max(size, mmap.PAGESIZE), **_OWN)
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


def huge_pages() -> str:
    """When Linux gives huge pages to those who ask: `always` and `madvise` do, `never` does not; empty: unknown."""
    try:
        text = _STATE.read_text()
    except OSError:
        return ""
    return text.partition("[")[2].partition("]")[0]


def in_huge_pages(arrays: Sequence[np.ndarray]) -> list[np.ndarray] | None:
    """Return read-only copies, side by side in memory of huge pages, each at a cache line.

    None where that gains nothing, or cannot be: less than a huge page in all, a system that has none, not enough
    memory.
    """
    sizes = [-(-array.nbytes // _LINE) * _LINE for array in arrays]
    if sum(sizes) < _HUGE or huge_pages() not in ("always", "madvise"):
        return None
    try:
        block = allocate(sum(sizes) + _HUGE)
    except MemoryError:
        return None
    start = -block.__array_interface__["data"][0] % _HUGE
    copies = []
    for array, size in zip(arrays, sizes, strict=True):
        copy = np.ndarray(array.shape, array.dtype, buffer=block, offset=start)
        np.copyto(copy, array)
        copy.flags.writeable = False
        copies.append(copy)
        start += size
    return copies


def empty(shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
    """Return an array of undefined content; a large one begins at a cache line, so that stores fill whole ones.

    Where code checks its accesses, its memory ends with it: what lies behind is poisoned.
    """
    size = math.prod(shape) * dtype.itemsize
    if size < _FEW_LINES * _LINE or config.sanitize.get():
        return np.empty(shape, dtype)
    block = np.empty(size + _LINE, np.uint8)
    return np.ndarray(shape, dtype, buffer=block, offset=-block.__array_interface__["data"][0] % _LINE)

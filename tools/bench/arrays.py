# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays in files, with the element types that NumPy has no name for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import ml_dtypes
import numpy as np

_MARK = "|"  # between a name and the type of an array that is stored as its bits


def save(file: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write named arrays."""
    plain: dict[str, np.ndarray] = {}
    for name, array in arrays.items():
        own = array.dtype.type.__module__ == ml_dtypes.finfo.__module__ or array.dtype.kind == "V"
        plain[f"{name}{_MARK}{array.dtype.name}" if own else name] = array.view(f"u{array.itemsize}") if own else array
    np.savez(file, **plain)  # type: ignore[arg-type]


def load(file: Path) -> dict[str, np.ndarray]:
    """Read what `save` wrote."""
    found: dict[str, np.ndarray] = {}
    with np.load(file) as arrays:
        for key in arrays.files:
            name, _, kind = key.partition(_MARK)
            found[name] = arrays[key].view(getattr(ml_dtypes, kind)) if kind else arrays[key]
    return found

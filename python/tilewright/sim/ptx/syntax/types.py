# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PTX types as NumPy types."""

from __future__ import annotations

import numpy as np

from tilewright.core.dtypes import to_numpy

#: what PTX calls floats
_FLOATS = {
    "f16": "f16",
    "bf16": "bf16",
    "f32": "f32",
    "f64": "f64",
    "tf32": "f32",
    "e4m3": "f8e4m3fn",
    "e5m2": "f8e5m2",
}

#: the NumPy type of each scalar type of PTX; packed types are words
NUMPY = {
    "pred": np.dtype(np.bool_),
    **{f"{kind}{bits}": np.dtype(f"uint{bits}") for kind in "bu" for bits in (8, 16, 32, 64)},
    **{f"s{bits}": np.dtype(f"int{bits}") for bits in (8, 16, 32, 64)},
    **{ptx: to_numpy(name) for ptx, name in _FLOATS.items()},
    **dict.fromkeys(("f16x2", "bf16x2", "u16x2", "s16x2"), np.dtype(np.uint32)),
    **dict.fromkeys(("e4m3x2", "e5m2x2"), np.dtype(np.uint16)),
}

#: unsigned words by size in bytes
WORDS = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}

#: signed words by size in bytes
SIGNED = {size: np.dtype(f"i{size}") for size in (1, 2, 4, 8)}

#: the lanes of packed types
PACKED = {"f16x2": "f16", "bf16x2": "bf16", "u16x2": "u16", "s16x2": "s16"}


def size(name: str) -> int:
    """Bytes of a type."""
    return NUMPY[name].itemsize


def is_float(name: str) -> bool:
    """Whether a scalar type is a floating-point type."""
    return name in _FLOATS


def is_signed(name: str) -> bool:
    """Whether a type is a signed integer."""
    return name in ("s8", "s16", "s32", "s64")

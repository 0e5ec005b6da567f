# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PTX types as NumPy types."""

from __future__ import annotations

import ml_dtypes
import numpy as np

#: the NumPy type of each scalar type of PTX; packed types are words
NUMPY = {
    "pred": np.dtype(np.bool_),
    "b8": np.dtype(np.uint8),
    "u8": np.dtype(np.uint8),
    "s8": np.dtype(np.int8),
    "b16": np.dtype(np.uint16),
    "u16": np.dtype(np.uint16),
    "s16": np.dtype(np.int16),
    "b32": np.dtype(np.uint32),
    "u32": np.dtype(np.uint32),
    "s32": np.dtype(np.int32),
    "b64": np.dtype(np.uint64),
    "u64": np.dtype(np.uint64),
    "s64": np.dtype(np.int64),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
    "e5m2": np.dtype(ml_dtypes.float8_e5m2),
    "tf32": np.dtype(np.float32),
    "f16x2": np.dtype(np.uint32),
    "bf16x2": np.dtype(np.uint32),
    "u16x2": np.dtype(np.uint32),
    "s16x2": np.dtype(np.uint32),
    "e4m3x2": np.dtype(np.uint16),
    "e5m2x2": np.dtype(np.uint16),
}

#: unsigned words by size in bytes
WORDS = {1: np.dtype(np.uint8), 2: np.dtype(np.uint16), 4: np.dtype(np.uint32), 8: np.dtype(np.uint64)}

#: signed words by size in bytes
SIGNED = {1: np.dtype(np.int8), 2: np.dtype(np.int16), 4: np.dtype(np.int32), 8: np.dtype(np.int64)}

#: the lanes of packed types
PACKED = {"f16x2": "f16", "bf16x2": "bf16", "u16x2": "u16", "s16x2": "s16"}


def size(name: str) -> int:
    """Bytes of a type."""
    return NUMPY[name].itemsize


def is_float(name: str) -> bool:
    """Whether a scalar type is a floating-point type."""
    return name in ("f16", "bf16", "f32", "f64", "tf32", "e4m3", "e5m2")


def is_signed(name: str) -> bool:
    """Whether a type is a signed integer."""
    return name in ("s8", "s16", "s32", "s64")

# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Element types by name: the ones of manifests and safetensors files, as NumPy dtypes."""

from __future__ import annotations

import numpy as np

from tilewright.errors import UnsupportedError

_BY_NAME = {
    "f64": "float64",
    "f32": "float32",
    "f16": "float16",
    "i64": "int64",
    "i32": "int32",
    "i16": "int16",
    "i8": "int8",
    "u64": "uint64",
    "u32": "uint32",
    "u16": "uint16",
    "u8": "uint8",
    "i1": "bool",
}
_BY_DTYPE = {np.dtype(value): key for key, value in _BY_NAME.items()}


def _bf16() -> np.dtype:
    try:
        import ml_dtypes
    except ImportError:
        raise UnsupportedError("element type bf16 needs the package ml_dtypes: pip install ml_dtypes") from None
    return np.dtype(ml_dtypes.bfloat16)


def to_numpy(name: str) -> np.dtype:
    """Return the NumPy dtype called `name` (``f32``, ``i64``, ``i1``, ``bf16`` ...).

    Raises:
        UnsupportedError: no such type, or ``bf16`` without ml_dtypes.
    """
    if name == "bf16":
        return _bf16()
    if name not in _BY_NAME:
        raise UnsupportedError(f"unknown element type {name!r}; known: {', '.join(_BY_NAME)}, bf16")
    return np.dtype(_BY_NAME[name])


def from_numpy(dtype: np.dtype) -> str:
    """Return the name of a NumPy dtype.

    Raises:
        UnsupportedError: the dtype has no name here (strings, complex, ...).
    """
    dtype = np.dtype(dtype)
    if dtype in _BY_DTYPE:
        return _BY_DTYPE[dtype]
    if dtype.name == "bfloat16":
        return "bf16"
    raise UnsupportedError(f"element type {dtype} is not supported; known: {', '.join(_BY_NAME)}, bf16")

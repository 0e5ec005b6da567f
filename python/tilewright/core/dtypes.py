# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Element types by name, as in manifests and safetensors files: their NumPy dtypes, and what holds their elements.

This is the one table of types: what MLIR, PTX and TMA descriptors call them is derived from it. A name says the kind
(``i``, ``u``, ``f``, ``bf``, ``c``) and the bits; ``i1`` is bool.
"""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np

from tilewright.core.errors import UnsupportedError

_NUMPY = {
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
    "c64": "complex64",
    "c128": "complex128",
}
_ML = {  # of the package ml_dtypes
    "bf16": "bfloat16",
    "f8e4m3fn": "float8_e4m3fn",
    "f8e4m3fnuz": "float8_e4m3fnuz",
    "f8e5m2": "float8_e5m2",
    "f8e5m2fnuz": "float8_e5m2fnuz",
    "f8e8m0fnu": "float8_e8m0fnu",
    "f6e2m3fn": "float6_e2m3fn",
    "f6e3m2fn": "float6_e3m2fn",
    "f4e2m1fn": "float4_e2m1fn",
    "i4": "int4",
    "u4": "uint4",
    "i2": "int2",
    "u2": "uint2",
}
_MLIR = {"index": "i64", "complex<f32>": "c64", "complex<f64>": "c128"}
_BY_DTYPE = {np.dtype(value).name: key for key, value in _NUMPY.items()} | {value: key for key, value in _ML.items()}

NAMES = (*_NUMPY, *_ML)
FLOATS = tuple(name for name in NAMES if name[0] in "fb")


def bits_of(name: str) -> int:
    """Return the bits that an element of a type means: 4 for ``i4``, 1 for ``i1``.

    Raises:
        UnsupportedError: no such type.
    """
    if name not in NAMES:
        raise UnsupportedError(f"unknown element type {name!r}; known: {', '.join(NAMES)}")
    return int("".join(itertools.takewhile(str.isdigit, name.lstrip("bcfiu"))))


#: bits of the types that have fewer than a byte, bool aside
_SMALL = {name: bits_of(name) for name in NAMES if bits_of(name) < 8 and name != "i1"}
_STORED = {name: np.dtype(np.int8 if name[0] == "i" else np.uint8) for name in _SMALL if name[0] in "iu"}


def to_numpy(name: str) -> np.dtype:
    """Return the NumPy dtype called `name` (``f32``, ``i64``, ``i1``, ``bf16``, ``f8e4m3fn``, ``i4``, ``c64`` ...).

    Raises:
        UnsupportedError: no such type, or one of ml_dtypes without that package.
    """
    if name in _NUMPY:
        return np.dtype(_NUMPY[name])
    if name not in _ML:
        raise UnsupportedError(f"unknown element type {name!r}; known: {', '.join(NAMES)}")
    try:
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, _ML[name]))
    except (ImportError, AttributeError):
        raise UnsupportedError(
            f"element type {name} needs the package ml_dtypes, 0.5 or later: pip install -U ml_dtypes"
        ) from None


def from_numpy(dtype: np.dtype) -> str:
    """Return the name of a NumPy dtype.

    Raises:
        UnsupportedError: the dtype has no name here (strings, dates, ...).
    """
    dtype = np.dtype(dtype)
    if dtype.name in _BY_DTYPE and dtype.isnative:
        return _BY_DTYPE[dtype.name]
    if dtype.kind in "OSUT":
        raise UnsupportedError("strings are not supported; encode them as numbers before the model")
    raise UnsupportedError(f"element type {dtype} is not supported; known: {', '.join(NAMES)}")


def name_of_mlir(text: str) -> str:
    """Return our name of a scalar type of MLIR: ``f8e5m2`` of ``f8E5M2``, ``u8`` of ``ui8``, ``i64`` of ``index``."""
    return _MLIR.get(text) or text.lower().replace("ui", "u").replace("si", "i")


@functools.cache
def of_mlir(text: str) -> np.dtype:
    """Return the NumPy dtype of a scalar type of MLIR by its text; signless integers are signed ones.

    Raises:
        UnsupportedError: it has none.
    """
    return to_numpy(name_of_mlir(text))


def named(name: str) -> str | None:
    """Return our name of the element type that NumPy, ml_dtypes and torch call `name`; None where we have none."""
    return _BY_DTYPE.get(name)


def item_bytes(name: str) -> int:
    """Return the bytes between neighbours of an element type, by its name here. Needs no ml_dtypes.

    Raises:
        UnsupportedError: no such type.
    """
    return max(1, bits_of(name) // 8)


def _mask(name: str) -> np.uint8:
    return np.uint8((1 << _SMALL[name]) - 1)


def stored(array: np.ndarray) -> np.ndarray:
    """Return the array as compiled code wants it: integers of fewer than 8 bits as whole, extended bytes."""
    name = _BY_DTYPE.get(array.dtype.name, "")
    if name not in _SMALL:
        return array
    if name in _STORED:
        return array.astype(_STORED[name])
    return (array.view(np.uint8) & _mask(name)).view(array.dtype)


def is_small(dtype: np.dtype) -> bool:
    """Return whether elements have fewer than 8 bits, so that compiled code holds them in another form."""
    return _BY_DTYPE.get(dtype.name, "") in _SMALL


def make_canonical(array: np.ndarray) -> None:
    """Give elements of fewer than 8 bits, in place, the form of ml_dtypes: the byte's other bits are 0."""
    array.view(np.uint8)[...] &= _mask(_BY_DTYPE[array.dtype.name])


def presented(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return what compiled code gave as an array of the signature's dtype: signs and small widths are there alone."""
    if array.dtype == dtype:
        return array
    if _STORED.get(_BY_DTYPE.get(dtype.name, "")) is None:
        return array.view(dtype)
    return array.astype(np.int8).astype(dtype)


def rounded(x: Any, dtype: np.dtype) -> Any:
    """Return numbers as a float dtype, rounded to nearest even once.

    ml_dtypes goes to its types by way of f32; from wider numbers that would round twice.
    """
    array = np.asarray(x)
    if dtype.name not in _ML.values() or array.dtype.itemsize < 4 or array.dtype == np.float32:
        return x.astype(dtype)
    exact = array.astype(np.longdouble)  # 64 bits of mantissa: every integer too
    with np.errstate(over="ignore"):
        near = exact.astype(np.float32)
    word = np.ascontiguousarray(near).view(np.int32).reshape(near.shape)
    back = near.astype(np.longdouble)
    step = np.where(np.abs(exact) > np.abs(back), 1, -1).astype(np.int32)
    inexact = (back != exact) & ~np.isnan(exact) & ((word & 1) == 0)  # to odd: what was cut off stays visible
    odd = np.where(inexact, word + step, word).astype(np.int32).view(np.float32).reshape(near.shape)
    return odd.astype(dtype)[()]

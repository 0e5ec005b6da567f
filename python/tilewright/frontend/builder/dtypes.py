# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What kind of number a dtype holds: NumPy's own and ml_dtypes', whose `dtype.kind` says nothing.

Elements of fewer than 8 bits are integers of 8 bits in the IR, sign- or zero-extended. Floats of 16 bits and fewer are
*narrow*: bodies compute them in f32, which rounds once, at the end.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tilewright.core.dtypes import FLOATS, NAMES, bits_of, to_numpy
from tilewright.core.errors import UnsupportedError
from tilewright.mlir import ir

BOOL = np.dtype(np.bool_)
F32, F64 = np.dtype(np.float32), np.dtype(np.float64)
I32, I64 = np.dtype(np.int32), np.dtype(np.int64)

_FLOATS = {
    to_numpy(name): getattr(ir, f"{name.upper() if bits_of(name) > 8 else 'Float' + name[1:].upper()}Type")
    for name in FLOATS
}
_BITS = {to_numpy(name): bits_of(name) for name in NAMES if bits_of(name) < 8}
_SMALL = {dtype for dtype in _BITS if dtype not in _FLOATS and dtype != BOOL}  # integers
E8M0 = np.dtype(ml_dtypes.float8_e8m0fnu)


def is_float(dtype: np.dtype) -> bool:
    """Whether it is a real float of any width."""
    return dtype in _FLOATS


def is_narrow(dtype: np.dtype) -> bool:
    """Whether it is a float that bodies compute in f32."""
    return dtype in _FLOATS and dtype.itemsize < 4


def is_complex(dtype: np.dtype) -> bool:
    """Whether it is complex64 or complex128."""
    return dtype.kind == "c"


def is_bool(dtype: np.dtype) -> bool:
    """Whether it is bool."""
    return dtype == BOOL


def is_int(dtype: np.dtype) -> bool:
    """Whether it is an integer of any width and sign; bool is none."""
    return dtype.kind in "iu" or dtype in _SMALL


def is_unsigned(dtype: np.dtype) -> bool:
    """Whether it is an unsigned integer, or bool."""
    return dtype.kind in "ub" or (dtype in _SMALL and dtype.name[0] == "u")


def is_small(dtype: np.dtype) -> bool:
    """Whether it is an integer of fewer than 8 bits."""
    return dtype in _SMALL


def bits(dtype: np.dtype) -> int:
    """The bits that an element means: 4 for int4 and float4, 1 for bool."""
    return _BITS.get(dtype, dtype.itemsize * 8)


def int_range(dtype: np.dtype) -> tuple[int, int]:
    """The smallest and largest integer (or bool) of a type."""
    if is_unsigned(dtype):
        return 0, (1 << bits(dtype)) - 1
    return -(1 << bits(dtype) - 1), (1 << bits(dtype) - 1) - 1


def largest(dtype: np.dtype) -> float:
    """The largest finite float of a type."""
    return float(ml_dtypes.finfo(dtype).max)


def lowest(dtype: np.dtype) -> float:
    """The neutral element of max."""
    return -highest(dtype) if is_float(dtype) else int_range(dtype)[0]


def highest(dtype: np.dtype) -> float:
    """The neutral element of min."""
    if not is_float(dtype):
        return int_range(dtype)[1]
    return np.inf if dtype.itemsize > 1 or dtype == ml_dtypes.float8_e5m2 else largest(dtype)


def promoted(dtype: np.dtype) -> np.dtype:
    """The type in which bodies compute: f32 for narrow floats, else itself."""
    return F32 if is_narrow(dtype) else dtype


def part(dtype: np.dtype) -> np.dtype:
    """The float type of a complex type's parts."""
    return np.dtype(f"f{dtype.itemsize // 2}")


def wrapped(value: int, dtype: np.dtype) -> int:
    """`value` modulo the width of the type, in its range."""
    low, _ = int_range(dtype)
    return (int(value) - low) % (1 << bits(dtype)) + low


def signless(value: int, dtype: np.dtype) -> int:
    """The signed integer of the same stored bits as `value`, which an attribute of a signless type wants."""
    if dtype == BOOL:
        return int(bool(value))
    return wrapped(wrapped(value, dtype), np.dtype(f"i{dtype.itemsize}"))


def storage(dtype: np.dtype) -> np.dtype:
    """The dtype in which the IR and the run-time hold the elements: bytes for those of fewer than 8 bits."""
    return np.dtype(np.uint8 if is_unsigned(dtype) else np.int8) if dtype in _SMALL else dtype


def computed(array: np.ndarray) -> np.ndarray:
    """Known elements in the type in which NumPy computes what bodies mean."""
    return array.astype(F32) if is_narrow(array.dtype) else array.astype(storage(array.dtype), copy=False)


def fitted(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """What a body computed, in the type of its result."""
    if dtype in _SMALL and is_int(array.dtype):
        array = array.astype(np.int64)
    return array.astype(dtype, copy=False)


def element_type(dtype: np.dtype) -> ir.Type:
    """The MLIR type of an element.

    Raises:
        UnsupportedError: strings and the like.
    """
    dtype = np.dtype(dtype)
    if dtype in _FLOATS:
        return _FLOATS[dtype].get()
    if dtype == BOOL:
        return ir.IntegerType.get_signless(1)
    if is_int(dtype):
        return ir.IntegerType.get_signless(dtype.itemsize * 8)
    if is_complex(dtype):
        return ir.ComplexType.get(_FLOATS[part(dtype)].get())
    if dtype.kind in "OSUT":
        raise UnsupportedError("strings have no form in compiled code; encode them as numbers before the model")
    raise UnsupportedError(f"elements of type {dtype} have no lowering; use floats, integers, bool or complex numbers")

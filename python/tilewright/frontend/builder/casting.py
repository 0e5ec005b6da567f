# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ONNX Cast between any two types of numbers: as IR, and the same on arrays.

What ONNX leaves open is done as x86 and NumPy do: a float that its integer type cannot hold becomes the smallest
32-bit integer (64-bit for int64, uint32 and uint64), of which the low bits are kept. Every conversion rounds once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tilewright.core.dtypes import rounded
from tilewright.core.errors import UnsupportedError
from tilewright.frontend.builder.dtypes import (
    BOOL,
    E8M0,
    F32,
    F64,
    bits,
    is_bool,
    is_complex,
    is_float,
    is_narrow,
    is_small,
    is_unsigned,
    largest,
    storage,
)

if TYPE_CHECKING:
    from tilewright.frontend.builder.scalars import IRMath, Scalar

_U8, _I32, _I64, _U32, _U64 = (np.dtype(name) for name in ("uint8", "int32", "int64", "uint32", "uint64"))


def _saturates(dtype: np.dtype) -> bool:
    return dtype.itemsize == 1 and is_narrow(dtype) and dtype != E8M0 and "float8" in dtype.name


def _refuse_complex(source: np.dtype, dtype: np.dtype) -> None:
    if is_complex(source) or is_complex(dtype):
        raise UnsupportedError(f"a cast from {source} to {dtype}: ONNX has no casts of complex numbers")


# IR ---------------------------------------------------------------------------------------------------------------


def convert(m: IRMath, a: Scalar, dtype: np.dtype) -> Scalar:
    """One float as another float type, rounded to nearest even."""
    if a.known is not None:
        return m.scalar(a.known, dtype)
    if is_narrow(a.dtype) and is_narrow(dtype) and a.dtype != dtype:
        a = convert(m, a, F32)
    if a.dtype == dtype:
        return a
    return m.emit("arith.extf" if a.dtype.itemsize < dtype.itemsize else "arith.truncf", [a], dtype)


def wrap(m: IRMath, a: Scalar) -> Scalar:
    """An integer of fewer than 8 bits in canonical form: sign- or zero-extended to its byte."""
    if not is_small(a.dtype):
        return a
    if is_unsigned(a.dtype):
        return m.emit("arith.andi", [a, m.scalar((1 << bits(a.dtype)) - 1, a.dtype)], a.dtype)
    count = _byte(m, 8 - bits(a.dtype), a.dtype)
    return m.emit("arith.shrsi", [m.emit("arith.shli", [a, count], a.dtype), count], a.dtype)


def _byte(m: IRMath, value: int, dtype: np.dtype) -> Scalar:
    constant = m.scalar(value, storage(dtype))
    constant.dtype = dtype
    return constant


def cast(m: IRMath, a: Scalar, dtype: np.dtype, saturate: bool, mode: str) -> Scalar:
    """ONNX Cast.

    Args:
        m: emits the ops.
        a: the number.
        dtype: to which type.
        saturate: for 8-bit floats: too large becomes the largest, instead of infinity or NaN.
        mode: to float8e8m0: round "up", "down" or to "nearest".

    Raises:
        UnsupportedError: complex numbers.
    """
    if dtype == a.dtype:
        return a
    _refuse_complex(a.dtype, dtype)
    if is_bool(dtype):
        return m.relation("ne", a, 0)
    if is_float(a.dtype):
        return _float_to_float(m, a, dtype, saturate, mode) if is_float(dtype) else _float_to_int(m, a, dtype)
    if is_float(dtype):
        return _int_to_float(m, a, dtype, saturate, mode)
    return _int_to_int(m, a, dtype)


def _float_to_float(m: IRMath, a: Scalar, dtype: np.dtype, saturate: bool, mode: str) -> Scalar:
    if dtype == E8M0:
        return _to_e8m0(m, a, saturate, mode)
    if saturate and _saturates(dtype):
        limit = largest(dtype)
        a = m.minimum(m.maximum(a, -limit), limit)
    return convert(m, a, dtype)


def _to_e8m0(m: IRMath, a: Scalar, saturate: bool, mode: str) -> Scalar:
    """The exponent of an f32, rounded; infinity and NaN become NaN, the sign is lost."""
    word = m.bitcast(convert(m, a, F32), _U32)
    exponent = m.bit_and(m.shift_right(word, 23), 0xFF)
    result = exponent
    if mode != "down":
        up = m.bit_and(word, 0x7FFFFF) > 0
        if mode == "nearest":
            half, rest = m.bit_and(word, 0x400000) > 0, m.bit_and(word, 0x3FFFFF) > 0
            up = m.logical_and(half, m.logical_or(rest, exponent > 0))
        result = exponent + m.cast(up, _U32)
        result = m.where(exponent.eq(0xFE), exponent, result) if saturate else result
    result = m.where(exponent.eq(0xFF), exponent, result)
    return m.bitcast(m.cast(result, _U8), E8M0)


def _float_to_int(m: IRMath, a: Scalar, dtype: np.dtype) -> Scalar:
    a = m.widened(a)
    if dtype == _U64:
        big = a >= 2.0**63
        return m.bit_xor(_truncated(m, m.where(big, a - 2.0**63, a), _U64), m.where(big, m.scalar(1 << 63, _U64), 0))
    return _int_to_int(m, _truncated(m, a, _I64 if dtype in (_I64, _U32) else _I32), dtype)


def fitting_int(m: IRMath, a: Scalar, dtype: np.dtype) -> Scalar:
    """A whole float that the integer type (of 32 bits at most, signed if it is of 32) can hold, as that type."""
    return _int_to_int(m, m.emit("arith.fptosi", [m.widened(a)], _I32), dtype)


def _truncated(m: IRMath, a: Scalar, dtype: np.dtype) -> Scalar:
    limit = 2.0 ** (8 * dtype.itemsize - 1)
    inside = m.absolute(a) < limit
    return m.emit("arith.fptosi", [m.where(inside, a, -limit)], dtype)


def _int_to_float(m: IRMath, a: Scalar, dtype: np.dtype, saturate: bool, mode: str) -> Scalar:
    name = "arith.uitofp" if is_unsigned(a.dtype) else "arith.sitofp"
    if not is_narrow(dtype):
        return m.emit(name, [a], dtype)
    if dtype.itemsize == 1 or dtype == np.float16 or bits(a.dtype) <= 24:
        exact = m.emit(name, [a], F32)  # what f32 cannot hold is too large for the type anyway
    elif bits(a.dtype) <= 32:
        exact = m.emit(name, [a], F64)
    else:
        exact = _sticky(m, a, name)
    return _float_to_float(m, exact, dtype, saturate, mode)


def _sticky(m: IRMath, a: Scalar, name: str) -> Scalar:
    """A 64-bit integer as f64; of large ones the low 12 bits are one that says whether any of them is set."""
    low = m.bit_and(a, 0xFFF)
    high = m.bit_or(m.shift_right(a, 12), m.cast(low > 0, a.dtype))
    large = high > (1 << 40)
    if not is_unsigned(a.dtype):
        large = m.logical_or(large, high < -(1 << 40))
    return m.where(large, m.emit(name, [high], F64) * 4096.0, m.emit(name, [a], F64))


def _int_to_int(m: IRMath, a: Scalar, dtype: np.dtype) -> Scalar:
    old, new = (1 if d == BOOL else 8 * d.itemsize for d in (a.dtype, dtype))
    if old == new:
        result = type(a)(m, a.value, dtype)
    elif old > new:
        result = m.emit("arith.trunci", [a], dtype)
    else:
        result = m.emit("arith.extui" if is_unsigned(a.dtype) else "arith.extsi", [a], dtype)
    return result if is_bool(a.dtype) else wrap(m, result)


def bitcast(m: IRMath, a: Scalar, dtype: np.dtype) -> Scalar:
    """The same bits as another type of the same width."""
    if is_bool(dtype):
        return cast(m, bitcast(m, a, _U8), BOOL, False, "")
    if is_bool(a.dtype):
        a = _int_to_int(m, a, _U8)
    if is_complex(a.dtype):
        words = [m.cast(m.bitcast(part, _U32), _U64) for part in (m.real(a), m.imag(a))]
        return bitcast(m, m.bit_or(words[0], m.shift_left(words[1], 32)), dtype)
    if is_complex(dtype):
        word = bitcast(m, a, _U64)
        return m.complex(*(bitcast(m, m.cast(w, _U32), F32) for w in (word, m.shift_right(word, 32))))
    if not (is_float(a.dtype) or is_float(dtype)):
        return _int_to_int(m, a, dtype)
    if bits(dtype) == 4:  # between f4 and the byte that holds a 4-bit integer
        return m.nibble(a, dtype)
    return a if a.dtype == dtype else m.emit("arith.bitcast", [a], dtype)


# Arrays -----------------------------------------------------------------------------------------------------------


def cast_array(x: np.ndarray, dtype: np.dtype, saturate: bool, mode: str) -> np.ndarray:
    """ONNX Cast of known elements; the arguments are those of `cast`."""
    if x.dtype == dtype:
        return x
    _refuse_complex(x.dtype, dtype)
    if is_bool(dtype):
        return x != 0
    with np.errstate(all="ignore"):
        if is_float(x.dtype) and not is_float(dtype):
            return _array_to_int(x, dtype)
        if not is_float(dtype):
            return x.astype(np.int64, copy=False).astype(dtype) if is_small(dtype) else x.astype(dtype)
        if dtype == E8M0:
            return _array_to_e8m0(x.astype(F32), saturate, mode)
        if saturate and _saturates(dtype):
            x = np.clip(x.astype(np.longdouble), -largest(dtype), largest(dtype)).astype(F64)
        return rounded(x, dtype)


def _array_to_e8m0(x: np.ndarray, saturate: bool, mode: str) -> np.ndarray:
    word = np.ascontiguousarray(x).view(_U32).reshape(x.shape)
    exponent = (word >> 23) & 0xFF
    up = (word & 0x7FFFFF) > 0 if mode == "up" else np.zeros_like(exponent, bool)
    if mode == "nearest":
        up = ((word & 0x400000) > 0) & (((word & 0x3FFFFF) > 0) | (exponent > 0))
    up &= (exponent != 0xFF) & ~((exponent == 0xFE) & saturate)
    return (exponent + up).astype(np.uint8).view(E8M0)


def _array_to_int(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    x = np.trunc(x.astype(F64))
    big = (x >= 2.0**63) & (dtype == _U64)
    x = np.where(big, x - 2.0**63, x)
    limit = 2.0**63 if dtype in (_I64, _U32, _U64) else 2.0**31
    whole = np.where(np.abs(x) < limit, x, -limit).astype(_I64)
    whole ^= np.where(big, np.iinfo(_I64).min, 0)
    return whole.astype(dtype)

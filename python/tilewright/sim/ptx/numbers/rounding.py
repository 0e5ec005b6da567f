# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arithmetic with exactly one rounding, in NumPy.

Products of two float32 are exact in float64. A sum in float64 is rounded to odd (S. Boldo, G. Melquiond, "Emulation of
FMA and correctly
rounded sums: proved algorithms using rounding to odd", IEEE Trans. Computers 57(4), 2008) where a second rounding
could matter.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tilewright.sim.ptx.syntax import types

_TINY32 = np.float32(2.0**-126)


def flush(values: np.ndarray) -> np.ndarray:
    """Subnormal numbers become zeros of the same sign."""
    tiny = values.dtype.type(np.finfo(values.dtype).tiny)
    small = np.abs(values) < tiny
    if not np.any(small):
        return values
    return np.where(small, np.copysign(values.dtype.type(0), values), values)


def extreme(a: np.ndarray, b: np.ndarray, least: bool, keep_nan: bool) -> np.ndarray:
    """Minimum or maximum with -0 below +0; a NaN loses against a number unless `keep_nan`."""
    if keep_nan:
        result = (np.minimum if least else np.maximum)(a, b)
    else:
        result = (np.fmin if least else np.fmax)(a, b)
    same = a == b
    word = types.WORDS[result.dtype.itemsize]
    bits_a, bits_b = a.view(word), b.view(word)
    either = (bits_a | bits_b if least else bits_a & bits_b).view(result.dtype)
    return np.where(same, either, result)


def two_sum(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(rounded sum, its error): a + b = sum + error exactly (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def to_odd(total: np.ndarray, error: np.ndarray) -> np.ndarray:
    """total + error rounded to odd: where the sum is inexact, the neighbour with an odd last bit."""
    bits = total.view(np.int64)
    inexact = (error != 0) & np.isfinite(total) & (bits & 1 == 0)
    toward = np.where(error > 0, np.inf, -np.inf)
    return np.where(inexact, np.nextafter(total, toward), total)


def directed(total: np.ndarray, error: np.ndarray | float, mode: str) -> np.ndarray:
    """total + error (float64) rounded to float32 downwards (rm), upwards (rp) or toward zero (rz)."""
    near = total.astype(np.float32)
    rest = total - near.astype(np.float64)
    sign = np.where(rest == 0, np.sign(error), np.sign(rest))
    down = {"rm": sign < 0, "rp": np.zeros_like(sign, bool), "rz": (sign < 0) & (total > 0)}[mode]
    up = {"rm": np.zeros_like(sign, bool), "rp": sign > 0, "rz": (sign > 0) & (total < 0)}[mode]
    finite = np.isfinite(total)
    lower = np.nextafter(near, np.float32(-np.inf))
    upper = np.nextafter(near, np.float32(np.inf))
    return np.where(down & finite, lower, np.where(up & finite, upper, near)).astype(np.float32)


def _double(x: np.ndarray) -> np.ndarray:
    return np.asarray(x).astype(np.float64)


DIRECTED: dict[str, Callable[[np.ndarray, np.ndarray, str], np.ndarray]] = {
    "add": lambda a, b, mode: directed(*two_sum(_double(a), _double(b)), mode),
    "sub": lambda a, b, mode: directed(*two_sum(_double(a), -_double(b)), mode),
    "mul": lambda a, b, mode: directed(_double(a) * _double(b), 0.0, mode),
    "div": lambda a, b, mode: directed(_double(a) / _double(b), 0.0, mode),
}


def two_product(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(rounded product, its error) in float64 (Dekker); no error is known where the product overflows."""
    product = a * b
    (ah, al), (bh, bl) = _split(a), _split(b)
    return product, ((ah * bh - product) + ah * bl + al * bh) + al * bl


def directed64(near: np.ndarray, error: np.ndarray, mode: str) -> np.ndarray:
    """near + error rounded in a direction, where near is the float64 nearest to it."""
    down = {"rm": error < 0, "rp": np.zeros_like(error, bool), "rz": (error < 0) & (near > 0)}[mode]
    up = {"rm": np.zeros_like(error, bool), "rp": error > 0, "rz": (error > 0) & (near < 0)}[mode]
    return np.where(down, np.nextafter(near, -np.inf), np.where(up, np.nextafter(near, np.inf), near))


def _quotient64(a: np.ndarray, b: np.ndarray, mode: str) -> np.ndarray:
    quotient = a / b
    product, low = two_product(quotient, b)
    rest = (a - product) - low
    return directed64(quotient, np.sign(rest) * np.sign(b), mode)


DIRECTED64: dict[str, Callable[[np.ndarray, np.ndarray, str], np.ndarray]] = {
    "add": lambda a, b, mode: directed64(*two_sum(a, b), mode),
    "sub": lambda a, b, mode: directed64(*two_sum(a, -b), mode),
    "mul": lambda a, b, mode: directed64(*two_product(a, b), mode),
    "div": _quotient64,
}


def _fma32(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    product = a.astype(np.float64) * b.astype(np.float64)
    other = c.astype(np.float64)
    total = np.asarray(product + other)
    result = total.astype(np.float32)
    doubtful = (total.view(np.int64) & 0x1FFFFFFF) == 0x10000000
    doubtful |= (np.abs(result) < _TINY32) & (total != 0)
    if doubtful.any():
        at = np.nonzero(doubtful)
        exact, error = two_sum(*(each[at] if np.ndim(each) else each for each in (product, other)))
        if error.any():
            result[at] = to_odd(exact, np.where(np.isfinite(error), error, 0)).astype(np.float32)
    return result


def _fma_small(dtype: np.dtype) -> Callable:
    def compute(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        product = a.astype(np.float64) * b.astype(np.float64)
        total, error = two_sum(np.asarray(product), np.asarray(c.astype(np.float64)))
        return narrow(to_odd(total, np.where(np.isfinite(error), error, 0)), dtype)

    return compute


def narrow(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """float64 to a narrower type with one rounding to nearest even, also where NumPy goes through float32."""
    if dtype.itemsize >= 4 or dtype == np.float16:
        return values.astype(dtype)
    single = values.astype(np.float32)
    rest = values - single.astype(np.float64)
    odd = (rest != 0) & np.isfinite(single) & (single.view(np.int32) & 1 == 0)
    toward = np.where(rest > 0, np.float32(np.inf), np.float32(-np.inf))
    return np.where(odd, np.nextafter(single, toward), single).astype(dtype)


def _split(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    big = x * np.float64(134217729.0)
    high = big - (big - x)
    return high, x - high


def _fma64(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Through the exact product (Dekker) and two sums; where the product overflows on the way, the plain formula."""
    a, b, c = np.asarray(a), np.asarray(b), np.asarray(c)
    product, low = two_product(a, b)
    total, error = two_sum(product, c)
    exact = total + (error + low)
    return np.where(np.isfinite(exact), exact, product + c)


def _fma_directed(a: np.ndarray, b: np.ndarray, c: np.ndarray, mode: str) -> np.ndarray:
    return directed(*two_sum(_double(a) * _double(b), _double(c)), mode)


def fma(name: str, mode: str) -> Callable | None:
    """The function that computes a * b + c with one rounding; None where a rounding is not known."""
    if mode == "rn":
        return {"f32": _fma32, "f64": _fma64}.get(name) or _fma_small(types.NUMPY[name])
    if name == "f32" and mode in ("rz", "rm", "rp"):
        return lambda a, b, c: _fma_directed(a, b, c, mode)
    return None

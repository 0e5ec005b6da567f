# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Conversions of small floats as machine code: all codes, all midpoints with their neighbours, random bits."""

from __future__ import annotations

import ctypes

import ml_dtypes
import numpy as np
import pytest

from lib.Conversion.native import load
from tilewright.core.dtypes import rounded

TYPES = {
    "bf16": ml_dtypes.bfloat16,
    "f16": np.float16,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
    "f8E5M2": ml_dtypes.float8_e5m2,
    "f8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
    "f8E8M0FNU": ml_dtypes.float8_e8m0fnu,
    "f6E2M3FN": ml_dtypes.float6_e2m3fn,
    "f6E3M2FN": ml_dtypes.float6_e3m2fn,
    "f4E2M1FN": ml_dtypes.float4_e2m1fn,
}
WIDE = {"f32": np.float32, "f64": np.float64}
RANDOM = 1_000_000

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def convert(op: str, x: np.ndarray, source: str, target: str, dtype: np.dtype, lanes: int = 0) -> np.ndarray:
    """All elements of an array through arith.<op>, one by one or as vectors of `lanes`."""
    n = len(x)
    of = {name: f"vector<{lanes}x{name}>" if lanes else name for name in (source, target)}
    read = f"vector.load %x[%i] : memref<{n}x{source}>, {of[source]}"
    write = f"vector.store %b, %y[%i] : memref<{n}x{target}>, {of[target]}"
    if not lanes:
        read = f"memref.load %x[%i] : memref<{n}x{source}>"
        write = f"memref.store %b, %y[%i] : memref<{n}x{target}>"
    text = f"""func.func @f(%x: memref<{n}x{source}>, %y: memref<{n}x{target}>) {{
  %c0 = arith.constant 0 : index
  %step = arith.constant {max(lanes, 1)} : index
  %n = arith.constant {n} : index
  scf.for %i = %c0 to %n step %step {{
    %a = {read}
    %b = arith.{op} %a : {of[source]} to {of[target]}
    {write}
  }}
  return
}}"""
    y = np.zeros(n, dtype)
    words: list = []
    for array in (x, y):
        words += [ctypes.c_void_p(array.ctypes.data)] * 2 + [ctypes.c_int64(k) for k in (0, n, 1)]
    load(text).f(*words)
    return y


def codes(name: str) -> np.ndarray:
    """All numbers of a type."""
    dtype = np.dtype(TYPES[name])
    count = 1 << {"f4": 4, "f6": 6}.get(name[:2], 8 * dtype.itemsize)
    return np.arange(count, dtype=f"u{dtype.itemsize}").view(dtype)


def check_same(got: np.ndarray, want: np.ndarray, x: np.ndarray) -> None:
    """The same bits; NaNs of 16 bits and more may differ in theirs."""
    bits = np.dtype(f"u{got.dtype.itemsize}")
    wrong = got.view(bits) != want.view(bits)
    if got.dtype.itemsize > 1:
        wrong &= ~(np.isnan(got) & np.isnan(want))
    assert not wrong.any(), (x[wrong][:5], got[wrong][:5], want[wrong][:5])


def borders(name: str) -> np.ndarray:
    """Every finite number of a type, what lies half way between two, and what is beyond the largest."""
    wide = codes(name).astype(np.float32).astype(np.float64)
    values = np.unique(wide[np.isfinite(wide)])
    beyond = values[-1] * np.array([1.01, 1.0625, 1.125, 1.2, 1.25, 1.3, 1.5, 2, 4])
    return np.concatenate([values, (values[1:] + values[:-1]) / 2, beyond])


@pytest.mark.parametrize("wide", WIDE)
@pytest.mark.parametrize("name", TYPES)
def test_extension_of_every_code(name: str, wide: str) -> None:
    x = codes(name)
    want = x.astype(np.float32).astype(WIDE[wide])
    check_same(convert("extf", x, name, wide, np.dtype(WIDE[wide])), want, x)


@pytest.mark.parametrize("name", TYPES)
def test_truncation_of_f32(name: str) -> None:
    x = borders(name).astype(np.float32)
    x = np.concatenate([x, np.nextafter(x, np.float32(np.inf)), np.nextafter(x, np.float32(-np.inf))])
    special = np.array([np.inf, np.nan, 0, 1e-45], np.float32)
    random = np.random.default_rng(1).integers(0, 1 << 32, RANDOM, dtype=np.uint32).view(np.float32)
    x = np.concatenate([x, -x, special, -special, random])
    check_same(convert("truncf", x, "f32", name, np.dtype(TYPES[name])), x.astype(TYPES[name]), x)


@pytest.mark.parametrize("name", TYPES)
def test_truncation_of_f64_rounds_once(name: str) -> None:
    x = borders(name)
    x = np.concatenate([x, np.nextafter(x, np.inf), np.nextafter(x, -np.inf), x * (1 + 1e-12), x * (1 - 1e-12)])
    x = np.concatenate([x, [1e300, 1e-300, np.inf, np.nan]])
    x = np.concatenate([x, -x])
    want = rounded(x, np.dtype(TYPES[name]))
    check_same(convert("truncf", x, "f64", name, np.dtype(TYPES[name])), want, x)


@pytest.mark.parametrize("name", [name for name in TYPES if name[:2] not in ("f4", "f6")])
def test_vectors(name: str) -> None:
    x = codes(name)
    wide = convert("extf", x, name, "f32", np.dtype(np.float32), lanes=16)
    check_same(wide, x.astype(np.float32), x)
    check_same(convert("truncf", wide, "f32", name, x.dtype, lanes=16), wide.astype(x.dtype), wide)

# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Codes that stand for numbers in leaves: the same eagerly and traced, and as ONNX has them; compiled in lists."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from fractal_runs import agree, same, values

import tilewright as tw
import tilewright.fractal as ft
from tilewright.core.errors import UserError

RNG = np.random.default_rng(7)
CODES = RNG.integers(-128, 128, (6, 4)).astype(np.int8)
BYTES = RNG.integers(0, 256, (6, 4)).astype(np.uint8)
COLUMNS = (RNG.random((1, 4)) + 0.5).astype(np.float32)
LISTS = ft.Array[2, (6, 4), "u8"]
BLOCKS = (RNG.random((2, 4)) + 0.5).astype(np.float32)


@pytest.mark.parametrize(
    ("codes", "scale", "zero"),
    [
        (CODES, 0.25, None), (CODES, np.float32(0.25), 3), (CODES, COLUMNS, None), (CODES, COLUMNS[0], np.int8(-5)),
        (BYTES, COLUMNS, np.array([[0, 255, 7, 128]], np.uint8)), (BYTES, BLOCKS, 200), (CODES, BLOCKS, 0),
        (CODES[:, :1], 0.5, -128), (CODES.astype(ml_dtypes.float8_e4m3fn), COLUMNS.astype(np.float16), None),
    ],
)  # fmt: skip
@pytest.mark.parametrize("known", [True, False])
def test_dequantize(codes: np.ndarray, scale: Any, zero: Any, known: bool):
    """Codes that are the program's, and those that are arguments."""
    wide = np.broadcast_to(np.repeat(scale, 3, 0) if np.shape(scale) == (2, 4) else scale, codes.shape)
    expected = (codes.astype(np.float32) - np.float32(0 if zero is None else zero)) * wide.astype(np.float32)
    if known:
        found = agree(lambda x: x + ft.dequantize(codes, scale, zero), np.zeros(codes.shape, np.float32))
    else:
        found = agree(lambda c: ft.dequantize(c, scale, zero), codes)
    same(found, expected)


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_results_of_16_bits(dtype: str):
    found = agree(lambda c: ft.dequantize(c, COLUMNS, 1, dtype), CODES)
    expected = ((CODES.astype(np.float32) - 1) * COLUMNS).astype(found.dtype)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("dtype", "zero", "low", "high"), [("i8", None, -128, 127), ("u8", 128, 0, 255)])
def test_quantize(dtype: str, zero: int | None, low: int, high: int):
    """Halves go to the even number, and what is outside to the nearest code."""
    x = np.array([[-1e9, -1.25, -0.75, -0.25, 0.0, 0.25, 0.75, 1.25, 1e9, 3.1]], np.float32)
    found = agree(lambda x: ft.quantize(x, 0.5, zero, dtype), x)
    np.testing.assert_array_equal(found, np.clip(np.rint(x / 0.5) + (zero or 0), low, high))
    same(agree(lambda x, s: ft.quantize(x, s), values(6, 4), COLUMNS), np.rint(values(6, 4) / COLUMNS).astype(np.int8))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: ft.dequantize(CODES.astype(np.int32), 1.0), "codes are of i8, u8, f8e4m3fn, f8e5m2, found i32"),
        (lambda x: ft.dequantize(CODES, np.ones((4, 4), np.float32)), "scales or zero points for a tensor"),
        (lambda x: ft.dequantize(CODES, np.ones((6, 4, 1), np.float32)), "scales or zero points for a tensor"),
        (lambda x: ft.dequantize(CODES, 1.0, np.uint8(3)), "zero points are of the type of the codes"),
        (lambda x: ft.dequantize(CODES, 1.0, 300), "300 is none of the codes"),
        (lambda x: ft.dequantize(CODES, np.ones(4, np.int32)), "the scale is of f32, f16, bf16, found i32"),
        (lambda x: ft.dequantize(CODES, BLOCKS, np.zeros((3, 4), np.int8)), "as many, or one"),
        (lambda x: ft.dequantize(CODES, 1.0, dtype="i32"), "the result is of f32, f16, bf16, found i32"),
        (lambda x: ft.dequantize(np.int8(3), 1.0), "codes has one dimension or more"),
        (lambda x: ft.quantize(x > 0, 1.0), "x is of f32, f16, bf16"),
        (lambda x: ft.quantize([x], 1.0), "x is a tensor, found lists"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("traced", [False, True])
def test_what_is_refused(call: Any, message: str, traced: bool):
    """In both modes, at the user's line."""

    @ft.function
    def program(x: ft.Tensor[6, 4]):
        return call(x)

    with pytest.raises(UserError, match=message) as caught:
        program.trace() if traced else program(values(6, 4))
    assert caught.value.location is not None and "test_fractal_quantized.py" in caught.value.location


@pytest.mark.parametrize("target", ["cpu", "cpu:x86-64-v3", "reference"])
def test_codes_of_each_element(target: str):
    """Codes, scales and zero points that vary with maps around them."""
    codes, scales = RNG.integers(0, 256, (3, 5, 6, 4)).astype(np.uint8), (RNG.random((5, 2, 4)) + 0.5).astype("f4")

    @ft.function
    def program(css: LISTS, ss: ft.Array[1, (2, 4)], x: ft.Tensor[2, 6]) -> ft.Array[2, (2, 4)]:
        return ft.map(lambda cs: ft.map(lambda c, s: x @ ft.dequantize(c, s, 128), cs, ss), css)

    x = values(2, 6)
    wide = (codes.astype(np.float32) - 128) * scales.repeat(3, 1)
    (found,) = tw.compile(program, target, shapes={"css": (3, 5), "ss": (5,)})(codes, scales, x)
    np.testing.assert_allclose(np.asarray(found), x @ wide, rtol=1e-5, atol=1e-5)

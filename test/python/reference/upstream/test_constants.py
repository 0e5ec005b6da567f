# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Constants of every element type, splats and infinities included."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

FLOATS = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "bf16": ml_dtypes.bfloat16}
INFINITY = {"f16": "0xFC00", "f32": "0xFF800000", "f64": "0xFFF0000000000000", "bf16": "0xFF80"}


def constant(interpret, text: str, kind: str):
    """The value of a constant."""
    return interpret(f"func.func @main() -> {kind} {{ %c = arith.constant {text} : {kind} return %c : {kind} }}")[0]


@pytest.mark.parametrize("element", FLOATS)
def test_floats(interpret, element):
    got = constant(interpret, f"dense<[1.5, {INFINITY[element]}, -2.0]>", f"tensor<3x{element}>")
    assert got.dtype == FLOATS[element]
    assert got.astype(float).tolist() == [1.5, -np.inf, -2.0]
    splat = constant(interpret, f"dense<{INFINITY[element]}>", f"tensor<2x2x{element}>")
    assert splat.astype(float).tolist() == [[-np.inf] * 2] * 2


@pytest.mark.parametrize("element", ["f8E4M3FN", "f8E4M3FNUZ", "f8E5M2", "f8E5M2FNUZ", "f6E3M2FN", "f4E2M1FN"])
def test_small_floats(interpret, element):
    assert constant(interpret, "dense<[1.5, -2.0]>", f"tensor<2x{element}>").astype(float).tolist() == [1.5, -2]
    assert constant(interpret, "dense<0.5>", f"tensor<2x{element}>").astype(float).tolist() == [0.5, 0.5]


@pytest.mark.parametrize("bits", [0x7D, 0x7F, 0xFE])
def test_the_bits_of_nan_are_kept(interpret, bits):
    got = constant(interpret, f"dense<[1.0, 0x{bits:X}]>", "tensor<2xf8E5M2>")
    assert got.view(np.uint8).tolist() == [0x3C, bits]


@pytest.mark.parametrize("element", ["i8", "i16", "i32", "i64", "i4"])
def test_integers(interpret, element):
    got = constant(interpret, "dense<[[1, -2], [3, 7]]>", f"tensor<2x2x{element}>")
    assert got.astype(int).tolist() == [[1, -2], [3, 7]]
    assert constant(interpret, "dense<-3>", f"tensor<2x{element}>").astype(int).tolist() == [-3, -3]


def test_bools_and_indices(interpret):
    assert constant(interpret, "dense<[true, false, true]>", "tensor<3xi1>").tolist() == [True, False, True]
    assert constant(interpret, "dense<[3, -1]>", "tensor<2xindex>").tolist() == [3, -1]
    assert constant(interpret, "dense<>", "tensor<0x2xf32>").shape == (0, 2)


def test_complex(interpret):
    got = constant(interpret, "dense<[(1.0, 0x7F800000), (-2.0, 0.5)]>", "tensor<2xcomplex<f32>>")
    assert got.tolist() == [complex(1, np.inf), -2 + 0.5j]
    big = constant(
        interpret, f'dense<"0x{np.arange(400, dtype=np.float32).tobytes().hex()}">', "tensor<200xcomplex<f32>>"
    )
    np.testing.assert_array_equal(big.view(np.float32), np.arange(400))

# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Casts, constants and selections of `arith`."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

CASTS = [
    ("extsi", "i8", "i32", np.int8([-128, -1, 127]), np.int32([-128, -1, 127])),
    ("extui", "i8", "i32", np.int8([-128, -1, 127]), np.int32([128, 255, 127])),
    ("extsi", "i1", "i32", np.array([False, True]), np.int32([0, -1])),
    ("extui", "i1", "i32", np.array([False, True]), np.int32([0, 1])),
    ("trunci", "i32", "i8", np.int32([300, -129, 5]), np.int8([44, 127, 5])),
    ("trunci", "i32", "i1", np.int32([2, 3]), np.array([False, True])),
    ("sitofp", "i8", "f32", np.int8([-5, 7]), np.float32([-5, 7])),
    ("sitofp", "i1", "f32", np.array([False, True]), np.float32([0, -1])),
    ("uitofp", "i8", "f32", np.int8([-5, 7]), np.float32([251, 7])),
    ("uitofp", "i1", "f32", np.array([False, True]), np.float32([0, 1])),
    ("fptosi", "f32", "i32", np.float32([-1.9, 1.9, 0]), np.int32([-1, 1, 0])),
    ("fptoui", "f32", "i8", np.float32([200.7, 1.9]), np.int8([-56, 1])),
    ("extf", "f16", "f32", np.float16([1.5, np.inf]), np.float32([1.5, np.inf])),
    ("extf", "bf16", "f32", np.array([1.5, -3], ml_dtypes.bfloat16), np.float32([1.5, -3])),
    ("truncf", "f32", "bf16", np.float32([1.00390625, 1.01171875]), np.array([1.0, 1.015625], ml_dtypes.bfloat16)),
    ("truncf", "f64", "f32", np.float64([1e300, 0.1]), np.float32([np.inf, 0.1])),
    (
        "truncf",
        "f64",
        "bf16",
        np.float64([1 + 2**-8 + 2**-40, 1 + 2**-8]),
        np.array([1 + 2**-7, 1], ml_dtypes.bfloat16),
    ),
    ("sitofp", "i64", "bf16", np.int64([2**62 + 2**54 + 1]), np.array([2.0**62 + 2.0**55], ml_dtypes.bfloat16)),
    ("truncf", "f32", "f8E4M3FN", np.float32([1.0625, 464]), np.array([1, 448], ml_dtypes.float8_e4m3fn)),
    ("extf", "f8E5M2FNUZ", "f32", np.array([1.5, np.nan], ml_dtypes.float8_e5m2fnuz), np.float32([1.5, np.nan])),
    ("extsi", "i4", "i32", np.array([-8, 7], ml_dtypes.int4), np.int32([-8, 7])),
    ("extui", "i4", "i32", np.array([-8, 7], ml_dtypes.int4), np.int32([8, 7])),
    ("extui", "i2", "i8", np.array([-1, 1], ml_dtypes.int2), np.int8([3, 1])),
    ("trunci", "i32", "i4", np.int32([9, -9]), np.array([-7, 7], ml_dtypes.int4)),
    ("bitcast", "i4", "f4E2M1FN", np.array([-8, 7], ml_dtypes.int4), np.array([-0.0, 6], ml_dtypes.float4_e2m1fn)),
    ("bitcast", "f32", "i32", np.float32([1, -0.0]), np.int32([0x3F800000, -(2**31)])),
    ("index_cast", "i32", "index", np.int32([-3, 4]), np.int64([-3, 4])),
    ("index_castui", "i32", "index", np.int32([-1, 4]), np.int64([2**32 - 1, 4])),
    ("index_cast", "index", "i32", np.int64([2**32 + 7, -1]), np.int32([7, -1])),
]


@pytest.mark.parametrize(("name", "source", "target", "x", "expected"), CASTS)
def test_casts(elementwise, name, source, target, x, expected):
    got = elementwise(f"arith.{name} {{0}} : {{types[0]}} to {{result}}", [source], target, x)
    assert got.dtype == expected.dtype
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(
    ("text", "type_", "expected"),
    [
        ("dense<[[1.0, 2.0], [3.0, 4.5]]>", "tensor<2x2xf32>", np.float32([[1, 2], [3, 4.5]])),
        ("dense<0xFF800000>", "tensor<2xf32>", np.float32([-np.inf, -np.inf])),
        ("dense<[true, false]>", "tensor<2xi1>", np.array([True, False])),
        ("dense<[-1, 2]>", "tensor<2xi8>", np.int8([-1, 2])),
        ("dense<[-1, 9]>", "tensor<2xindex>", np.int64([-1, 9])),
        ("dense<[1.0, -0.5]>", "tensor<2xbf16>", np.array([1, -0.5], ml_dtypes.bfloat16)),
        ("dense<>", "tensor<0x3xf32>", np.zeros((0, 3), np.float32)),
        ("dense<2.5>", "tensor<f32>", np.float32(2.5)),
    ],
)
def test_constants(interpret, text, type_, expected):
    (got,) = interpret(f"func.func @main() -> {type_} {{ %c = arith.constant {text} : {type_} return %c : {type_} }}")
    assert got.dtype == np.asarray(expected).dtype
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("-7 : i8", np.int8(-7)), ("1.5 : f16", np.float16(1.5)), ("true", np.True_), ("3 : index", np.int64(3))],
)
def test_scalar_constants(interpret, text, expected):
    type_ = text.split(" : ")[1] if ":" in text else "i1"
    (got,) = interpret(f"func.func @main() -> {type_} {{ %c = arith.constant {text} return %c : {type_} }}")
    assert got.dtype == expected.dtype
    assert got == expected


def test_select_by_scalar_and_by_element(interpret):
    a, b = np.float32([1, 2]), np.float32([3, 4])
    text = """func.func @main(%c: i1, %m: tensor<2xi1>, %a: tensor<2xf32>, %b: tensor<2xf32>)
        -> (tensor<2xf32>, tensor<2xf32>) {
      %0 = arith.select %c, %a, %b : tensor<2xf32>
      %1 = arith.select %m, %a, %b : tensor<2xi1>, tensor<2xf32>
      return %0, %1 : tensor<2xf32>, tensor<2xf32> }"""
    whole, each = interpret(text, False, np.array([True, False]), a, b)
    assert whole.tolist() == [3, 4]
    assert each.tolist() == [1, 4]


def test_extended_products_and_carry(interpret):
    text = """func.func @main(%a: i32, %b: i32) -> (i32, i32, i32, i1) {
      %l, %h = arith.mulsi_extended %a, %b : i32
      %ul, %uh = arith.mului_extended %a, %b : i32
      %s, %c = arith.addui_extended %a, %b : i32, i1
      return %h, %uh, %s, %c : i32, i32, i32, i1 }"""
    high, unsigned_high, total, carry = interpret(text, -2, 3)
    assert (int(high), int(unsigned_high), int(total), bool(carry)) == (-1, 2, 1, True)

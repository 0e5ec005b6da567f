# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`math` against the C library, one element at a time."""

from __future__ import annotations

import math

import numpy as np
import pytest

POINTS = np.array([-3.5, -2.5, -0.75, -0.5, 0.0, 0.25, 0.5, 0.99, 1.5, 2.5], np.float32)


def domain(low: float, high: float) -> np.ndarray:
    """The points within an interval."""
    return POINTS[(low <= POINTS) & (high >= POINTS)]


UNARY = [
    ("absf", abs, POINTS),
    ("exp", math.exp, POINTS),
    ("exp2", lambda x: 2.0**x, POINTS),
    ("expm1", math.expm1, POINTS),
    ("log", math.log, domain(0.1, 9)),
    ("log1p", math.log1p, domain(-0.9, 9)),
    ("log2", math.log2, domain(0.1, 9)),
    ("log10", math.log10, domain(0.1, 9)),
    ("sqrt", math.sqrt, domain(0, 9)),
    ("rsqrt", lambda x: 1 / math.sqrt(x), domain(0.1, 9)),
    ("cbrt", lambda x: math.copysign(abs(x) ** (1 / 3), x), POINTS),
    ("sin", math.sin, POINTS),
    ("cos", math.cos, POINTS),
    ("tan", math.tan, POINTS),
    ("asin", math.asin, domain(-1, 1)),
    ("acos", math.acos, domain(-1, 1)),
    ("atan", math.atan, POINTS),
    ("sinh", math.sinh, POINTS),
    ("cosh", math.cosh, POINTS),
    ("tanh", math.tanh, POINTS),
    ("asinh", math.asinh, POINTS),
    ("acosh", math.acosh, domain(1, 9)),
    ("atanh", math.atanh, domain(-0.9, 0.9)),
    ("erf", math.erf, POINTS),
    ("erfc", math.erfc, POINTS),
    ("ceil", math.ceil, POINTS),
    ("floor", math.floor, POINTS),
    ("trunc", math.trunc, POINTS),
    ("roundeven", round, POINTS),
    ("round", lambda x: math.copysign(math.floor(abs(x) + 0.5), x), POINTS),
]


@pytest.mark.parametrize(("name", "function", "points"), UNARY, ids=[case[0] for case in UNARY])
def test_unary(elementwise, name, function, points):
    got = elementwise(f"math.{name} {{0}} : {{types[0]}}", ["f32"], "f32", points)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, [function(x) for x in points.tolist()], rtol=1e-7)


@pytest.mark.parametrize("name", ["atan2", "copysign", "powf"])
def test_binary(elementwise, name):
    a, b = np.abs(POINTS), POINTS[::-1].copy()
    a[a == 0] = 1
    got = elementwise(f"math.{name} {{0}} : {{types[0]}}", ["f32", "f32"], "f32", a, b)
    function = {"atan2": math.atan2, "copysign": math.copysign, "powf": math.pow}[name]
    np.testing.assert_allclose(got, [function(x, y) for x, y in zip(a.tolist(), b.tolist(), strict=True)], rtol=1e-7)


def test_fma_rounds_once(elementwise):
    a = np.float32([1 + 2**-12])
    got = elementwise("math.fma {0} : {types[0]}", ["f32"] * 3, "f32", a, a, np.float32([-1 - 2**-11]))
    assert got.tolist() == [2.0**-24]


def test_powers_with_integer_exponents(elementwise):
    x, n = np.float32([2, 3]), np.int32([-1, 2])
    got = elementwise("math.fpowi {0} : {types[0]}, {types[1]}", ["f32", "i32"], "f32", x, n)
    assert got.tolist() == [0.5, 9]
    base, exponent = np.int32([2, -1, -1, 1, 5]), np.int32([10, -3, -2, -5, -1])
    got = elementwise("math.ipowi {0} : {types[0]}", ["i32", "i32"], "i32", base, exponent)
    assert got.tolist() == [1024, -1, 1, 1, 0]


def test_absolute_clamp_and_both_sine_and_cosine(interpret, elementwise):
    assert elementwise("math.absi {0} : {types[0]}", ["i8"], "i8", np.int8([-128, -5, 7])).tolist() == [-128, 5, 7]
    x, low, high = np.float32([-3, 0.5, 9]), np.float32([-1] * 3), np.float32([2] * 3)
    text = """func.func @main(%x: tensor<3xf32>, %l: tensor<3xf32>, %h: tensor<3xf32>)
        -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) {
      %c = math.clampf %x to [%l, %h] : tensor<3xf32>
      %s, %k = math.sincos %x : tensor<3xf32>
      return %c, %s, %k : tensor<3xf32>, tensor<3xf32>, tensor<3xf32> }"""
    clamped, sine, cosine = interpret(text, x, low, high)
    assert clamped.tolist() == [-1, 0.5, 2]
    np.testing.assert_allclose(sine, np.sin(x.astype(np.float64)), rtol=1e-6)
    np.testing.assert_allclose(cosine, np.cos(x.astype(np.float64)), rtol=1e-6)


def test_bit_counts(elementwise):
    x = np.int8([0, 1, -1, 64, 12])
    run = lambda name: elementwise(f"math.{name} {{0}} : {{types[0]}}", ["i8"], "i8", x).tolist()  # noqa: E731
    assert run("ctlz") == [8, 7, 0, 1, 4]
    assert run("cttz") == [8, 0, 0, 6, 2]
    assert run("ctpop") == [0, 1, 8, 1, 2]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("isnan", [0, 0, 0, 0, 1]),
        ("isinf", [0, 0, 0, 1, 0]),
        ("isfinite", [1, 1, 1, 0, 0]),
        ("isnormal", [1, 0, 0, 0, 0]),
    ],
)
def test_classes(elementwise, name, expected):
    x = np.float32([1, 0, 1e-40, np.inf, np.nan])
    got = elementwise(f"math.{name} {{0}} : {{types[0]}}", ["f32"], "i1", x)
    assert got.tolist() == list(map(bool, expected))


def test_edges_of_exp_and_log(elementwise):
    x = np.float32([-np.inf, np.inf, np.nan])
    np.testing.assert_array_equal(
        elementwise("math.exp {0} : {types[0]}", ["f32"], "f32", x), np.float32([0, np.inf, np.nan])
    )
    y = np.float32([0, -1, np.inf])
    np.testing.assert_array_equal(
        elementwise("math.log {0} : {types[0]}", ["f32"], "f32", y), np.float32([-np.inf, np.nan, np.inf])
    )

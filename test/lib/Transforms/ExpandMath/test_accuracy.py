# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Errors of expanded math functions, in units in the last place of f32, against f64."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from lib.Conversion.native import Kernel
from ulps import ulps

N = 1 << 14
ERF = np.vectorize(math.erf)
ERFC = np.vectorize(math.erfc)
INF, NAN = np.inf, np.nan

# name: (float64 reference, lowest and highest argument, allowed error in ulp)
FUNCTIONS: dict[str, tuple[Callable, float, float, float]] = {
    "exp": (np.exp, -103, 88.7, 2),
    "exp2": (np.exp2, -149, 127.9, 2),
    "expm1": (np.expm1, -20, 88, 2),
    "erf": (ERF, -5, 5, 2),
    "erfc": (ERFC, -5, 8, 4),
    "tanh": (np.tanh, -12, 12, 2),
    "sinh": (np.sinh, -88, 88, 2),
    "cosh": (np.cosh, -88, 88, 2),
    "log": (np.log, 1e-42, 1e38, 2),
    "log2": (np.log2, 1e-42, 1e38, 2),
    "log10": (np.log10, 1e-42, 1e38, 2),
    "log1p": (np.log1p, -0.999, 1e6, 2),
    "cbrt": (np.cbrt, -1e30, 1e30, 2),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 1e-30, 1e30, 2),
    "sqrt": (np.sqrt, 0, 1e30, 0.5001),
    "asinh": (np.arcsinh, -1e6, 1e6, 2),
    "acosh": (np.arccosh, 1, 1e6, 2),
    "atanh": (np.arctanh, -0.9999, 0.9999, 2),
    "sin": (np.sin, -1e5, 1e5, 2),
    "cos": (np.cos, -1e5, 1e5, 2),
    "tan": (np.tan, -1e3, 1e3, 2),
    "atan": (np.arctan, -1e6, 1e6, 2),
    "asin": (np.arcsin, -1, 1, 2),
    "acos": (np.arccos, -1, 1, 2),
}


def evaluate(name: str, *inputs: np.ndarray) -> np.ndarray:
    """math.<name> of f32 arrays of N elements."""
    return evaluate_body("  %r = math.{name} {operands} : {tile}\n", name, *inputs)


LOGISTIC = """  %one = arith.constant dense<1.0> : {tile}
  %n = arith.negf {operands} : {tile}
  %e = math.exp %n : {tile}
  %s = arith.addf %e, %one : {tile}
  %r = arith.divf %one, %s : {tile}
"""


def evaluate_body(body: str, name: str, *inputs: np.ndarray) -> np.ndarray:
    """%r of operations on tiles of the inputs."""
    memref, tile = f"memref<{N}xf32>", "!tile.tile<32xf32>"
    arguments = ", ".join(f"%x{i}: {memref}" for i in range(len(inputs)))
    loads = "".join(f"  %t{i} = tile.load %x{i}[%o] : {memref}, {tile}\n" for i in range(len(inputs)))
    operands = ", ".join(f"%t{i}" for i in range(len(inputs)))
    text = f"""tile.kernel @k({arguments}, %y: {memref}) grid(%i) {{
  %c32 = arith.constant 32 : index
  %o = arith.muli %i, %c32 : index
{loads}{body.format(name=name, operands=operands, tile=tile)}  tile.store %r, %y[%o] : {tile}, {memref}
  tile.return
}}"""
    padded = [np.resize(np.asarray(x, np.float32), N) for x in inputs]
    result = np.zeros(N, np.float32)
    Kernel(text, "k")(*padded, result, grid=(N // 32,))
    return result[: len(inputs[0])]


def samples(low: float, high: float) -> np.ndarray:
    """Evenly spread and, for both signs, spread over magnitudes."""
    even = np.linspace(low, high, N // 2)
    tiny = np.geomspace(1e-42, max(abs(low), abs(high)), N // 4)
    spread = np.concatenate([even, tiny, -tiny]).astype(np.float32)
    return spread[(spread >= np.float32(low)) & (spread <= np.float32(high))]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_error(name: str) -> None:
    """The largest error over the whole range."""
    function, low, high, allowed = FUNCTIONS[name]
    x = samples(low, high)
    want = function(x.astype(np.float64))
    error = ulps(evaluate(name, x), want)
    worst = int(np.argmax(error))
    assert error[worst] <= allowed, f"{error[worst]:.2f} ulp at {x[worst]!r}"


@pytest.mark.parametrize(
    "name,arguments,want",
    [
        ("exp", [INF, -INF, NAN, 0.0, -200.0, 100.0], [INF, 0, NAN, 1, 0, INF]),
        ("exp2", [INF, -INF, NAN, 0.0, 3.0, 200.0], [INF, 0, NAN, 1, 8, INF]),
        ("log", [INF, 0.0, -1.0, NAN, 1.0], [INF, -INF, NAN, NAN, 0]),
        ("log2", [INF, 0.0, -1.0, NAN, 8.0], [INF, -INF, NAN, NAN, 3]),
        ("tanh", [INF, -INF, NAN, -0.0], [1, -1, NAN, -0.0]),
        ("erf", [INF, -INF, NAN, -0.0], [1, -1, NAN, -0.0]),
        ("sin", [INF, NAN, -0.0], [NAN, NAN, -0.0]),
        ("rsqrt", [0.0, INF, -1.0, 4.0], [INF, 0, NAN, 0.5]),
    ],
)
def test_special_values(name: str, arguments: list[float], want: list[float]) -> None:
    """Infinities, NaN and signed zeros."""
    got = evaluate(name, np.array(arguments, np.float32))
    np.testing.assert_array_equal(got, np.array(want, np.float32))
    np.testing.assert_array_equal(np.signbit(got), np.signbit(np.where(np.isnan(got), got, np.array(want, np.float32))))


def test_logistic() -> None:
    """1 / (1 + exp(-x)), whose exponential is made for this sum; denormal results too, and the ends."""
    x = samples(-88.7, 30)
    want = 1 / (1 + np.exp(-x.astype(np.float64)))
    error = ulps(evaluate_body(LOGISTIC, "logistic", x), want)
    worst = int(np.argmax(error))
    assert error[worst] <= 2, f"{error[worst]:.2f} ulp at {x[worst]!r}"
    ends = np.array([INF, -INF, NAN, 0.0, -0.0, 100.0, -100.0], np.float32)
    got = evaluate_body(LOGISTIC, "logistic", ends)
    np.testing.assert_array_equal(got, np.array([1, 0, NAN, 0.5, 0.5, 1, 0], np.float32))


def test_pow() -> None:
    """Random bases and powers, and the table of IEEE 754."""
    rng = np.random.default_rng(3)
    x, y = np.exp(rng.uniform(-20, 20, N)).astype(np.float32), rng.uniform(-4, 4, N).astype(np.float32)
    error = ulps(evaluate("powf", x, y), x.astype(np.float64) ** y.astype(np.float64))
    assert error.max() <= 2
    bases = np.array([-2, -2, -8, 0, 0, -0.0, INF, INF, NAN, 1, NAN, 2, 0.5, -INF], np.float32)
    powers = np.array([3, 2, 1 / 3, 2, -2, -3, 2, -2, 0, NAN, 2, INF, INF, 3], np.float32)
    want = np.array([-8, 4, NAN, 0, INF, -INF, INF, 0, 1, 1, NAN, INF, 0, -INF], np.float32)
    np.testing.assert_array_equal(evaluate("powf", bases, powers), want)


def test_atan2() -> None:
    """All quadrants."""
    rng = np.random.default_rng(4)
    y, x = rng.standard_normal((2, N)).astype(np.float32)
    want = np.arctan2(y.astype(np.float64), x.astype(np.float64))
    assert ulps(evaluate("atan2", y, x), want).max() <= 2

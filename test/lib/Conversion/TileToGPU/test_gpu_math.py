# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions in kernels for GPUs, on the emulator, whose special function unit is as far off as PTX allows."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from gpu_kernels import run

from ulps import ulps

RNG = np.random.default_rng(11)
BLOCK, BLOCKS = 1024, 16
N = BLOCK * BLOCKS
INF, NAN = np.inf, np.nan


def evaluate(name: str, *inputs: np.ndarray, fast: bool = False, op: str = "") -> np.ndarray:
    """math.<name>, or the op, of arrays of N numbers."""
    kind = f"f{8 * inputs[0].itemsize}"
    memref, tile = f"memref<{N}x{kind}>", f"!tile.tile<{BLOCK}x{kind}>"
    arguments = ", ".join(f"%x{i}: {memref}" for i in range(len(inputs)))
    loads = "".join(f"%t{i} = tile.load %x{i}[%o] : {memref}, {tile}\n" for i in range(len(inputs)))
    operands = ", ".join(f"%t{i}" for i in range(len(inputs)))
    text = f"""tile.kernel @k({arguments}, %y: {memref}) grid(%i) attributes {{tile.threads = 128 : i64}} {{
      %size = arith.constant {BLOCK} : index
      %o = arith.muli %i, %size : index
      {loads}
      %r = {op or "math." + name} {operands} : {tile}
      tile.store %r, %y[%o] : {tile}, {memref}
      tile.return
    }}"""
    y = np.zeros_like(inputs[0])
    run(text, "k", [*inputs, y], (BLOCKS,), fast=fast)
    return y


def spread(low: float, high: float, dtype: type) -> np.ndarray:
    """Half of the numbers evenly between two, half evenly over the exponents of those."""
    even = RNG.uniform(low, high, N // 2)
    tiny = max(abs(low) if low > 0 else 0.0, 1e-30)
    sizes = np.exp(RNG.uniform(np.log(tiny), np.log(max(abs(low), abs(high))), N // 2))
    signs = np.where((RNG.random(N // 2) < 0.5) & (low < 0), -1.0, 1.0)
    return np.clip(np.concatenate([even, sizes * signs]), low, high).astype(dtype)


ENDS = [INF, -INF, NAN, 0.0, -0.0, 1.0, -1.0]

#: name: reference, lowest and highest argument.
UNIT: dict[str, tuple[Callable, float, float]] = {
    "exp": (np.exp, -103, 89.5),
    "exp2": (np.exp2, -149, 128.5),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 1e-37, 3e38),
}


@pytest.mark.parametrize("name", UNIT)
def test_accurate_functions_of_the_unit(name: str) -> None:
    """Within 2 units in the last place, ends as in IEEE 754; with denormal results."""
    reference, low, high = UNIT[name]
    x = spread(low, high, np.float32)
    x[: len(ENDS)] = ENDS
    with np.errstate(all="ignore"):
        assert ulps(evaluate(name, x), reference(x.astype(np.float64))).max() <= 2


#: name: reference, lowest and highest argument, and the error that the unit's documented one leads to.
FAST: dict[str, tuple[Callable, float, float, Callable]] = {
    "exp": (np.exp, -87, 88, lambda x, y: y * (2**-22 + 2**-22 * np.abs(x))),
    "exp2": (np.exp2, -125, 127, lambda x, y: y * 2**-22),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 1e-37, 3e38, lambda x, y: y * 2**-22.8),
    "log": (np.log, 1e-37, 3e38, lambda x, y: 2**-22 + 2**-21 * np.abs(y)),
    "log2": (np.log2, 1e-37, 3e38, lambda x, y: 2**-22 + 2**-21 * np.abs(y)),
    "tanh": (np.tanh, -20, 20, lambda x, y: 2**-10.9 * np.abs(y)),
    "sin": (np.sin, -6.28, 6.28, lambda x, y: 2**-20.5),
    "cos": (np.cos, -6.28, 6.28, lambda x, y: 2**-20.5),
    "sqrt": (np.sqrt, 1e-37, 3e38, lambda x, y: y * 2**-22.9),
}


@pytest.mark.parametrize("name", FAST)
def test_fast_functions(name: str) -> None:
    reference, low, high, bound = FAST[name]
    x = spread(low, high, np.float32)
    exact = reference(x.astype(np.float64))
    got = evaluate(name, x, fast=True)
    assert np.all(np.abs(got - exact) <= bound(x.astype(np.float64), exact) + 1e-37)
    if name != "exp2":  # the same instruction, but for denormal results
        assert np.any(got != evaluate(name, x)), "the accurate variant gives other bits"


def erf(x: np.ndarray) -> np.ndarray:
    return np.vectorize(math.erf)(x.astype(np.float64)).astype(np.longdouble)


def erfc(x: np.ndarray) -> np.ndarray:
    return np.vectorize(math.erfc)(x.astype(np.float64)).astype(np.longdouble)


#: name: reference on long doubles, lowest and highest argument, units in the last place.
DOUBLES: dict[str, tuple[Callable, float, float, float]] = {
    "exp": (np.exp, -745, 709.7, 2),
    "exp2": (np.exp2, -1074, 1023.9, 2),
    "expm1": (np.expm1, -50, 700, 3),
    "log": (np.log, 1e-320, 1e308, 1),
    "log2": (np.log2, 1e-300, 1e300, 1),
    "log10": (np.log10, 1e-300, 1e300, 1),
    "log1p": (np.log1p, -0.9999, 1e6, 4),
    "tanh": (np.tanh, -30, 30, 4),
    "sinh": (np.sinh, -710, 710, 4),
    "cosh": (np.cosh, -710, 710, 4),
    "asinh": (np.arcsinh, -1e200, 1e200, 5),
    "acosh": (np.arccosh, 1, 1e200, 5),
    "atanh": (np.arctanh, -0.9999, 0.9999, 6),
    "cbrt": (np.cbrt, -1e300, 1e300, 2),
    "erf": (erf, -6, 6, 3),
    "erfc": (erfc, -6, 26, 6),
    "sin": (np.sin, -1e5, 1e5, 2),
    "cos": (np.cos, -1e5, 1e5, 2),
    "tan": (np.tan, -1e3, 1e3, 4),
    "atan": (np.arctan, -1e6, 1e6, 2),
    "asin": (np.arcsin, -1, 1, 4),
    "acos": (np.arccos, -1, 1, 4),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 1e-300, 1e300, 2),
}


@pytest.mark.parametrize("name", DOUBLES)
def test_functions_of_f64(name: str) -> None:
    """To a few units in the last place of f64, ends as in IEEE 754."""
    reference, low, high, bound = DOUBLES[name]
    x = spread(low, high, np.float64)
    x[: len(ENDS)] = ENDS
    with np.errstate(all="ignore"):
        assert ulps(evaluate(name, x), reference(x.astype(np.longdouble))).max() <= bound


def test_powers_of_f64() -> None:
    x, y = np.abs(spread(-1e3, 1e3, np.float64)), spread(-100, 100, np.float64)
    pairs = [(b, e) for b in (*ENDS, -2.0, 0.5) for e in (*ENDS, 2.0, 3.0, -3.0, 0.5)]
    x[: len(pairs)], y[: len(pairs)] = np.array(pairs).T
    with np.errstate(all="ignore"):
        assert ulps(evaluate("powf", x, y), np.power(x.astype(np.longdouble), y.astype(np.longdouble))).max() <= 2


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_remainders_are_exact(dtype: type) -> None:
    """fmod at any quotient: the same bits."""
    limit = {np.float16: 6e4, np.float32: 3e38, np.float64: 1e300}[dtype]
    x, y = spread(-limit, limit, dtype), np.roll(spread(-limit, limit, dtype), N // 3)
    pairs = [(a, b) for a in (*ENDS, 5.5, 1e-7) for b in (*ENDS, 3.0, -1e-7)]
    x[: len(pairs)], y[: len(pairs)] = np.array(pairs).T
    with np.errstate(all="ignore"):
        want = np.fmod(x, y)
    np.testing.assert_array_equal(evaluate("", x, y, op="arith.remf"), want)


def test_divisions_by_constants_round_as_divisions() -> None:
    memref = f"memref<{N}xf32>"
    text = f"""tile.kernel @k(%x: {memref}, %y: {memref}) grid(%i) attributes {{tile.threads = 128 : i64}} {{
      %size = arith.constant {BLOCK} : index
      %o = arith.muli %i, %size : index
      %c = arith.constant dense<1.4140625> : !tile.tile<{BLOCK}xf32>
      %t = tile.load %x[%o] : {memref}, !tile.tile<{BLOCK}xf32>
      %r = arith.divf %t, %c : !tile.tile<{BLOCK}xf32>
      tile.store %r, %y[%o] : !tile.tile<{BLOCK}xf32>, {memref}
      tile.return
    }}"""
    x = spread(-1e36, 1e36, np.float32)
    x[:4] = [INF, -INF, NAN, 0.0]
    y = np.zeros_like(x)
    run(text, "k", [x, y], (BLOCKS,))
    np.testing.assert_array_equal(y, x / np.float32(1.4140625))

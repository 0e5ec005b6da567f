# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The functions of the `math` dialect on floats of NumPy, by the name of the op without its dialect."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def elementwise(function: Any) -> Any:
    """Make a NumPy function of a Python function on floats."""
    ufunc = np.frompyfunc(function, 1, 1)
    return lambda x: np.asarray(ufunc(x)).astype(np.float64)


def round_half_away(x: Any) -> Any:
    """Round to nearest, halves away from zero."""
    whole = np.trunc(x)
    return whole + np.where(np.abs(x - whole) >= 0.5, np.sign(x), 0)


ON_FLOAT64 = {
    "absf": np.abs,
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log1p": np.log1p,
    "log2": np.log2,
    "log10": np.log10,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "cbrt": np.cbrt,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "atan2": np.arctan2,
    "erf": elementwise(math.erf),
    "erfc": elementwise(math.erfc),
    "ceil": np.ceil,
    "floor": np.floor,
    "trunc": np.trunc,
    "round": round_half_away,
    "roundeven": np.rint,
    "powf": np.power,
    "fpowi": np.power,
    "fma": lambda a, b, c: a * b + c,
    "copysign": np.copysign,
    "clampf": lambda x, low, high: np.minimum(np.maximum(x, low), high),
}

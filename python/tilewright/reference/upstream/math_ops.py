# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The `math` dialect: computed in float64 (or exactly) and rounded once to the operand's type."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from tilewright.reference.integers import on_signed, unsigned
from tilewright.reference.math_functions import ROUNDED
from tilewright.reference.program import Node
from tilewright.reference.registry import handles, pure


def rounded(function: Any) -> Any:
    """Make ``function`` compute in float64; the result has the first operand's dtype."""
    return lambda a, *rest: np.asarray(
        function(np.asarray(a, np.float64), *(np.asarray(x, np.float64) for x in rest))
    ).astype(a.dtype)[()]


for _name, _function in ROUNDED.items():
    pure(f"math.{_name}", rounded(_function))
for _name, _function in {"isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite}.items():
    pure(f"math.{_name}", _function)
pure("math.absi", on_signed(np.abs))
pure("math.sincos", lambda x: (rounded(np.sin)(x), rounded(np.cos)(x)))


@handles("math.isnormal")
def isnormal(_frame: Any, _node: Node, x: Any) -> Any:
    """Neither zero, subnormal, infinite nor NaN."""
    return np.isfinite(x) & (np.abs(x) >= ml_dtypes.finfo(x.dtype).smallest_normal)


@handles("math.ipowi")
def ipowi(_frame: Any, _node: Node, base: Any, exponent: Any) -> Any:
    """Integer power; a negative exponent gives 1/base rounded toward zero."""
    positive = np.power(base, np.maximum(exponent, 0))
    inverse = np.where(base == 1, 1, np.where(base == -1, 1 - 2 * (exponent & 1), 0))
    return np.where(exponent < 0, inverse, positive).astype(base.dtype)[()]


def _bits(x: Any) -> tuple[np.ndarray, int]:
    width = 1 if x.dtype == np.bool_ else x.dtype.itemsize * 8
    wide = np.asarray(unsigned(x)).astype(np.uint64)
    return np.stack([(wide >> np.uint64(i)) & np.uint64(1) for i in range(width)]).astype(bool), width


def _count(first: Any) -> Any:
    return lambda x: np.asarray(first(x)).astype(x.dtype)[()]


def _leading(x: Any) -> Any:
    bits, width = _bits(x)
    return np.where(bits.any(0), np.argmax(bits[::-1], 0), width)


def _trailing(x: Any) -> Any:
    bits, width = _bits(x)
    return np.where(bits.any(0), np.argmax(bits, 0), width)


pure("math.ctlz", _count(_leading))
pure("math.cttz", _count(_trailing))
pure("math.ctpop", _count(lambda x: _bits(x)[0].sum(0)))

# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise functions of leaves: what NumPy computes, and the body that computes the same in IR.

They are named as NumPy's functions, which also say what the element types are (`resolve_dtypes`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Elementwise:
    """One function.

    Attributes:
        eager: on NumPy arrays and Python's numbers.
        body: (m, *elements) -> element, on the scalars of `tilewright.frontend.builder.scalars`.
        like: NumPy's function with the same element types.
    """

    eager: Callable[..., Any]
    body: Callable[..., Any]
    like: np.ufunc


def _sigmoid(x: Any) -> Any:
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-x))


def _power(m: Any, a: Any, b: Any) -> Any:
    return a * a if b.known == 2 else m.sqrt(a) if b.known == 0.5 else m.power(a, b)


def _named(function: np.ufunc, body: Callable[..., Any]) -> Elementwise:
    return Elementwise(function, body, function)


def _relation(function: np.ufunc, name: str) -> Elementwise:
    return _named(function, lambda m, a, b: m.relation(name, a, b))


def _unary(function: np.ufunc) -> Elementwise:
    return _named(function, lambda m, a: getattr(m, function.__name__)(a))


ARITHMETIC = {
    "add": _named(np.add, lambda m, a, b: a + b),
    "subtract": _named(np.subtract, lambda m, a, b: a - b),
    "multiply": _named(np.multiply, lambda m, a, b: a * b),
    "divide": _named(np.divide, lambda m, a, b: a / b),
    "power": _named(np.power, _power),
    "negative": _named(np.negative, lambda m, a: -a),
    "absolute": _named(np.absolute, lambda m, a: m.absolute(a)),
    "square": _named(np.square, lambda m, a: a * a),
    "maximum": _named(np.maximum, lambda m, a, b: m.maximum(a, b)),
    "minimum": _named(np.minimum, lambda m, a, b: m.minimum(a, b)),
    "relu": Elementwise(lambda x: np.maximum(x, 0), lambda m, a: m.maximum(a, 0), np.negative),
    "sigmoid": Elementwise(_sigmoid, lambda m, a: 1 / (1 + m.exp(-a)), np.exp),
} | {f.__name__: _unary(f) for f in (np.exp, np.log, np.sqrt, np.tanh, np.sin, np.cos, np.floor, np.ceil)}

TABLE = ARITHMETIC | {
    "less": _relation(np.less, "lt"),
    "less_equal": _relation(np.less_equal, "le"),
    "greater": _relation(np.greater, "gt"),
    "greater_equal": _relation(np.greater_equal, "ge"),
    "equal": _relation(np.equal, "eq"),
    "not_equal": _relation(np.not_equal, "ne"),
    "bitwise_and": _named(np.bitwise_and, lambda m, a, b: m.bit_and(a, b)),
    "bitwise_or": _named(np.bitwise_or, lambda m, a, b: m.bit_or(a, b)),
    "bitwise_xor": _named(np.bitwise_xor, lambda m, a, b: m.bit_xor(a, b)),
    "invert": _named(np.invert, lambda m, a: m.bit_not(a)),
}

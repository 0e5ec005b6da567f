# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scalar arithmetic of a host program, by the names of MLIR's `arith` and `math` operations.

Integers are Python numbers in the signed range of their type (`i1` is a bool), floats are Python floats that were
rounded to their type. What MLIR leaves undefined (a division by zero) is a UserError: the model asked for it.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.core.dtypes import rounded, to_numpy
from tilewright.core.errors import UnsupportedError, UserError

Scalar = Any  # bool, int or float

_FLOATS = ("f64", "f32", "f16", "bf16", "f8", "f6", "f4")


def is_float(kind: str) -> bool:
    """Return whether a type's name is that of a float."""
    return kind.startswith(_FLOATS)


def bits_of(kind: str) -> int:
    """Return the width of an integer type, `index` having 64."""
    return 64 if kind == "index" else int(kind[1:])


def wrap(value: int, kind: str) -> Scalar:
    """Return the number modulo the type's range, signed; a bool for `i1`."""
    bits = bits_of(kind)
    if bits == 1:
        return bool(value & 1)
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def unsigned(value: int, kind: str) -> int:
    """Return the number as the unsigned one of the same bits."""
    return value & ((1 << bits_of(kind)) - 1)


def round_to(value: float, kind: str) -> float:
    """Return the float rounded to a type."""
    with np.errstate(all="ignore"):
        return float(rounded(np.float64(value), to_numpy(kind.lower())))


def apply(name: str, operands: list[Scalar], kind: str, to: str, predicate: str) -> Scalar:
    """Compute one operation.

    Args:
        name: of the operation, e.g. ``arith.addi``.
        operands: numbers.
        kind: type of the operands (the last one's).
        to: type of the result.
        predicate: of a comparison.

    Raises:
        UserError: a division by zero.
    """
    if name in ("arith.cmpi", "arith.cmpf"):
        return _compare(predicate, operands, kind, name == "arith.cmpf")
    if name in _CONVERSIONS:
        return _CONVERSIONS[name](operands[0], kind, to)
    if name in _FLOAT:
        return _float(_FLOAT[name], operands, to)
    return _INTEGER[name](*operands, kind)


def check_known(name: str) -> None:
    """Check that an operation can stand in a host program.

    Raises:
        UnsupportedError: it cannot.
    """
    if name not in _CONVERSIONS and name not in _FLOAT and name not in _INTEGER and name not in _COMPARISONS:
        raise UnsupportedError(f"a host program of a GPU has no scalar operation {name}")


def _divide(left: int, right: int) -> int:
    """The quotient that C gives: towards zero."""
    if right == 0:
        raise UserError("the model divides an integer by zero")
    quotient = abs(left) // abs(right)
    return -quotient if (left < 0) != (right < 0) else quotient


def _floor(left: int, right: int) -> int:
    if right == 0:
        raise UserError("the model divides an integer by zero")
    return left // right


def _signed(function: Callable[[int, int], int]) -> Callable[[int, int, str], Scalar]:
    return lambda left, right, kind: wrap(function(int(left), int(right)), kind)


def _as_unsigned(function: Callable[[int, int], int]) -> Callable[[int, int, str], Scalar]:
    return lambda left, right, kind: wrap(function(unsigned(left, kind), unsigned(right, kind)), kind)


def _shift(function: Callable[[int, int], int], signed: bool) -> Callable[[int, int, str], Scalar]:
    def shifted(left: int, right: int, kind: str) -> Scalar:
        count = unsigned(right, kind)
        whole = int(left) if signed else unsigned(left, kind)
        return wrap(function(whole, min(count, 64)), kind)

    return shifted


_INTEGER: dict[str, Callable[..., Scalar]] = {
    "arith.addi": _signed(operator.add),
    "arith.subi": _signed(operator.sub),
    "arith.muli": _signed(operator.mul),
    "arith.divsi": _signed(_divide),
    "arith.remsi": _signed(lambda a, b: a - b * _divide(a, b)),
    "arith.floordivsi": _signed(_floor),
    "arith.ceildivsi": _signed(lambda a, b: -_floor(-a, b)),
    "arith.divui": _as_unsigned(_floor),
    "arith.remui": _as_unsigned(lambda a, b: a - b * _floor(a, b)),
    "arith.ceildivui": _as_unsigned(lambda a, b: -_floor(-a, b)),
    "arith.andi": _signed(operator.and_),
    "arith.ori": _signed(operator.or_),
    "arith.xori": _signed(operator.xor),
    "arith.shli": _shift(operator.lshift, signed=True),
    "arith.shrsi": _shift(operator.rshift, signed=True),
    "arith.shrui": _shift(operator.rshift, signed=False),
    "arith.maxsi": _signed(max),
    "arith.minsi": _signed(min),
    "arith.maxui": _as_unsigned(max),
    "arith.minui": _as_unsigned(min),
    "math.absi": lambda value, kind: wrap(abs(value), kind),
    "arith.select": lambda condition, left, right, kind: left if condition else right,
}


def _nan_wins(choose: Callable[[float, float], float], pick_left_zero: Callable[[float], bool]) -> Callable:
    """Minimum or maximum by IEEE 754-2019: NaN where an operand is, -0 below +0."""

    def chosen(left: float, right: float) -> float:
        if math.isnan(left) or math.isnan(right):
            return math.nan
        if left == right == 0:
            return left if pick_left_zero(math.copysign(1, left)) else right
        return choose(left, right)

    return chosen


def _number_wins(choose: Callable[[float, float], float]) -> Callable[[float, float], float]:
    def chosen(left: float, right: float) -> float:
        if math.isnan(left):
            return right
        return left if math.isnan(right) else choose(left, right)

    return chosen


_FLOAT: dict[str, Callable[..., Any]] = {
    "arith.addf": np.add,
    "arith.subf": np.subtract,
    "arith.mulf": np.multiply,
    "arith.divf": np.divide,
    "arith.remf": np.fmod,
    "arith.negf": np.negative,
    "arith.maximumf": _nan_wins(max, lambda sign: sign > 0),
    "arith.minimumf": _nan_wins(min, lambda sign: sign < 0),
    "arith.maxnumf": _number_wins(max),
    "arith.minnumf": _number_wins(min),
    "math.absf": np.abs,
    "math.ceil": np.ceil,
    "math.floor": np.floor,
    "math.trunc": np.trunc,
    "math.roundeven": np.rint,
    "math.round": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x),
    "math.sqrt": np.sqrt,
    "math.exp": np.exp,
    "math.exp2": np.exp2,
    "math.log": np.log,
    "math.sin": np.sin,
    "math.cos": np.cos,
    "math.tanh": np.tanh,
    "math.powf": np.power,
    "math.fma": lambda a, b, c: math.fsum((a * b, c)),
}


def _float(function: Callable[..., Any], operands: list[Scalar], to: str) -> float:
    """Compute in f64, then round: exact for + - * / sqrt of types with at most half of its bits."""
    with np.errstate(all="ignore"):
        return round_to(float(function(*(np.float64(x) for x in operands))), to)


_ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
_COMPARISONS = ("arith.cmpi", "arith.cmpf")


def _compare(predicate: str, operands: list[Scalar], kind: str, floats: bool) -> bool:
    left, right = operands
    if not floats:
        if predicate[0] == "u" and predicate not in _ORDERS:
            left, right = unsigned(left, kind), unsigned(right, kind)
        return _ORDERS[predicate if predicate in _ORDERS else predicate[1:]](left, right)
    open_ = math.isnan(left) or math.isnan(right)
    if predicate in ("true", "false"):
        return predicate == "true"
    if predicate in ("ord", "uno"):
        return open_ == (predicate == "uno")
    return predicate[0] == "u" if open_ else _ORDERS[predicate[1:]](left, right)


def _to_integer(value: float, to: str, least: int, most: int) -> Scalar:
    if math.isnan(value):
        return wrap(0, to)
    whole = most if value > most else least if value < least else int(value)
    return wrap(whole, to)


def _bitcast(value: Scalar, kind: str, to: str) -> Scalar:
    source = np.array([value]).astype(to_numpy(kind.lower()))
    return source.view(to_numpy(to.lower()))[0].item()


def _float_to_signed(value: float, kind: str, to: str) -> Scalar:
    half = 1 << (bits_of(to) - 1)
    return _to_integer(value, to, -half, half - 1)


def _float_to_unsigned(value: float, kind: str, to: str) -> Scalar:
    return _to_integer(value, to, 0, (1 << bits_of(to)) - 1)


#: Sign extension is nothing for numbers in their signed range, but a true bool is -1.
_CONVERSIONS: dict[str, Callable[[Scalar, str, str], Scalar]] = {
    "arith.extsi": lambda value, kind, to: wrap(-int(value) if kind == "i1" else value, to),
    "arith.extui": lambda value, kind, to: wrap(unsigned(value, kind), to),
    "arith.trunci": lambda value, kind, to: wrap(int(value), to),
    "arith.index_cast": lambda value, kind, to: wrap(-int(value) if kind == "i1" else value, to),
    "arith.index_castui": lambda value, kind, to: wrap(unsigned(value, kind), to),
    "arith.sitofp": lambda value, kind, to: round_to(-int(value) if kind == "i1" else value, to),
    "arith.uitofp": lambda value, kind, to: round_to(unsigned(value, kind), to),
    "arith.fptosi": _float_to_signed,
    "arith.fptoui": _float_to_unsigned,
    "arith.extf": lambda value, kind, to: value,
    "arith.truncf": lambda value, kind, to: round_to(value, to),
    "arith.bitcast": _bitcast,
}

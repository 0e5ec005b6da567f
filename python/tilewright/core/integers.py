# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Integer arithmetic of any width, on NumPy values and on numbers of Python: the functions of `arith` and `math`.

In NumPy values a signless integer is held as a signed one; `i1` is bool. Numbers of Python are in the signed range of
their type, or bool. As a signed number the i1 value true is -1, as an unsigned one 1. The functions are written with
operators that both kinds have; :func:`on_signed` and :func:`of_numbers` give them their type's width.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

Function = Callable[..., Any]

_MASKS = {"int4": 15, "int2": 3}


def signed(x: Any) -> Any:
    """Return ``x`` as signed integers; the i1 value true is -1."""
    return -x.astype(np.int8) if x.dtype == np.bool_ else x


def unsigned(x: Any) -> Any:
    """Return ``x`` as unsigned integers of the same width."""
    if x.dtype == np.bool_:
        return x.astype(np.uint8)
    if x.dtype.name in _MASKS:
        return x.astype(np.uint8) & np.uint8(_MASKS[x.dtype.name])
    return x.astype(f"uint{x.dtype.itemsize * 8}") if x.dtype.kind == "i" else x


def narrow(x: Any, dtype: np.dtype) -> Any:
    """Return integers ``x`` modulo the width of ``dtype``."""
    return (x & 1).astype(np.bool_) if dtype == np.bool_ else x.astype(dtype)


def on_signed(function: Function) -> Function:
    """Make ``function`` work on signed views, its result wrapped to the operands' type."""
    return lambda a, *rest: narrow(function(signed(a), *map(signed, rest)), a.dtype)


def on_unsigned(function: Function) -> Function:
    """Make ``function`` work on unsigned views, its result wrapped to the operands' type."""
    return lambda a, *rest: narrow(function(unsigned(a), *map(unsigned, rest)), a.dtype)


def wrap(number: int, bits: int) -> int:
    """Return a number modulo the width, in the signed range; a bool for 1 bit."""
    if bits == 1:
        return bool(number & 1)
    number &= (1 << bits) - 1
    return number - (1 << bits) if number >> (bits - 1) else number


def views(bits: int, is_unsigned: bool) -> Callable[[int], int]:
    """Return the view of a number in the signed range of a width (or a bool) as a signed or an unsigned one."""
    if is_unsigned:
        mask = (1 << bits) - 1
        return lambda x: x & mask
    return (lambda x: -int(x)) if bits == 1 else int


def of_numbers(name: str, bits: int) -> Callable[..., int]:
    """Return an operation of :data:`SIGNED` or :data:`UNSIGNED` on numbers of Python."""
    function, view = (SIGNED.get(name) or UNSIGNED[name]), views(bits, name in UNSIGNED)
    return lambda *operands: wrap(function(*map(view, operands)), bits)


def _nonzero(b: Any) -> Any:
    if not isinstance(b, int) and np.any(np.asarray(b) == 0):  # Python raises the same
        raise ZeroDivisionError("integer division by zero, which is undefined behaviour")
    return b


def _divide(a: Any, b: Any) -> Any:
    """The quotient toward zero."""
    quotient = a // _nonzero(b)
    return quotient + ((quotient < 0) & (quotient * b != a))


def _larger(a: Any, b: Any) -> Any:
    return max(a, b) if isinstance(a, int) else np.maximum(a, b)


def _smaller(a: Any, b: Any) -> Any:
    return min(a, b) if isinstance(a, int) else np.minimum(a, b)


def _shift(function: Any, overflow: Any) -> Function:
    """A shift by the width or more gives ``overflow(a)``; MLIR calls it poison."""

    def shift(a: Any, b: Any) -> Any:
        if isinstance(a, int):
            return function(a, min(b & 0xFFFFFFFFFFFFFFFF, 64))
        width = a.dtype.itemsize * 8
        amount = unsigned(b)
        legal = amount < width
        return np.where(legal, function(a, np.where(legal, amount, 0).astype(a.dtype)), overflow(a)).astype(a.dtype)

    return shift


def _power(base: Any, exponent: Any) -> Any:
    """A negative exponent gives 1 / base rounded toward zero."""
    positive = np.power(base, np.maximum(exponent, 0))
    inverse = np.where(base == 1, 1, np.where(base == -1, 1 - 2 * (exponent & 1), 0))
    return np.where(exponent < 0, inverse, positive).astype(base.dtype)[()]


def _bits(x: Any) -> np.ndarray:
    """The bits of each element along a new first dimension, the lowest first."""
    width = 1 if x.dtype == np.bool_ else x.dtype.itemsize * 8
    wide = np.asarray(unsigned(x)).astype(np.uint64)
    return np.stack([(wide >> np.uint64(i)) & np.uint64(1) for i in range(width)]).astype(bool)


def _count(count: Function) -> Function:
    return lambda x: np.asarray(count(_bits(x))).astype(x.dtype)[()]


#: Functions of signed numbers whose results are taken modulo the width. A division by zero raises ZeroDivisionError.
SIGNED: dict[str, Function] = {
    "arith.addi": operator.add,
    "arith.subi": operator.sub,
    "arith.muli": operator.mul,
    "arith.andi": operator.and_,
    "arith.ori": operator.or_,
    "arith.xori": operator.xor,
    "arith.maxsi": _larger,
    "arith.minsi": _smaller,
    "arith.divsi": _divide,
    "arith.remsi": lambda a, b: a - b * _divide(a, b),
    "arith.floordivsi": lambda a, b: a // _nonzero(b),
    "arith.ceildivsi": lambda a, b: a // _nonzero(b) + (a % b != 0),
    "arith.shli": _shift(operator.lshift, np.zeros_like),
    "arith.shrsi": _shift(operator.rshift, lambda a: np.where(a < 0, -1, 0)),
    "math.absi": abs,
}
#: Functions of unsigned numbers, likewise.
UNSIGNED: dict[str, Function] = {
    "arith.maxui": _larger,
    "arith.minui": _smaller,
    "arith.divui": lambda a, b: a // _nonzero(b),
    "arith.remui": lambda a, b: a % _nonzero(b),
    "arith.ceildivui": SIGNED["arith.ceildivsi"],
    "arith.shrui": _shift(operator.rshift, np.zeros_like),
}
#: By the name of the operation, on NumPy values.
INTEGER: dict[str, Function] = {
    **{name: on_signed(function) for name, function in SIGNED.items()},
    **{name: on_unsigned(function) for name, function in UNSIGNED.items()},
    "math.ipowi": _power,
    "math.ctlz": _count(lambda bits: np.where(bits.any(0), np.argmax(bits[::-1], 0), len(bits))),
    "math.cttz": _count(lambda bits: np.where(bits.any(0), np.argmax(bits, 0), len(bits))),
    "math.ctpop": _count(lambda bits: bits.sum(0)),
}

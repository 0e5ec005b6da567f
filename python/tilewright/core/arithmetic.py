# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What scalar operations mean, by the names of MLIR's `arith` and `math`: one table for all that evaluate them.

The reference interpreter, the host programs of GPUs and the front end's constant folding ask it. Values are NumPy
scalars or arrays of the dtype that their MLIR type has (:mod:`tilewright.core.dtypes`; signless integers are signed
ones, `index` is int64, `i1` bool). A result has the dtype of the operands, of the conversion's target, or bool.
Integers are exact and wrap; floats are rounded once. What MLIR leaves undefined is said where it is defined here.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.core.dtypes import rounded
from tilewright.core.integers import INTEGER, narrow, signed, unsigned, views
from tilewright.core.math_functions import ON_FLOAT64

Function = Callable[..., Any]


def _ieee(choose: Function, of_zeros: Function) -> Function:
    """Minimum or maximum by IEEE 754-2019: NaN where an operand is, -0 below +0 (which NumPy leaves open)."""
    return lambda a, b: np.where((a == 0) & (b == 0), of_zeros(a, b), choose(a, b))[()]


def _by_float64(function: Function) -> Function:
    """Compute in float64; the result is rounded once, to the first operand's dtype."""

    def apply(a: Any, *rest: Any) -> Any:
        wide = (np.asarray(x, np.float64) for x in (a, *rest))
        return rounded(np.asarray(function(*wide), np.float64), a.dtype)[()]

    return apply


def _select(condition: Any, a: Any, b: Any) -> Any:
    """A scalar condition chooses whole values."""
    if np.ndim(condition) == 0:
        return a if condition else b
    return np.where(condition, a, b)


#: Operations whose result has the operands' type (that of the last one: a condition is i1).
FUNCTIONS: dict[str, Function] = {
    **INTEGER,
    "arith.addf": np.add,
    "arith.subf": np.subtract,
    "arith.mulf": np.multiply,
    "arith.divf": np.divide,
    "arith.remf": np.fmod,
    "arith.negf": np.negative,
    "arith.maximumf": _ieee(np.maximum, lambda a, b: a + b),
    "arith.minimumf": _ieee(np.minimum, lambda a, b: -(-a - b)),
    "arith.maxnumf": np.fmax,
    "arith.minnumf": np.fmin,
    "arith.select": _select,
    **{f"math.{name}": _by_float64(function) for name, function in ON_FLOAT64.items()},
}


def _is_normal(x: Any) -> Any:
    import ml_dtypes  # here, as host programs run where that package is not: on a GPU with PyTorch and NumPy alone

    return np.isfinite(x) & (np.abs(x) >= ml_dtypes.finfo(x.dtype).smallest_normal)


#: Questions about floats.
TESTS: dict[str, Function] = {
    "math.isnan": np.isnan,
    "math.isinf": np.isinf,
    "math.isfinite": np.isfinite,
    "math.isnormal": _is_normal,
}

#: The predicates of comparisons, in MLIR's order.
PREDICATES = {
    "arith.cmpi": tuple("eq ne slt sle sgt sge ult ule ugt uge".split()),
    "arith.cmpf": tuple("false oeq ogt oge olt ole one ord ueq ugt uge ult ule une uno true".split()),
}
_ORDERS: dict[str, Function] = {name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")}


def compare_integers(predicate: str, a: Any, b: Any) -> Any:
    """Compare by a predicate of `arith.cmpi`."""
    view = unsigned if predicate[0] == "u" else signed
    return _ORDERS[predicate[-2:]](view(a), view(b))


def compare_numbers(predicate: str, bits: int) -> Callable[[int, int], bool]:
    """Return the comparison of two numbers of Python by a predicate of `arith.cmpi`."""
    order, view = _ORDERS[predicate[-2:]], views(bits, predicate[0] == "u")
    return lambda a, b: order(view(a), view(b))


def compare_floats(predicate: str, a: Any, b: Any) -> Any:
    """Compare by a predicate of `arith.cmpf`: where an operand is NaN, ordered ones are false, unordered ones true."""
    unordered = np.isnan(a) | np.isnan(b)
    if predicate in ("ord", "uno"):
        return unordered if predicate == "uno" else ~unordered
    if predicate in ("false", "true"):
        return np.full_like(unordered, predicate == "true")[()]
    found = _ORDERS[predicate[1:]](a, b)
    return found | unordered if predicate[0] == "u" else found & ~unordered


COMPARISONS: dict[str, Function] = {"arith.cmpi": compare_integers, "arith.cmpf": compare_floats}


def _to_integer(x: Any, low: int, high: int, dtype: np.dtype) -> Any:
    """Round toward zero; NaN is 0 and what lies outside the nearest limit (poison in MLIR)."""
    whole = np.trunc(np.asarray(x, np.float64))
    whole = np.where(np.isnan(whole), 0, whole)
    above, wide = whole >= high, np.int64 if low else np.uint64
    inside = np.where(above | (whole < low), 0, whole).astype(wide)
    return narrow(np.where(above, wide(high), np.where(whole < low, wide(low), inside))[()], dtype)


def _bits(dtype: np.dtype) -> int:
    return 1 if dtype == np.bool_ else dtype.itemsize * 8


def _to_signed(x: Any, dtype: np.dtype) -> Any:
    half = 1 << (_bits(dtype) - 1)
    return _to_integer(x, -half, half - 1, dtype)


#: From integers to integers, of more or fewer bits.
SIGN_EXTENDING = ("arith.extsi", "arith.trunci", "arith.index_cast", "index.casts")
ZERO_EXTENDING = ("arith.extui", "arith.index_castui", "index.castu")

#: Operations that give another type: functions of a value and the result's dtype.
CONVERSIONS: dict[str, Callable[[Any, np.dtype], Any]] = {
    **dict.fromkeys(("arith.extf", "arith.truncf"), rounded),
    **dict.fromkeys(SIGN_EXTENDING, lambda x, dtype: narrow(signed(x), dtype)),
    **dict.fromkeys(ZERO_EXTENDING, lambda x, dtype: narrow(unsigned(x), dtype)),
    "arith.sitofp": lambda x, dtype: rounded(signed(x), dtype),
    "arith.uitofp": lambda x, dtype: rounded(unsigned(x), dtype),
    "arith.fptosi": _to_signed,
    "arith.fptoui": lambda x, dtype: _to_integer(x, 0, (1 << _bits(dtype)) - 1, dtype),
    "arith.bitcast": lambda x, dtype: x.view(dtype),
}

# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scalar arithmetic of a host program, by the names of MLIR's `arith` and `math` operations.

Registers hold Python numbers: integers in the signed range of their type, a bool for `i1`, floats that were rounded to
their type. What an operation computes is told by :mod:`tilewright.core.arithmetic`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.core.arithmetic import (
    COMPARISONS,
    CONVERSIONS,
    FUNCTIONS,
    SIGN_EXTENDING,
    ZERO_EXTENDING,
    compare_floats,
    compare_numbers,
)
from tilewright.core.dtypes import bits_of, name_of_mlir, of_mlir
from tilewright.core.errors import UnsupportedError, UserError
from tilewright.core.integers import SIGNED, UNSIGNED, of_numbers, views, wrap

Scalar = Any  # bool, int or float


def check_known(name: str) -> None:
    """Check that an operation can stand in a host program.

    Raises:
        UnsupportedError: it cannot.
    """
    if name not in FUNCTIONS and name not in CONVERSIONS and name not in COMPARISONS:
        raise UnsupportedError(f"a host program of a GPU has no scalar operation {name}")


def function(name: str, kind: str, to: str, predicate: str = "") -> Callable[..., Scalar]:
    """Return an operation as a function of numbers.

    Args:
        name: of the operation, e.g. ``arith.addi``.
        kind: MLIR type of the operands (the last one's).
        to: MLIR type of the result.
        predicate: of a comparison.

    Raises:
        UnsupportedError: no such operation. The function raises UserError for a division by zero.
    """
    check_known(name)
    compute = _of_integers(name, kind, to, predicate) or _by_numpy(name, kind, to, predicate)

    def checked(*operands: Scalar) -> Scalar:
        try:
            return compute(*operands)
        except ZeroDivisionError:
            raise UserError("the model divides an integer by zero") from None

    return checked


def _of_integers(name: str, kind: str, to: str, predicate: str) -> Callable[..., Scalar] | None:
    """Integers stay numbers of Python: shapes are computed at each call of a model. None for other operations."""
    if name == "arith.select":
        return FUNCTIONS[name]
    bits, result = (bits_of(name_of_mlir(text)) for text in (kind, to))
    if name == "arith.cmpi":
        return compare_numbers(predicate, bits)
    if name in SIGNED or name in UNSIGNED:
        return of_numbers(name, bits)
    if name in SIGN_EXTENDING or name in ZERO_EXTENDING:
        view = views(bits, name in ZERO_EXTENDING)
        return lambda x: wrap(view(x), result)
    return None


def _by_numpy(name: str, kind: str, to: str, predicate: str) -> Callable[..., Scalar]:
    element, dtype = of_mlir(kind).type, of_mlir(to)

    def compute(*operands: Scalar) -> Scalar:
        values = [element(x) for x in operands]
        with np.errstate(all="ignore"):
            if name == "arith.cmpf":
                return bool(compare_floats(predicate, *values))
            result = CONVERSIONS[name](values[0], dtype) if name in CONVERSIONS else FUNCTIONS[name](*values)
        return number(result)

    return compute


def number(value: Any) -> Scalar:
    """Return a NumPy scalar as a register holds it."""
    if value.dtype == np.bool_:
        return bool(value)
    return float(value) if "float" in value.dtype.name else int(value)

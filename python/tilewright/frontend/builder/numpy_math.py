# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The functions of bodies on arrays of known elements; see :mod:`scalars`."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tilewright.frontend.builder import casting
from tilewright.frontend.builder.dtypes import is_int


def _same_kind(function: Callable) -> Callable:
    """Make a function of floats give its operand's dtype."""
    return lambda x: np.asarray(function(x)).astype(np.asarray(x).dtype)


# name in bodies: (op, NumPy function)
MATH: dict[str, tuple[str, Callable]] = {
    "exp": ("math.exp", np.exp),
    "expm1": ("math.expm1", np.expm1),
    "log": ("math.log", np.log),
    "log1p": ("math.log1p", np.log1p),
    "sqrt": ("math.sqrt", np.sqrt),
    "rsqrt": ("math.rsqrt", lambda x: 1 / np.sqrt(x)),
    "sin": ("math.sin", np.sin),
    "cos": ("math.cos", np.cos),
    "tan": ("math.tan", np.tan),
    "asin": ("math.asin", np.arcsin),
    "acos": ("math.acos", np.arccos),
    "atan": ("math.atan", np.arctan),
    "sinh": ("math.sinh", np.sinh),
    "cosh": ("math.cosh", np.cosh),
    "tanh": ("math.tanh", np.tanh),
    "asinh": ("math.asinh", np.arcsinh),
    "acosh": ("math.acosh", np.arccosh),
    "atanh": ("math.atanh", np.arctanh),
    "floor": ("math.floor", np.floor),
    "ceil": ("math.ceil", np.ceil),
    "trunc": ("math.trunc", np.trunc),
    "round": ("math.roundeven", np.rint),
    "erf": ("math.erf", np.vectorize(math.erf, otypes=[np.float64])),
}


class NumpyMath:
    """The same functions as :class:`scalars.IRMath`, on arrays of known elements."""

    maximum, minimum, where = staticmethod(np.maximum), staticmethod(np.minimum), staticmethod(np.where)
    absolute, eq, is_nan = staticmethod(np.absolute), staticmethod(np.equal), staticmethod(np.isnan)
    logical_and, logical_or = staticmethod(np.logical_and), staticmethod(np.logical_or)
    logical_xor, logical_not = staticmethod(np.logical_xor), staticmethod(np.logical_not)
    bit_and, bit_or = staticmethod(np.bitwise_and), staticmethod(np.bitwise_or)
    bit_xor, bit_not = staticmethod(np.bitwise_xor), staticmethod(np.bitwise_not)
    real, imag = staticmethod(np.real), staticmethod(np.imag)

    @staticmethod
    def div(a, b):
        """ONNX Div: integers truncate toward zero, and divided by zero give 0."""
        if not is_int(np.asarray(a).dtype):
            return a / b
        rest = np.fmod(a, b)  # 0 where b is
        quotient = (a - rest) // b
        return np.where(np.equal(b, 0), np.zeros_like(quotient), quotient)

    @staticmethod
    def rem(a, b):
        """The remainder with the sign of the dividend; of a division of integers by zero: 0."""
        return np.fmod(a, b)

    @staticmethod
    def power(a, b):
        """a ** b in floating point, or of integers with b >= 0."""
        return np.power(a, np.maximum(b, 0) if is_int(np.asarray(b).dtype) else b)

    @staticmethod
    def shift_left(a, b):
        """a << b; 0 where b is the width or more."""
        return _shift(np.left_shift, a, b, 0)

    @staticmethod
    def shift_right(a, b):
        """a >> b: unsigned integers fill with 0, signed ones with their sign."""
        return _shift(np.right_shift, a, b, np.where(np.less(a, 0), -1, 0))

    @staticmethod
    def complex(real, imag):
        """A complex number of its parts."""
        kind = np.result_type(real, imag, np.complex64)
        return np.asarray(real).astype(kind) + np.asarray(imag).astype(kind) * 1j

    @staticmethod
    def cast(a, dtype, saturate=False, mode="up"):
        """ONNX Cast."""
        return casting.cast_array(np.asarray(a), np.dtype(dtype), saturate, mode)

    @staticmethod
    def fitting_int(a, dtype):
        """A whole float that the integer type can hold, as that type."""
        return casting.cast_array(np.asarray(a), np.dtype(dtype), False, "")

    @staticmethod
    def bitcast(a, dtype):
        """The same bits as another type of the same width."""
        return np.ascontiguousarray(a).view(dtype).reshape(np.shape(a))


def _shift(function, a, b, beyond):
    legal = (b >= 0) & (b < np.asarray(a).dtype.itemsize * 8)
    return np.where(legal, function(a, np.where(legal, b, 0).astype(np.asarray(b).dtype)), beyond).astype(a.dtype)


for _name, (_, _function) in MATH.items():
    setattr(NumpyMath, _name, staticmethod(_same_kind(_function)))

# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The functions of bodies on arrays of known elements; see :mod:`scalars`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tilewright.core.arithmetic import FUNCTIONS
from tilewright.core.math_functions import ON_FLOAT64
from tilewright.frontend.builder import casting
from tilewright.frontend.builder.dtypes import is_int


def _same_kind(function: Callable) -> Callable:
    """Make a function of floats give its operand's dtype."""
    return lambda x: np.asarray(function(x)).astype(np.asarray(x).dtype)


_NAMES = (
    "exp expm1 log log1p sqrt rsqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh floor ceil trunc erf"
)
#: name in bodies: name in the dialect `math`
MATH = {name: name for name in _NAMES.split()} | {"round": "roundeven"}


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
        return FUNCTIONS["arith.shli"](a, np.asarray(b))

    @staticmethod
    def shift_right(a, b):
        """a >> b: unsigned integers fill with 0, signed ones with their sign."""
        return FUNCTIONS["arith.shrsi"](a, np.asarray(b))

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


for _name, _op in MATH.items():
    setattr(NumpyMath, _name, staticmethod(_same_kind(ON_FLOAT64[_op])))

# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bodies of elementwise operations, written once for the IR and for NumPy.

A body is a function of (m, *elements) that uses Python operators and the functions of `m`. With :class:`IRMath` the
elements are :class:`Scalar` values and ops are emitted; with :class:`NumpyMath` they are arrays and it is computed.
Floats of 16 bits and fewer are computed in f32: what a body returns is rounded to its result's type once.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tilewright.frontend.builder import casting
from tilewright.frontend.builder.dtypes import (
    BOOL,
    is_bool,
    is_complex,
    is_float,
    is_int,
    is_narrow,
    is_small,
    is_unsigned,
    part,
    promoted,
    signless,
)
from tilewright.frontend.builder.numpy_math import MATH, NumpyMath
from tilewright.mlir import ir

_CMPF = {"eq": 1, "gt": 2, "ge": 3, "lt": 4, "le": 5, "ne": 13}  # ordered; ne is unordered (NaN != NaN)
_CMPI = {"eq": 0, "ne": 1, "lt": 2, "le": 3, "gt": 4, "ge": 5}
_UNSIGNED = {"lt": 6, "le": 7, "gt": 8, "ge": 9}
#: Which of two zeros with other signs is the larger one is open.
_ANY_ZERO = "#arith.fastmath<nsz>"


class _Index:
    """Stands for MLIR's index type inside bodies; NumPy has none."""

    kind, itemsize = "i", 8


INDEX = _Index()


class Scalar:
    """An SSA value inside a body, with Python's operators; `known` is its value where it is a constant."""

    __slots__ = ("dtype", "known", "m", "value")

    def __init__(self, m: IRMath, value: ir.Value, dtype: np.dtype, known: float | None = None) -> None:
        self.m, self.value, self.dtype, self.known = m, value, dtype, known

    def __add__(self, other):
        return self.m.binary("add", self, other)

    def __radd__(self, other):
        return self.m.binary("add", other, self)

    def __sub__(self, other):
        return self.m.binary("sub", self, other)

    def __rsub__(self, other):
        return self.m.binary("sub", other, self)

    def __mul__(self, other):
        return self.m.binary("mul", self, other)

    def __rmul__(self, other):
        return self.m.binary("mul", other, self)

    def __truediv__(self, other):
        return self.m.div(self, other)

    def __rtruediv__(self, other):
        return self.m.div(other, self)

    def __neg__(self):
        if is_float(self.dtype):
            wide = self.m.widened(self)
            return self.m.emit("arith.negf", [wide], wide.dtype)
        return self.m.emit("complex.neg", [self], self.dtype) if is_complex(self.dtype) else 0 - self

    def __lt__(self, other):
        return self.m.relation("lt", self, other)

    def __le__(self, other):
        return self.m.relation("le", self, other)

    def __gt__(self, other):
        return self.m.relation("gt", self, other)

    def __ge__(self, other):
        return self.m.relation("ge", self, other)

    def eq(self, other):
        """Elementwise equality (a method: == stays Python's)."""
        return self.m.relation("eq", self, other)


class IRMath:
    """Emits a body's operations at the current insertion point.

    Args:
        op: creates an op with one result: (name, operands, result type, attributes) -> value.
        element_type: the MLIR type of a NumPy dtype.
    """

    def __init__(self, op: Callable[..., ir.Value], element_type: Callable[[np.dtype], ir.Type]) -> None:
        self._op = op
        self._type = element_type
        self._i64 = ir.IntegerType.get_signless(64)

    def type(self, dtype: np.dtype) -> ir.Type:
        """The MLIR type of an element."""
        return ir.IndexType.get() if dtype is INDEX else self._type(dtype)

    def emit(self, name: str, args: list[Scalar], dtype: np.dtype, attributes: dict | None = None) -> Scalar:
        """One op on scalars."""
        return Scalar(self, self._op(name, [a.value for a in args], self.type(dtype), attributes), dtype)

    def scalar(self, value: Scalar | complex, dtype: np.dtype) -> Scalar:
        """A constant of this dtype, or `value` itself; a float of another width is converted."""
        if isinstance(value, Scalar):
            other = is_float(value.dtype) and is_float(dtype) and value.dtype != dtype
            return casting.convert(self, value, dtype) if other else value
        if is_complex(dtype):
            return self._complex_constant(complex(value), dtype)
        attribute = self.number(value, dtype)
        result = self.emit("arith.constant", [], dtype, {"value": attribute})
        result.known = float(attribute.value) if is_float(dtype) else signless(int(value), dtype)
        return result

    def number(self, value: float, dtype: np.dtype) -> ir.FloatAttr | ir.IntegerAttr:
        """The attribute of a number; one that does not fit is rounded or wrapped."""
        kind = self.type(dtype)
        if not is_float(dtype):
            return ir.IntegerAttr.get(kind, signless(int(value), dtype))
        with np.errstate(all="ignore"):
            return ir.FloatAttr.get(kind, float(np.asarray(value, np.float64).astype(dtype)))

    def _complex_constant(self, value: complex, dtype: np.dtype) -> Scalar:
        kind = self.type(part(dtype))
        parts = ir.ArrayAttr.get([ir.FloatAttr.get(kind, value.real), ir.FloatAttr.get(kind, value.imag)])
        return self.emit("complex.constant", [], dtype, {"value": parts})

    def widened(self, a: Scalar) -> Scalar:
        """`a` in the type in which bodies compute."""
        return casting.convert(self, a, promoted(a.dtype)) if is_narrow(a.dtype) else a

    def pair(self, a: Scalar | complex, b: Scalar | complex) -> tuple[Scalar, Scalar]:
        """Two operands of one type, in which bodies compute; numbers take the other's type."""
        kinds = [promoted(x.dtype) for x in (a, b) if isinstance(x, Scalar)]
        dtype = max(kinds, key=lambda d: is_float(d) and d.itemsize)
        return self.scalar(a, dtype), self.scalar(b, dtype)

    def binary(self, name: str, a: Scalar | complex, b: Scalar | complex) -> Scalar:
        """An operation of `arith` (or `complex`) by the start of its name."""
        a, b = self.pair(a, b)
        if is_complex(a.dtype):
            return self.emit("complex." + name, [a, b], a.dtype)
        return self._wrapped(self.emit(f"arith.{name}{'f' if is_float(a.dtype) else 'i'}", [a, b], a.dtype))

    def _wrapped(self, a: Scalar) -> Scalar:
        return casting.wrap(self, a) if is_small(a.dtype) else a

    def compare(self, name: str, predicate: int, a: Scalar, b: Scalar) -> Scalar:
        """A comparison with the given predicate number."""
        return self.emit(name, [a, b], BOOL, {"predicate": ir.IntegerAttr.get(self._i64, predicate)})

    def relation(self, relation: str, a: Scalar | complex, b: Scalar | complex) -> Scalar:
        """One of lt, le, gt, ge, eq, ne, by the kind of numbers."""
        a, b = self.pair(a, b)
        if is_complex(a.dtype):
            name = {"eq": "complex.eq", "ne": "complex.neq"}[relation]
            return self.emit(name, [a, b], BOOL)
        if is_float(a.dtype):
            return self.compare("arith.cmpf", _CMPF[relation], a, b)
        number = _UNSIGNED.get(relation, _CMPI[relation]) if is_unsigned(a.dtype) else _CMPI[relation]
        return self.compare("arith.cmpi", number, a, b)

    def _same(self, name: str, *args: Scalar) -> Scalar:
        args = tuple(self.widened(a) for a in args)
        return self.emit(name, list(args), args[0].dtype)

    def eq(self, a, b):
        """a == b."""
        return self.relation("eq", a, b)

    def maximum(self, a, b):
        """The larger; NaN if either is."""
        return self._extremum("max", a, b)

    def minimum(self, a, b):
        """The smaller; NaN if either is."""
        return self._extremum("min", a, b)

    def _extremum(self, name: str, a, b):
        """ONNX leaves open which zero is the larger one: with a constant, x86 then needs one instruction, not three."""
        a, b = self.pair(a, b)
        if not is_float(a.dtype):
            return self._same(f"arith.{name}{'ui' if is_unsigned(a.dtype) else 'si'}", a, b)
        a, b = self.widened(a), self.widened(b)
        return self.emit(f"arith.{name}imumf", [a, b], a.dtype, {"fastmath": ir.Attribute.parse(_ANY_ZERO)})

    def where(self, condition, a, b):
        """a where the condition holds, else b. At least one of a and b is an element."""
        kinds = {x.dtype for x in (a, b) if isinstance(x, Scalar)}
        a, b = (self.scalar(x, kinds.copy().pop()) for x in (a, b)) if len(kinds) == 1 else self.pair(a, b)
        return self.emit("arith.select", [condition, a, b], a.dtype)

    def div(self, a, b):
        """ONNX Div: integers truncate toward zero, and divided by zero give 0."""
        a, b = self.pair(a, b)
        if not is_int(a.dtype):
            return self.binary("div", a, b)
        if is_unsigned(a.dtype):
            return self._guarded("arith.divui", a, b, lambda: a, 0)
        return self._wrapped(self._guarded("arith.divsi", a, b, lambda: 0 - a, 0))

    def rem(self, a, b):
        """The remainder with the sign of the dividend; of a division of integers by zero: 0."""
        a, b = self.pair(a, b)
        if is_float(a.dtype):
            return self._same("arith.remf", a, b)
        return self._guarded("arith.remui" if is_unsigned(a.dtype) else "arith.remsi", a, b, lambda: 0, 0)

    def _guarded(self, name: str, a: Scalar, b: Scalar, by_minus_one: Callable, by_zero: int) -> Scalar:
        """A division that never traps: not by zero, not of the smallest integer by -1."""
        if b.known not in (None, 0, -1):
            return self._same(name, a, b)
        zero = b.eq(0)
        one = zero if is_unsigned(a.dtype) else self.logical_or(zero, b.eq(-1))
        result = self._same(name, a, self.where(one, 1, b))
        if not is_unsigned(a.dtype):
            result = self.where(b.eq(-1), by_minus_one(), result)
        return self.where(zero, by_zero, result)

    def absolute(self, a):
        """|a|."""
        if is_complex(a.dtype):
            return self.emit("complex.abs", [a], part(a.dtype))
        if is_float(a.dtype):
            return self._same("math.absf", a)
        return a if is_unsigned(a.dtype) else self._wrapped(self._same("math.absi", a))

    def power(self, a, b):
        """a ** b in floating point, or of integers with b >= 0."""
        a, b = self.pair(a, b)
        return self._same("math.powf" if is_float(a.dtype) else "math.ipowi", a, b)

    def is_nan(self, a):
        """Whether a is not a number."""
        a = self.widened(a)
        return self.relation("ne", a, a)

    def shift_left(self, a, b):
        """a << b; 0 where b is the width or more."""
        return self._shift("arith.shli", a, b)

    def shift_right(self, a, b):
        """a >> b: unsigned integers fill with 0, signed ones with their sign."""
        if is_unsigned(a.dtype):
            return self._shift("arith.shrui", a, b)
        a, b = self.pair(a, b)
        last = self.scalar(a.dtype.itemsize * 8 - 1, b.dtype)
        return self.emit("arith.shrsi", [a, b if b.known is not None else self._same("arith.minui", b, last)], a.dtype)

    def _shift(self, name: str, a, b):
        a, b = self.pair(a, b)
        width = a.dtype.itemsize * 8
        if b.known is not None and 0 <= b.known < width:
            return self._wrapped(self.emit(name, [a, b], a.dtype))
        number = self.emit("arith.constant", [], b.dtype, {"value": ir.IntegerAttr.get(self.type(b.dtype), width)})
        legal = self.compare("arith.cmpi", _UNSIGNED["lt"], b, number)
        shifted = self._wrapped(self.emit(name, [a, self.where(legal, b, 0)], a.dtype))
        return self.where(legal, shifted, 0)

    def bit_and(self, a, b):
        """Bit by bit."""
        return self._same("arith.andi", *self.pair(a, b))

    def bit_or(self, a, b):
        """Bit by bit."""
        return self._same("arith.ori", *self.pair(a, b))

    def bit_xor(self, a, b):
        """Bit by bit."""
        return self._same("arith.xori", *self.pair(a, b))

    def bit_not(self, a):
        """Bit by bit."""
        return self._wrapped(self.bit_xor(a, 1 if is_bool(a.dtype) else -1))

    logical_and, logical_or, logical_xor = bit_and, bit_or, bit_xor

    def logical_not(self, a):
        """Not a."""
        return self.bit_xor(a, 1)

    def real(self, a):
        """The real part."""
        return self.emit("complex.re", [a], part(a.dtype))

    def imag(self, a):
        """The imaginary part."""
        return self.emit("complex.im", [a], part(a.dtype))

    def complex(self, real, imag):
        """A complex number of its parts (f32 or f64)."""
        real, imag = self.pair(real, imag)
        return self.emit("complex.create", [real, imag], np.dtype(f"c{2 * real.dtype.itemsize}"))

    def cast(self, a: Scalar, dtype: np.dtype, saturate: bool = False, mode: str = "up") -> Scalar:
        """ONNX Cast: floats to integers truncate, anything to bool compares with zero; see :mod:`casting`."""
        if dtype is a.dtype:
            return a
        if dtype is INDEX or a.dtype is INDEX:
            return self.emit("arith.index_cast", [a], dtype)
        return casting.cast(self, a, np.dtype(dtype), saturate, mode)

    def fitting_int(self, a: Scalar, dtype: np.dtype) -> Scalar:
        """A whole float that the integer type can hold, as that type."""
        return casting.fitting_int(self, a, dtype)

    def bitcast(self, a: Scalar, dtype: np.dtype) -> Scalar:
        """The same bits as another type of the same width; see :mod:`casting`."""
        return casting.bitcast(self, a, dtype)

    def nibble(self, a: Scalar, dtype: np.dtype) -> Scalar:
        """Bits of a 4-bit integer, which a byte holds, as those of a 4-bit float, or the other way."""
        four = ir.IntegerType.get_signless(4)
        if is_float(dtype):
            low = self._op("arith.trunci", [a.value], four, None)
            return Scalar(self, self._op("arith.bitcast", [low], self.type(dtype), None), dtype)
        low = self._op("arith.bitcast", [a.value], four, None)
        name = "arith.extui" if is_unsigned(dtype) else "arith.extsi"
        return Scalar(self, self._op(name, [low], self.type(dtype), None), dtype)


def _unary(name: str) -> Callable:
    return lambda self, a: self._same(name, a)


for _name, _op in MATH.items():
    setattr(IRMath, _name, _unary(f"math.{_op}"))

__all__ = ["BOOL", "INDEX", "IRMath", "NumpyMath", "Scalar"]

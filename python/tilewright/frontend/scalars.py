# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bodies of elementwise operations, written once for the IR and for NumPy.

A body is a function of (m, *elements) that uses Python operators and the functions of `m`. With :class:`IRMath` the
elements are :class:`Scalar` values and ops are emitted; with :class:`NumpyMath` they are arrays and it is computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tilewright.mlir import ir

_CMPF = {"eq": 1, "gt": 2, "ge": 3, "lt": 4, "le": 5, "ne": 13}  # ordered; ne is unordered (NaN != NaN)
_CMPI = {"eq": 0, "ne": 1, "lt": 2, "le": 3, "gt": 4, "ge": 5}
_UNSIGNED = {"lt": 6, "le": 7, "gt": 8, "ge": 9}

BOOL = np.dtype(np.bool_)


class _Index:
    """Stands for MLIR's index type inside bodies; NumPy has none."""

    kind, itemsize = "i", 8


INDEX = _Index()


class Scalar:
    """An SSA value inside a body, with Python's operators."""

    __slots__ = ("dtype", "m", "value")

    def __init__(self, m: IRMath, value: ir.Value, dtype: np.dtype) -> None:
        self.m, self.value, self.dtype = m, value, dtype

    def _binary(self, name: str, other: Scalar | float, swap: bool = False) -> Scalar:
        other = self.m.scalar(other, self.dtype)
        a, b = (other, self) if swap else (self, other)
        suffix = "f" if self.dtype.kind == "f" else "i"
        return self.m.emit("arith." + name + suffix, [a, b], self.dtype)

    def __add__(self, other):
        return self._binary("add", other)

    def __radd__(self, other):
        return self._binary("add", other, swap=True)

    def __sub__(self, other):
        return self._binary("sub", other)

    def __rsub__(self, other):
        return self._binary("sub", other, swap=True)

    def __mul__(self, other):
        return self._binary("mul", other)

    def __rmul__(self, other):
        return self._binary("mul", other, swap=True)

    def __truediv__(self, other):
        return self._binary("div", other)

    def __rtruediv__(self, other):
        return self._binary("div", other, swap=True)

    def __neg__(self):
        if self.dtype.kind == "f":
            return self.m.emit("arith.negf", [self], self.dtype)
        return 0 - self

    def _compare(self, relation: str, other: Scalar | float) -> Scalar:
        other = self.m.scalar(other, self.dtype)
        floating = self.dtype.kind == "f"
        number = (_CMPF if floating else _CMPI)[relation]
        if self.dtype.kind in "ub":
            number = _UNSIGNED.get(relation, number)
        return self.m.compare("arith.cmpf" if floating else "arith.cmpi", number, self, other)

    def __lt__(self, other):
        return self._compare("lt", other)

    def __le__(self, other):
        return self._compare("le", other)

    def __gt__(self, other):
        return self._compare("gt", other)

    def __ge__(self, other):
        return self._compare("ge", other)

    def eq(self, other):
        """Elementwise equality (a method: == stays Python's)."""
        return self._compare("eq", other)


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

    def scalar(self, value: Scalar | float, dtype: np.dtype) -> Scalar:
        """`value` itself, or a constant of this dtype."""
        if isinstance(value, Scalar):
            return value
        kind = self.type(dtype)
        attribute = ir.FloatAttr.get(kind, float(value)) if dtype.kind == "f" else ir.IntegerAttr.get(kind, int(value))
        return self.emit("arith.constant", [], dtype, {"value": attribute})

    def compare(self, name: str, predicate: int, a: Scalar, b: Scalar) -> Scalar:
        """A comparison with the given predicate number."""
        return self.emit(name, [a, b], BOOL, {"predicate": ir.IntegerAttr.get(self._i64, predicate)})

    def _same(self, name: str, *args: Scalar) -> Scalar:
        return self.emit(name, list(args), args[0].dtype)

    def eq(self, a, b):
        """a == b."""
        return a.eq(b)

    def maximum(self, a, b):
        """The larger; NaN if either is."""
        return self._extremum("max", a, b)

    def minimum(self, a, b):
        """The smaller; NaN if either is."""
        return self._extremum("min", a, b)

    def _extremum(self, name: str, a, b):
        a, b = self._pair(a, b)
        ending = {"f": "imumf", "u": "ui", "b": "ui"}.get(a.dtype.kind, "si")
        return self._same(f"arith.{name}{ending}", a, b)

    def _pair(self, a, b):
        dtype = a.dtype if isinstance(a, Scalar) else b.dtype
        return self.scalar(a, dtype), self.scalar(b, dtype)

    def where(self, condition, a, b):
        """a where the condition holds, else b. At least one of a and b is an element."""
        a, b = self._pair(a, b)
        return self.emit("arith.select", [condition, a, b], a.dtype)

    def div(self, a, b):
        """ONNX Div: integers truncate toward zero."""
        if a.dtype.kind == "f":
            return a / b
        return self._same("arith.divui" if a.dtype.kind == "u" else "arith.divsi", a, b)

    def rem(self, a, b):
        """The remainder with the sign of the dividend."""
        if a.dtype.kind == "f":
            return self._same("arith.remf", a, b)
        return self._same("arith.remui" if a.dtype.kind == "u" else "arith.remsi", a, b)

    def absolute(self, a):
        """|a|."""
        return a if a.dtype.kind in "ub" else self._same("math.absf" if a.dtype.kind == "f" else "math.absi", a)

    def power(self, a, b):
        """a ** b in floating point."""
        return self._same("math.powf", *self._pair(a, b))

    def logical_and(self, a, b):
        """a and b."""
        return self._same("arith.andi", a, b)

    def logical_or(self, a, b):
        """a or b."""
        return self._same("arith.ori", a, b)

    def logical_xor(self, a, b):
        """Exclusive or."""
        return self._same("arith.xori", *self._pair(a, b))

    def logical_not(self, a):
        """Not a."""
        return self.logical_xor(a, 1)

    def cast(self, a: Scalar, dtype: np.dtype) -> Scalar:
        """ONNX Cast: floats to integers truncate, anything to bool compares with zero."""
        if dtype is a.dtype:
            return a
        if dtype is INDEX or a.dtype is INDEX:
            return self.emit("arith.index_cast", [a], dtype)
        dtype = np.dtype(dtype)
        if dtype == a.dtype:
            return a
        if dtype == BOOL:
            zero = self.scalar(0, a.dtype)
            number, name = (_CMPF["ne"], "arith.cmpf") if a.dtype.kind == "f" else (_CMPI["ne"], "arith.cmpi")
            return self.compare(name, number, a, zero)
        name = _cast_name(a.dtype, dtype)
        return self.emit(name, [a], dtype) if name else Scalar(self, a.value, dtype)


def _cast_name(source: np.dtype, target: np.dtype) -> str | None:
    bits = (1 if source == BOOL else source.itemsize * 8, target.itemsize * 8)
    unsigned = source.kind in "ub"
    if source.kind == "f" and target.kind == "f":
        return "arith.extf" if bits[0] < bits[1] else "arith.truncf"
    if target.kind == "f":
        return "arith.uitofp" if unsigned else "arith.sitofp"
    if source.kind == "f":
        return "arith.fptoui" if target.kind == "u" else "arith.fptosi"
    if bits[0] == bits[1]:
        return None  # int32 and uint32 are the same bits
    if bits[0] > bits[1]:
        return "arith.trunci"
    return "arith.extui" if unsigned else "arith.extsi"


def _unary(name: str, numpy_function: Callable) -> tuple[Callable, Callable]:
    return (lambda self, a: self._same(name, a)), staticmethod(numpy_function)


class NumpyMath:
    """The same functions on arrays of known elements."""

    maximum, minimum, where = staticmethod(np.maximum), staticmethod(np.minimum), staticmethod(np.where)
    absolute, power, eq = staticmethod(np.absolute), staticmethod(np.power), staticmethod(np.equal)
    logical_and, logical_or = staticmethod(np.logical_and), staticmethod(np.logical_or)
    logical_xor, logical_not = staticmethod(np.logical_xor), staticmethod(np.logical_not)
    rem = staticmethod(np.fmod)

    @staticmethod
    def div(a, b):
        """ONNX Div: integers truncate toward zero."""
        if a.dtype.kind == "f":
            return a / b
        quotient = np.abs(a) // np.abs(b)
        return (quotient * np.sign(a) * np.sign(b)).astype(a.dtype)

    @staticmethod
    def cast(a, dtype):
        """ONNX Cast."""
        return np.asarray(a).astype(dtype)


for _name, _op, _numpy in (
    ("exp", "math.exp", np.exp),
    ("log", "math.log", np.log),
    ("sqrt", "math.sqrt", np.sqrt),
    ("rsqrt", "math.rsqrt", lambda x: 1 / np.sqrt(x)),
    ("tanh", "math.tanh", np.tanh),
    ("sin", "math.sin", np.sin),
    ("cos", "math.cos", np.cos),
    ("floor", "math.floor", np.floor),
    ("ceil", "math.ceil", np.ceil),
    ("round", "math.roundeven", np.rint),
    ("erf", "math.erf", lambda x: np.vectorize(math.erf, otypes=[x.dtype])(x)),
):
    _ir, _np = _unary(_op, _numpy)
    setattr(IRMath, _name, _ir)
    setattr(NumpyMath, _name, _np)

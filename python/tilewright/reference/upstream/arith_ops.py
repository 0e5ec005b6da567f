# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The `arith` dialect: elementwise on scalars, tensors and tiles alike."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.core.dtypes import rounded
from tilewright.reference import types
from tilewright.reference.errors import InterpreterError
from tilewright.reference.integers import narrow, on_signed, on_unsigned, signed, unsigned
from tilewright.reference.program import Node
from tilewright.reference.registry import handles, pure


def _nonzero(b: Any) -> Any:
    if np.any(np.asarray(b) == 0):
        raise InterpreterError("integer division by zero, which is undefined behaviour")
    return b


def truncating_division(a: Any, b: Any) -> Any:
    """Return a / b rounded toward zero."""
    quotient = a // _nonzero(b)
    return quotient + ((quotient < 0) & (quotient * b != a)).astype(quotient.dtype)


def _shift(function: Any, overflow: Any) -> Any:
    """A shift by the width or more gives ``overflow(a)``; MLIR calls it poison."""

    def shift(a: Any, b: Any) -> Any:
        width = a.dtype.itemsize * 8
        amount = unsigned(b)
        legal = amount < width
        return np.where(legal, function(a, np.where(legal, amount, 0).astype(a.dtype)), overflow(a)).astype(a.dtype)

    return shift


_WRAPPING = {
    "addi": np.add,
    "subi": np.subtract,
    "muli": np.multiply,
    "andi": np.bitwise_and,
    "ori": np.bitwise_or,
    "xori": np.bitwise_xor,
    "maxsi": np.maximum,
    "minsi": np.minimum,
    "divsi": truncating_division,
    "remsi": lambda a, b: np.fmod(a, _nonzero(b)),
    "floordivsi": lambda a, b: a // _nonzero(b),
    "ceildivsi": lambda a, b: a // _nonzero(b) + (a % b != 0).astype(a.dtype),
    "shli": _shift(np.left_shift, np.zeros_like),
    "shrsi": _shift(np.right_shift, lambda a: np.where(a < 0, -1, 0)),
}
_UNSIGNED = {
    "maxui": np.maximum,
    "minui": np.minimum,
    "divui": lambda a, b: a // _nonzero(b),
    "remui": lambda a, b: a % _nonzero(b),
    "ceildivui": lambda a, b: a // _nonzero(b) + (a % b != 0).astype(a.dtype),
    "shrui": _shift(np.right_shift, np.zeros_like),
}
_FLOAT = {
    "addf": np.add,
    "subf": np.subtract,
    "mulf": np.multiply,
    "divf": np.divide,
    "remf": np.fmod,
    "negf": np.negative,
    "maximumf": np.maximum,
    "minimumf": np.minimum,
    "maxnumf": np.fmax,
    "minnumf": np.fmin,
}
FUNCTIONS = {
    **{f"arith.{name}": on_signed(function) for name, function in _WRAPPING.items()},
    **{f"arith.{name}": on_unsigned(function) for name, function in _UNSIGNED.items()},
    **{f"arith.{name}": function for name, function in _FLOAT.items()},
}
for _name, _function in FUNCTIONS.items():
    pure(_name, _function)


@handles("arith.constant")
def constant(_frame: Any, node: Node) -> Any:
    """A scalar, or an array of a tensor's or tile's shape."""
    return node.once("value", lambda: _constant(node))


def _constant(node: Node) -> Any:
    if types.dtype_of(node.result_type()).kind == "c":
        return types.complex_constant(str(node.op), node.result_type())
    return types.constant(node.op.attributes["value"])


@handles("arith.select")
def select(_frame: Any, _node: Node, condition: Any, a: Any, b: Any) -> Any:
    """Scalar condition chooses whole values; otherwise elementwise."""
    if np.ndim(condition) == 0:
        return a if condition else b
    return np.where(condition, a, b)


_ORDERED = (np.equal, np.greater, np.greater_equal, np.less, np.less_equal, np.not_equal)


def _compare_floats(predicate: int, a: Any, b: Any) -> Any:
    """Predicates in MLIR's order: false, oeq ogt oge olt ole one ord, ueq ugt uge ult ule une uno, true."""
    unordered = np.isnan(a) | np.isnan(b)
    if predicate in (0, 15):
        return np.full_like(unordered, predicate == 15)[()]
    if predicate in (7, 14):
        return ~unordered if predicate == 7 else unordered
    if predicate < 7:
        return _ORDERED[predicate - 1](a, b) & ~unordered
    return _ORDERED[predicate - 8](a, b) | unordered


@handles("arith.cmpf")
def cmpf(_frame: Any, node: Node, a: Any, b: Any) -> Any:
    """Compare floats."""
    return _compare_floats(_predicate(node), a, b)


_INTEGER = (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)


@handles("arith.cmpi")
def cmpi(_frame: Any, node: Node, a: Any, b: Any) -> Any:
    """Compare integers: eq, ne, signed lt le gt ge, unsigned lt le gt ge."""
    return compare_integers(_predicate(node), a, b)


def compare_integers(predicate: int, a: Any, b: Any) -> Any:
    """Compare with the predicate of this number in MLIR's order."""
    if predicate < 6:
        return _INTEGER[predicate](signed(a), signed(b))
    return _INTEGER[predicate - 4](unsigned(a), unsigned(b))


def _predicate(node: Node) -> int:
    return node.once("predicate", lambda: node.op.attributes["predicate"].value)


def _target(node: Node) -> np.dtype:
    return node.once("dtype", lambda: types.dtype_of(node.result_type()))


@handles("arith.extf", "arith.truncf")
def float_to_float(_frame: Any, node: Node, x: Any) -> Any:
    """Round to nearest even, once."""
    return rounded(x, _target(node))


@handles("arith.extsi", "arith.trunci", "arith.index_cast")
def signed_cast(_frame: Any, node: Node, x: Any) -> Any:
    """Sign-extend or cut off high bits."""
    return narrow(signed(x), _target(node))


@handles("arith.extui", "arith.index_castui")
def unsigned_cast(_frame: Any, node: Node, x: Any) -> Any:
    """Zero-extend or cut off high bits."""
    return narrow(unsigned(x), _target(node))


@handles("arith.sitofp")
def signed_to_float(_frame: Any, node: Node, x: Any) -> Any:
    """Signed integer to float."""
    return rounded(signed(x), _target(node))


@handles("arith.uitofp")
def unsigned_to_float(_frame: Any, node: Node, x: Any) -> Any:
    """Unsigned integer to float."""
    return rounded(unsigned(x), _target(node))


@handles("arith.fptosi")
def float_to_signed(_frame: Any, node: Node, x: Any) -> Any:
    """Round toward zero; out of range is poison in MLIR and unspecified here."""
    return narrow(np.trunc(x).astype(np.int64), _target(node))


@handles("arith.fptoui")
def float_to_unsigned(_frame: Any, node: Node, x: Any) -> Any:
    """Round toward zero; out of range is poison in MLIR and unspecified here."""
    return narrow(np.trunc(x).astype(np.uint64), _target(node))


@handles("arith.bitcast")
def bitcast(_frame: Any, node: Node, x: Any) -> Any:
    """The same bits as another type of the same width."""
    return x.view(_target(node))


@handles("arith.addui_extended")
def addui_extended(_frame: Any, _node: Node, a: Any, b: Any) -> tuple[Any, Any]:
    """Sum and carry."""
    total = on_unsigned(np.add)(a, b)
    return total, unsigned(total) < unsigned(a)


def _high_product(a: Any, b: Any, view: Any) -> Any:
    bits = a.dtype.itemsize * 8
    exact = np.asarray(view(a)).astype(object) * np.asarray(view(b)).astype(object)
    high = (exact >> bits) & ((1 << bits) - 1)
    return np.asarray(high).astype(np.uint64).astype(a.dtype)[()]


@handles("arith.mulsi_extended")
def mulsi_extended(_frame: Any, _node: Node, a: Any, b: Any) -> tuple[Any, Any]:
    """Low and high half of the signed product."""
    return a * b, _high_product(a, b, signed)


@handles("arith.mului_extended")
def mului_extended(_frame: Any, _node: Node, a: Any, b: Any) -> tuple[Any, Any]:
    """Low and high half of the unsigned product."""
    return a * b, _high_product(a, b, unsigned)

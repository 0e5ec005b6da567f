# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The `complex` dialect: sums and products in the type itself, functions in complex128 and rounded once."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.mlir import ir
from tilewright.reference import types
from tilewright.reference.program import Node
from tilewright.reference.registry import handles, pure

_FLOAT = {np.dtype(np.complex64): np.float32, np.dtype(np.complex128): np.float64}
_COMPLEX = {np.dtype(np.float32): np.complex64, np.dtype(np.float64): np.complex128}


def joined(real: Any, imaginary: Any) -> Any:
    """Return the complex value of two floats (no arithmetic: an infinite part leaves the other one alone)."""
    real, imaginary = np.broadcast_arrays(real, imaginary)
    out = np.empty(real.shape, _COMPLEX[real.dtype])
    out.real, out.imag = real, imaginary
    return out[()]


def _rounded(function: Any) -> Any:
    def apply(a: Any, *rest: Any) -> Any:
        wide = (np.asarray(x, np.complex128) for x in (a, *rest))
        return np.asarray(function(*wide)).astype(a.dtype)[()]

    return apply


def _real(function: Any) -> Any:
    """A function whose result is real."""
    return lambda a: np.asarray(function(np.asarray(a, np.complex128))).astype(_FLOAT[a.dtype])[()]


def _sign(a: Any) -> Any:
    size = np.abs(a)
    return np.where(size == 0, a, a / np.where(size == 0, 1, size))


def _log1p(a: Any) -> Any:
    """log(1 + a) without loss near zero: half of log1p(|1 + a|^2 - 1), and the angle."""
    x, y = a.real, a.imag
    return joined(0.5 * np.log1p(x * (2 + x) + y * y), np.arctan2(y, 1 + x))


def _expm1(a: Any) -> Any:
    """exp(a) - 1 without loss near zero."""
    x, y = a.real, a.imag
    return joined(np.expm1(x) * np.cos(y) - 2 * np.sin(y / 2) ** 2, np.exp(x) * np.sin(y))


def _atan2(y: Any, x: Any) -> Any:
    return -1j * np.log((x + 1j * y) / np.sqrt(x * x + y * y))


for _name, _function in {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "neg": np.negative,
    "conj": np.conjugate,
    "eq": np.equal,
    "neq": np.not_equal,
    "re": np.real,
    "im": np.imag,
    "create": joined,
}.items():
    pure(f"complex.{_name}", _function)
for _name, _function in {
    "div": np.divide,
    "exp": np.exp,
    "expm1": _expm1,
    "log": np.log,
    "log1p": _log1p,
    "sqrt": np.sqrt,
    "rsqrt": lambda a: 1 / np.sqrt(a),
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "tanh": np.tanh,
    "pow": np.power,
    "powi": np.power,
    "sign": _sign,
    "atan2": _atan2,
}.items():
    pure(f"complex.{_name}", _rounded(_function))
pure("complex.abs", _real(np.abs))
pure("complex.angle", _real(np.angle))


@handles("complex.constant")
def constant(_frame: Any, node: Node) -> Any:
    """A scalar from its real and imaginary part."""
    return node.once("value", lambda: _constant(node))


def _constant(node: Node) -> Any:
    real, imaginary = (types.constant(part) for part in ir.ArrayAttr(node.op.attributes["value"]))
    return joined(real, imaginary)


@handles("complex.bitcast")
def bitcast(_frame: Any, node: Node, x: Any) -> Any:
    """The same bits as another type of the same width."""
    return np.asarray(x).view(types.dtype_of(node.result_type()))[()]

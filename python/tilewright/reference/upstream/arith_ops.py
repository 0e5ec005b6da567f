# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The `arith` dialect, and the scalar functions of `math` and `index`: elementwise on scalars, tensors and tiles alike.

What they compute is told by :mod:`tilewright.core.arithmetic`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.core.arithmetic import COMPARISONS, CONVERSIONS, FUNCTIONS, PREDICATES, TESTS
from tilewright.core.integers import on_unsigned, signed, unsigned
from tilewright.reference import types
from tilewright.reference.program import Node
from tilewright.reference.registry import handles, pure

for _name, _function in {**FUNCTIONS, **TESTS}.items():
    pure(_name, _function)


def _conversion(name: str) -> None:
    @handles(name)
    def convert(_frame: Any, node: Node, x: Any) -> Any:
        return CONVERSIONS[name](x, node.once("dtype", lambda: types.dtype_of(node.result_type())))


def _comparison(name: str) -> None:
    @handles(name)
    def compare(_frame: Any, node: Node, a: Any, b: Any) -> Any:
        number = node.once("predicate", lambda: node.op.attributes["predicate"].value)
        return COMPARISONS[name](PREDICATES[name][number], a, b)


for _name in CONVERSIONS:
    _conversion(_name)
for _name in COMPARISONS:
    _comparison(_name)


@handles("arith.constant")
def constant(_frame: Any, node: Node) -> Any:
    """A scalar, or an array of a tensor's or tile's shape."""
    return node.once("value", lambda: _constant(node))


def _constant(node: Node) -> Any:
    if types.dtype_of(node.result_type()).kind == "c":
        return types.complex_constant(str(node.op), node.result_type())
    return types.constant(node.op.attributes["value"])


@handles("math.sincos")
def sincos(_frame: Any, _node: Node, x: Any) -> tuple[Any, Any]:
    """Sine and cosine."""
    return FUNCTIONS["math.sin"](x), FUNCTIONS["math.cos"](x)


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

# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Quasi-affine expressions of where a core stands and which round it is: one program serves all cores.

They mirror MLIR's affine expressions, which this package cannot import: it runs where there is no compiler.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.core.errors import UserError

#: An integer, or an array of integers that broadcasts with those of the other dimensions.
Value = Any

_OPERATIONS: dict[str, Callable[[Value, Value], Value]] = {
    "+": operator.add,
    "*": operator.mul,
    "mod": operator.mod,
    "floordiv": operator.floordiv,
}


@dataclass(frozen=True)
class Const:
    """A number."""

    value: int

    def __call__(self, dims: Sequence[Value]) -> int:
        """Its value."""
        return self.value


@dataclass(frozen=True)
class Dim:
    """The dimension of a number: see what holds the expression for which stand where."""

    index: int

    def __call__(self, dims: Sequence[Value]) -> Value:
        """Its value among those of all dimensions, integers or arrays that broadcast."""
        return dims[self.index]


@dataclass(frozen=True)
class Binary:
    """``+``, ``*``, ``mod`` or ``floordiv``; the rest follow, rounded towards minus infinity as in MLIR."""

    op: str
    left: Expr
    right: Expr

    def __call__(self, dims: Sequence[Value]) -> Value:
        """Its value at values of all dimensions, integers or arrays that broadcast.

        Raises:
            UserError: it divides by what is no positive number.
        """
        left, right = self.left(dims), self.right(dims)
        if self.op in ("mod", "floordiv") and (right <= 0 if isinstance(right, int) else np.less_equal(right, 0).any()):
            raise UserError(
                f"{self} divides by {np.min(right)}: as in MLIR, expressions of positions divide by positive numbers."
            )
        return _OPERATIONS[self.op](left, right)


Expr = Const | Dim | Binary


def depth(*exprs: Expr) -> int:
    """How many dimensions expressions may ask for: one more than the highest."""
    return max((_depth(expr) for expr in exprs), default=0)


def _depth(expr: Expr) -> int:
    if isinstance(expr, Dim):
        return expr.index + 1
    return max(_depth(expr.left), _depth(expr.right)) if isinstance(expr, Binary) else 0

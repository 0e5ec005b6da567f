# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Quasi-affine expressions with operators, and conditions on them: programs read as the formulas of papers.

Factors and divisors are constants throughout, so that every expression is also one of MLIR's affine expressions.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.sim.coremesh.expressions import Binary, Const, Dim, Expr


@dataclass(frozen=True)
class Term:
    """An expression that can be added, multiplied by a constant, and divided by one."""

    expr: Expr

    def __add__(self, other: TermLike) -> Term:
        """Sum; constants meet at once."""
        right = term(other)
        if isinstance(self.expr, Const) and isinstance(right.expr, Const):
            return term(self.expr.value + right.expr.value)
        if right.expr == Const(0):
            return self
        return right if self.expr == Const(0) else Term(Binary("+", self.expr, right.expr))

    def __radd__(self, other: int) -> Term:
        """Sum."""
        return self + other

    def __neg__(self) -> Term:
        """The negative."""
        return self * -1

    def __sub__(self, other: TermLike) -> Term:
        """Difference."""
        return self + term(other) * -1

    def __rsub__(self, other: int) -> Term:
        """Difference."""
        return term(other) - self

    def __mul__(self, factor: int) -> Term:
        """Product with a constant."""
        if isinstance(self.expr, Const):
            return term(self.expr.value * factor)
        if factor == 0:
            return term(0)
        return self if factor == 1 else Term(Binary("*", self.expr, Const(factor)))

    def __rmul__(self, factor: int) -> Term:
        """Product with a constant."""
        return self * factor

    def __mod__(self, modulus: int) -> Term:
        """Remainder, never negative, of a division by a positive constant."""
        if isinstance(self.expr, Const):
            return term(self.expr.value % modulus)
        return term(0) if modulus == 1 else Term(Binary("mod", self.expr, Const(modulus)))

    def __floordiv__(self, divisor: int) -> Term:
        """Quotient by a positive constant, rounded towards minus infinity."""
        if isinstance(self.expr, Const):
            return term(self.expr.value // divisor)
        return self if divisor == 1 else Term(Binary("floordiv", self.expr, Const(divisor)))


TermLike = Term | int


def term(value: TermLike) -> Term:
    """A number or a term, as a term."""
    return value if isinstance(value, Term) else Term(Const(value))


def dim(index: int) -> Term:
    """The dimension of this number."""
    return Term(Dim(index))


#: Row and column, in what cores do; position along a route's axis and along the other, in routes.
Y, X = dim(0), dim(1)
P, Q = dim(0), dim(1)


@dataclass(frozen=True)
class Condition:
    """``left >= 0``, or ``left == 0`` where ``exact``."""

    left: Term
    exact: bool = False


def at_least(left: TermLike, right: TermLike) -> Condition:
    """``left >= right``."""
    return Condition(term(left) - right)


def less(left: TermLike, right: TermLike) -> Condition:
    """``left < right``."""
    return Condition(term(right) - left - 1)


def equal(left: TermLike, right: TermLike) -> Condition:
    """``left == right``."""
    return Condition(term(left) - right, exact=True)


def differ(left: TermLike, right: TermLike, length: int) -> Condition:
    """``left != right``, of two numbers from 0 to ``length`` - 1: their difference modulo ``length`` is not 0."""
    return Condition((term(left) - right) % length - 1)

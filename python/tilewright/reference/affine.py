# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Affine expressions: read once from MLIR into small terms, then evaluated on integers or arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.mlir import ir
from tilewright.reference.errors import InterpreterError

_BINARY = (
    ("+", ir.AffineAddExpr),
    ("*", ir.AffineMulExpr),
    ("mod", ir.AffineModExpr),
    ("floordiv", ir.AffineFloorDivExpr),
    ("ceildiv", ir.AffineCeilDivExpr),
)


@dataclass(frozen=True)
class Term:
    """``kind`` is an operator with two ``parts``, or "dim"/"constant" with an integer ``value``.

    Symbol ``s`` of a map with ``n`` dimensions is dimension ``n + s``.
    """

    kind: str
    value: int = 0
    parts: tuple[Term, ...] = ()


@dataclass(frozen=True)
class Linear:
    """The sum of ``coefficients[d] * dim d`` and ``offset``."""

    coefficients: dict[int, int]
    offset: int


def read_map(map_: ir.AffineMap) -> tuple[Term, ...]:
    """Return the results of ``map_`` as terms."""
    return tuple(read(expr, map_.n_dims) for expr in map_.results)


def read(expr: ir.AffineExpr, dims: int) -> Term:
    """Return ``expr``, of a map with ``dims`` dimensions, as a term."""
    if isinstance(expr, ir.AffineDimExpr):
        return Term("dim", expr.position)
    if isinstance(expr, ir.AffineSymbolExpr):
        return Term("dim", dims + expr.position)
    if isinstance(expr, ir.AffineConstantExpr):
        return Term("constant", expr.value)
    for kind, cls in _BINARY:
        if isinstance(expr, cls):
            return Term(kind, 0, (read(expr.lhs, dims), read(expr.rhs, dims)))
    raise InterpreterError(f"unknown affine expression {expr}")


def evaluate(term: Term, dims: Sequence[Any]) -> Any:
    """Return the value of ``term`` where dimension ``d`` is ``dims[d]`` (integers or arrays that broadcast)."""
    if term.kind == "dim":
        return dims[term.value]
    if term.kind == "constant":
        return term.value
    lhs, rhs = (evaluate(part, dims) for part in term.parts)
    match term.kind:
        case "+":
            return lhs + rhs
        case "*":
            return lhs * rhs
        case "mod":
            return lhs % rhs
        case "floordiv":
            return lhs // rhs
        case _:
            return -((-lhs) // rhs)


def linear(term: Term) -> Linear | None:
    """Return ``term`` as a linear form, or None where it divides or multiplies dimensions."""
    if term.kind == "dim":
        return Linear({term.value: 1}, 0)
    if term.kind == "constant":
        return Linear({}, term.value)
    if term.kind not in "+*":
        return None
    lhs, rhs = (linear(part) for part in term.parts)
    if lhs is None or rhs is None:
        return None
    if term.kind == "+":
        return _sum(lhs, rhs)
    if rhs.coefficients and lhs.coefficients:
        return None
    form, factor = (lhs, rhs.offset) if not rhs.coefficients else (rhs, lhs.offset)
    return Linear({d: c * factor for d, c in form.coefficients.items()}, form.offset * factor)


def _sum(lhs: Linear, rhs: Linear) -> Linear:
    dims = lhs.coefficients.keys() | rhs.coefficients.keys()
    coefficients = {d: lhs.coefficients.get(d, 0) + rhs.coefficients.get(d, 0) for d in dims}
    return Linear(coefficients, lhs.offset + rhs.offset)


def plain_dim(term: Term) -> int | None:
    """Return the dimension that ``term`` is, or None."""
    return term.value if term.kind == "dim" else None

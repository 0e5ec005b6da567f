# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Affine expressions of MLIR as those of the simulator, and back."""

from __future__ import annotations

from tilewright.mlir import ir
from tilewright.sim.coremesh.expressions import Binary, Const, Dim, Expr

_KINDS = (
    ("+", ir.AffineAddExpr),
    ("*", ir.AffineMulExpr),
    ("mod", ir.AffineModExpr),
    ("floordiv", ir.AffineFloorDivExpr),
)


def to_expression(expr: ir.AffineExpr) -> Expr:
    """A result of a map without symbols."""
    if isinstance(expr, ir.AffineConstantExpr):
        return Const(expr.value)
    if isinstance(expr, ir.AffineDimExpr):
        return Dim(expr.position)
    if isinstance(expr, ir.AffineCeilDivExpr):
        below = Binary("*", to_expression(expr.lhs), Const(-1))
        return Binary("*", Binary("floordiv", below, to_expression(expr.rhs)), Const(-1))
    for op, cls in _KINDS:
        if isinstance(expr, cls):
            return Binary(op, to_expression(expr.lhs), to_expression(expr.rhs))
    raise ValueError(f"no expression of dimensions: {expr}")


def to_affine(expr: Expr) -> ir.AffineExpr:
    """An affine expression, in MLIR's canonical form."""
    if isinstance(expr, Const):
        return ir.AffineExpr.get_constant(expr.value)
    if isinstance(expr, Dim):
        return ir.AffineExpr.get_dim(expr.index)
    left, right = to_affine(expr.left), to_affine(expr.right)
    if expr.op == "+":
        return left + right
    if expr.op == "*":
        return left * right
    return ir.AffineExpr.get_mod(left, right) if expr.op == "mod" else ir.AffineExpr.get_floor_div(left, right)

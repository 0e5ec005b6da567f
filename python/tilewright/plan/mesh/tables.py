# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A table of numbers along a line, as a quasi-affine expression of the place: periodic, with exceptions."""

from __future__ import annotations

import numpy as np

from tilewright.sim.coremesh.expressions import Binary, Const, Dim, Expr


def table_expr(values: np.ndarray, dim: int, care: np.ndarray | None = None, where: Expr | None = None) -> Expr:
    """An expression that has these values at 0, 1, ...; the one with the fewest steps of all periods.

    Args:
        values: int64 [n].
        dim: number of the dimension that counts along the line.
        care: bool [n], which values matter; None: all do.
        where: an expression that is 1 where the table holds, 0 where the result is 0; None: it holds everywhere.
    """
    length = len(values)
    care = np.ones(length, dtype=bool) if care is None else care
    best, cost = None, None
    for period in (*range(1, length // 2 + 1), length):
        base = _majority(values, care, period)
        rest = np.where(care, values - base[np.arange(length) % period], 0)
        steps = _changes(base) + _changes(rest)
        if cost is None or steps < cost:
            best, cost = (period, base, rest), steps
    assert best is not None, "a line has a place"
    period, base, rest = best
    place: Expr = Dim(dim) if period == length else Binary("mod", Dim(dim), Const(period))
    found: Expr = Const(0)
    for factor, reached in (*_steps(base, place), *_steps(rest, Dim(dim))):
        found = _sum(found, _times(_both(where, reached), factor))
    return found


def line_expr(values: np.ndarray, dim: int) -> Expr:
    """An expression that has these values at 0, 1, ...: a slope, and a table of what differs from it.

    Args:
        values: int64 [n].
        dim: number of the dimension that counts along the line.
    """
    slopes, counts = np.unique(np.diff(values), return_counts=True)
    slope = int(slopes[counts.argmax()]) if slopes.size else 0
    rest = table_expr(values - slope * np.arange(len(values)), dim)
    if not slope:
        return rest
    line = _times(Dim(dim), slope)
    return line if rest == Const(0) else Binary("+", line, rest)


def _changes(values: np.ndarray) -> int:
    return int(np.count_nonzero(np.diff(values))) + bool(values[0])


def _majority(values: np.ndarray, care: np.ndarray, period: int) -> np.ndarray:
    """The most frequent value at each remainder; where none matters, that of the remainder before."""
    least = int(values.min(initial=0))
    top = int(values.max(initial=0)) + 1 - least
    remainders = np.arange(len(values)) % period
    counts = np.bincount((remainders * top + values - least)[care], minlength=period * top).reshape(period, top)
    known = counts.sum(axis=1) > 0
    last = np.maximum.accumulate(np.where(known, np.arange(period), 0))
    return np.where(known[last], counts.argmax(axis=1)[last] + least, 0)


def _steps(values: np.ndarray, place: Expr) -> list[tuple[int, Expr | None]]:
    """``values[place]`` as a sum of factors where a place is reached: (place + n - at) floordiv n is 1 from ``at`` on.

    None: reached everywhere.
    """
    length = len(values)
    found: list[tuple[int, Expr | None]] = [(int(values[0]), None)] if values[0] else []
    for at in (np.flatnonzero(np.diff(values)) + 1).tolist():
        reached = Binary("floordiv", Binary("+", place, Const(length - at)), Const(length))
        found.append((int(values[at] - values[at - 1]), reached))
    return found


def _both(left: Expr | None, right: Expr | None) -> Expr:
    """1 where both are 1, of two expressions that are 0 or 1: affine expressions have no products."""
    if left is None or right is None:
        return left or right or Const(1)
    return Binary("floordiv", Binary("+", left, right), Const(2))


def _times(expr: Expr, factor: int) -> Expr:
    if isinstance(expr, Const):
        return Const(expr.value * factor)
    return expr if factor == 1 else Binary("*", expr, Const(factor))


def _sum(left: Expr, right: Expr) -> Expr:
    return right if left == Const(0) else Binary("+", left, right)

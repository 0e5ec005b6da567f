# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tables of numbers as affine expressions have exactly the values of the table, and few terms where it is regular."""

import numpy as np
import pytest

from tilewright.plan.mesh.tables import table_expr
from tilewright.sim.coremesh.expressions import Binary, Const


def values(expr, length, other=0):
    return [expr((place, other)) for place in range(length)]


def size(expr):
    return 1 + size(expr.left) + size(expr.right) if isinstance(expr, Binary) else 1


@pytest.mark.parametrize("seed", range(60))
def test_any_table(seed):
    rng = np.random.default_rng(seed)
    table = rng.integers(-2, 4, rng.integers(1, 40))
    care = rng.random(len(table)) < rng.choice([0.3, 1.0])
    found = np.array(values(table_expr(table, 0, care), len(table)))
    assert (found == table)[care].all()


@pytest.mark.parametrize("period", [1, 2, 3, 6, 7])
def test_periodic_tables_are_short_however_long_the_line(period):
    base = np.arange(period)[::-1] % 3
    long, short = (np.resize(base, length) for length in (720, 40))
    assert values(table_expr(long, 0), 720) == long.tolist()
    assert size(table_expr(long, 0)) == size(table_expr(short, 0))


def test_ends_may_differ():
    table = np.resize([2, 2, 1, 1, 0, 0], 30)
    table[[0, 29]] = 5
    expr = table_expr(table, 0)
    assert values(expr, 30) == table.tolist()
    assert size(expr) < 60


def test_a_table_that_holds_in_some_places_only():
    where = table_expr(np.array([0, 1, 1, 0]), 1)
    expr = table_expr(np.array([3, -1, 2]), 0, where=where)
    assert [values(expr, 3, q) for q in range(4)] == [[0, 0, 0], [3, -1, 2], [3, -1, 2], [0, 0, 0]]


def test_a_constant_is_one():
    assert table_expr(np.full(9, 4), 0) == Const(4)
    assert table_expr(np.zeros(9, dtype=int), 0) == Const(0)


def test_factors_and_divisors_are_constants():
    """Else the expression would be none of MLIR's affine ones."""

    def check(expr):
        if isinstance(expr, Binary):
            assert expr.op == "+" or isinstance(expr.right, Const)
            check(expr.left)
            check(expr.right)

    where = table_expr(np.array([0, 1, 1, 0]), 1)
    check(table_expr(np.array([3, -1, 2, 2, 0]), 0, where=where))

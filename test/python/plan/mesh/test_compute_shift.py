# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compute-shift plans: equal products, memory against communication."""

from __future__ import annotations

import numpy as np
import pytest

from python.plan.mesh.paths import paths
from tilewright.core.errors import UserError
from tilewright.plan.mesh.shifting.compute_shift import Plan, compute_shift_product
from tilewright.sim.coremesh.functional import run

PLANS = [
    Plan((1, 1)),
    Plan((3, 4)),
    Plan((3, 4), (4, 3)),
    Plan((4, 6), (3, 2)),
    Plan((4, 6), (2, 1), 3),
    Plan((6, 4), (1, 6), 2),
    Plan((5, 5), (5, 5)),
]


@pytest.mark.parametrize("plan", PLANS, ids=str)
@pytest.mark.parametrize("sizes", [(12, 12, 12), (7, 31, 11)])
def test_products_equal_numpy(plan: Plan, sizes: tuple[int, int, int]):
    m, k, n = sizes
    generator = np.random.default_rng(0)
    a, b = (generator.integers(-9, 10, shape).astype(np.int32) for shape in ((m, k), (k, n)))
    np.testing.assert_array_equal(run(compute_shift_product(m, k, n, plan, np.int32), {"A": a, "B": b})["C"], a @ b)


def operand_bytes(plan: Plan) -> int:
    program = compute_shift_product(48, 48, 48, plan)
    return sum(int(np.prod(b.shape)) * b.slots * b.dtype.itemsize for b in program.buffers if b.name in ("A", "B"))


def test_memory_against_communication():
    """The larger the temporal factors, the less memory and the more paths; finer pieces need less to receive into."""
    plans = [Plan((4, 4), (factor, factor), 4 // factor) for factor in (1, 2, 4)]
    memory = [operand_bytes(plan) for plan in plans]
    assert memory == sorted(memory, reverse=True)
    assert len(set(memory)) == 3
    assert [len(paths(compute_shift_product(48, 48, 48, plan))) for plan in plans] == [0, 32, 32]
    assert operand_bytes(Plan((4, 4), (4, 4), 3)) < operand_bytes(Plan((4, 4), (4, 4)))


def test_groups_keep_to_themselves():
    """Parts rotate through pairs of neighbours: nothing crosses from one pair to the next."""
    found = {
        (a[1], b[1]) for axis, _, a, b in paths(compute_shift_product(8, 8, 8, Plan((1, 6), (2, 1)))) if axis == "x"
    }
    assert found == {(0, 1), (1, 0), (2, 3), (3, 2), (4, 5), (5, 4)}


def test_factors_that_do_not_divide():
    with pytest.raises(UserError, match=r"one of \[1, 2, 3, 6\]"):
        Plan((2, 6), (4, 1))
    with pytest.raises(UserError, match="0 pieces"):
        Plan((2, 2), pieces=0)

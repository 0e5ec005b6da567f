# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A product of the preset `calibrated` takes what its law says; whole layers: `plan/mesh/test_published.py`."""

from __future__ import annotations

import pytest
from timed_programs import shifts

from tilewright.sim.coremesh.machine import machine
from tilewright.sim.coremesh.timing import time_program

MEASURED = machine("wse2", "calibrated")


@pytest.mark.parametrize("sizes", [(480, 9, 9, 30), (720, 6, 6, 6), (31, 5, 7, 11)])
def test_a_product_by_the_fitted_law(sizes: tuple[int, int, int, int]) -> None:
    """P rounds of so much, per vector call and per multiply-add, where those hide the shifts; to a thousandth each."""
    side, m, k, n = sizes
    one = shifts(side, side, (m * k // 2, k * n // 2), m * k * n, calls=k * n, bits=16)
    over = MEASURED.overheads
    law = side * (over.round + over.vector_call * k * n + over.per_mac * m * k * n)
    assert time_program(one, MEASURED).cycles == pytest.approx(law, abs=side / 1000)

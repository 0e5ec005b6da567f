# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Expressions mean one thing to all simulators: divisions by what is no positive number are an error of the program."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from python.sim.coremesh.mesh_programs import TURN, P, add, line
from tilewright.core.errors import UserError
from tilewright.sim.coremesh import functional
from tilewright.sim.coremesh.expressions import Binary, Const, Expr
from tilewright.sim.coremesh.machine import machine
from tilewright.sim.coremesh.program import Cores, Loop, Program, Recv, Route, Send, Slot, Wait
from tilewright.sim.coremesh.timing import time_program
from tilewright.sim.coremesh.wavelets import simulate

TIERS: dict[str, Callable[[Program], object]] = {
    "functional": lambda program: functional.run(program, {"v": np.zeros((1, 3), np.float32)}),
    "timing": lambda program: time_program(program, machine("toy8x8")),
    "wavelets": lambda program: simulate(program, machine("toy8x8")),
}


def program_of(source: Expr) -> Program:
    """Three cores; each receives from where an expression of its position and of a loop says."""
    everyone = Cores()
    body = [Send(everyone, "r", Slot("v"), "t"), Recv(everyone, "r", Slot("w"), "t"), Wait(("t",))]
    return line(3, [Loop(2, tuple(body))], [Route("r", "x", source)])


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("op", ["mod", "floordiv"])
@pytest.mark.parametrize(
    ("dividend", "divisor"), [(P, 0), (TURN, 0), (P, -1), (add(P, -(2**63)), -1)], ids=["p", "i", "negative", "least"]
)
def test_divisors_are_positive(tier: str, op: str, dividend: Expr, divisor: int):
    source = Binary(op, dividend, Const(divisor))
    with pytest.raises(UserError, match=f"divides by {divisor}: as in MLIR"):
        TIERS[tier](program_of(source))


@pytest.mark.parametrize("tier", TIERS)
def test_negative_dividends_round_down(tier: str):
    """(p - 1) mod 3 is a ring; ((p - 3) floordiv 3 + 1) * 3 + p is everybody itself."""
    TIERS[tier](program_of(Binary("mod", add(P, -1), Const(3))))
    rounded = Binary("*", add(Binary("floordiv", add(P, -3), Const(3)), 1), Const(3))
    TIERS[tier](program_of(Binary("+", rounded, P)))

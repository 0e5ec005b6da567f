# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whether a program does the same on any machine: what the checks of `report` say before colors and addresses."""

from __future__ import annotations

from tilewright.core.errors import UserError
from tilewright.sim.coremesh.checks.deadlock import deadlock_verdict
from tilewright.sim.coremesh.checks.field import Field
from tilewright.sim.coremesh.checks.races import check_races
from tilewright.sim.coremesh.checks.shapes import check_shapes
from tilewright.sim.coremesh.machine import Machine
from tilewright.sim.coremesh.program import Program
from tilewright.sim.coremesh.steps import unroll


def check_soundness(program: Program, machine: Machine) -> None:
    """Check races, reads of what nobody wrote, shapes, messages and deadlock.

    Raises:
        UserError: the first violation, in that order; also where a deadlock is not decided.
    """
    field, steps = Field(program), unroll(program)
    check_races(program, field, steps)
    check_shapes(program, field, steps)
    verdict = deadlock_verdict(program, machine, field, steps)
    verdict.check()
    if verdict.kind == "undecided":
        raise UserError(verdict.why)

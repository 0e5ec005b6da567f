# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A program made ready for a machine: colors and addresses assigned, everything checked."""

from __future__ import annotations

from collections.abc import Collection

from tilewright.plan.mesh.assign_addresses import assign_addresses
from tilewright.plan.mesh.assign_colors import assign_colors
from tilewright.sim.coremesh.checks.report import Report, check_program
from tilewright.sim.coremesh.machine import Machine
from tilewright.sim.coremesh.program import Program


def fit_program(program: Program, machine: Machine, keep: Collection[str] = ()) -> tuple[Program, Report]:
    """The program with colors and addresses, and what it takes of the machine.

    Args:
        keep: buffers whose memory no other one gets.

    Raises:
        UserError: it does not fit the machine, or breaks a rule: see `check_program`.
    """
    fitted = assign_addresses(assign_colors(program, machine), machine, keep)
    return fitted, check_program(fitted, machine)

# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What pass `tile-fit-mesh` does; loaded when it runs, as all that it needs."""

from __future__ import annotations

from typing import Any

from tilewright.core.errors import TilewrightError
from tilewright.ir.diagnostics import remark
from tilewright.ir.generics import walk
from tilewright.ir.target_info import options_of
from tilewright.mlir import ir
from tilewright.passes import located
from tilewright.plan.mesh.fit_program import fit_program
from tilewright.sim.coremesh.checks.report import Report
from tilewright.sim.coremesh.machine import Machine
from tilewright.sim.coremesh.program import Program
from tilewright.sim.coremesh_ir.read import programs, read_program, text_of
from tilewright.sim.coremesh_ir.resources import write_resources
from tilewright.targets.mesh.attributes import COLORS, machine_of, number
from tilewright.targets.mesh.control.loops import in_order
from tilewright.targets.mesh.memory.held import Memory
from tilewright.targets.mesh.memory.kept import keep_weights
from tilewright.targets.mesh.memory.residency import place


def _fitted(op: ir.Operation, machine: Machine, known: dict[str, tuple[Program, Report]]) -> Report:
    """Fit one program, unless its like has been before."""
    key = text_of(op)
    try:
        if key not in known:
            known[key] = fit_program(read_program(op), machine)
    except TilewrightError as error:
        raise located(error, op) from error
    program, report = known[key]
    for warning in report.warnings:
        remark(op, warning)
    write_resources(op, program)
    op.attributes[COLORS] = number(report.colors)
    return report


def rewrite(options: Any, op: ir.Operation) -> None:
    """Visit the functions."""
    machine, known = machine_of(op), {}
    for function in walk(op, "func.func"):
        reports = {one: _fitted(one, machine, known) for one in programs(function)}
        block = function.regions[0].blocks[0]
        numbers = {one: at for at, one in enumerate(in_order(block))}
        peaks = {numbers[one]: report.classes[0].peak for one, report in reports.items() if one in numbers}
        peaks |= keep_weights(Memory(in_order(block), peaks), read_program, machine)
        place(block, peaks, machine, options_of(op).resident)

# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What pass `tile-fit-mesh-programs` does; loaded when it runs, as all that it needs."""

from __future__ import annotations

import re
from typing import Any

from tilewright.core.errors import TilewrightError
from tilewright.ir.diagnostics import remark
from tilewright.ir.generics import walk
from tilewright.mlir import ir
from tilewright.passes import located
from tilewright.plan.mesh.fit_program import fit_program
from tilewright.sim.coremesh.machine import Machine, machine
from tilewright.sim.coremesh_ir.read import read_program
from tilewright.sim.coremesh_ir.resources import write_resources

#: Ops of a program that are no instructions.
_DECLARED = ("coremesh.buffer", "coremesh.route", "coremesh.place", "coremesh.collect", "coremesh.yield")


def _fit(op: ir.Operation, mesh: Machine) -> None:
    fitted, report = fit_program(read_program(op), mesh)
    write_resources(op, fitted)
    remark(op, str(report))


def _instruction(program: ir.Operation, where: str) -> ir.Operation:
    """The op that an error names by its path, `body[2][0]`; else the program."""
    match, op = re.search(r"body((?:\[\d+\])+)", where), program
    for index in re.findall(r"\d+", match[1]) if match else []:
        inside = [one.operation for one in op.regions[0].blocks[0].operations]
        op = [one for one in inside if one.name not in _DECLARED][int(index)]
    return op


def rewrite(options: Any, op: ir.Operation) -> None:
    """Visit all programs."""
    found = walk(op, "coremesh.program")
    mesh = machine(options.machine, options.preset) if found else None
    for program in found:
        assert mesh is not None
        try:
            _fit(program, mesh)
        except TilewrightError as error:
            raise located(error, _instruction(program, error.location or "")) from error

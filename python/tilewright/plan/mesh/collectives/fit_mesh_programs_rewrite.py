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
from tilewright.sim.coremesh.program import Program
from tilewright.sim.coremesh_ir.expressions import to_affine
from tilewright.sim.coremesh_ir.read import read_program

#: Ops of a program that are no instructions.
_DECLARED = ("coremesh.buffer", "coremesh.route", "coremesh.place", "coremesh.collect", "coremesh.yield")


def _fit(op: ir.Operation, mesh: Machine) -> None:
    fitted, report = fit_program(read_program(op), mesh)
    _write(op, fitted)
    remark(op, str(report))


def _write(op: ir.Operation, program: Program) -> None:
    buffers = {buffer.name: buffer for buffer in program.buffers}
    routes = {route.name: route for route in program.routes}
    i64 = ir.IntegerType.get_signless(64)
    for inner in op.regions[0].blocks[0].operations:
        name = ir.StringAttr(inner.attributes["sym_name"]).value if "sym_name" in inner.attributes else ""
        if inner.operation.name == "coremesh.buffer":
            inner.attributes["address"] = ir.IntegerAttr.get(i64, buffers[name].address or 0)
        elif inner.operation.name == "coremesh.route":
            for old in ("colors", "color"):
                if old in inner.attributes:
                    del inner.attributes[old]
            if routes[name].colors:
                color = ir.AffineMap.get(2, 0, [to_affine(routes[name].color)])
                inner.attributes["colors"] = ir.DenseI64ArrayAttr.get(list(routes[name].colors))
                inner.attributes["color"] = ir.AffineMapAttr.get(color)


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

# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-fit-mesh-programs`: addresses and colors of programs for a mesh of cores, and all checks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from tilewright.core.errors import TilewrightError
from tilewright.devices.device import Device
from tilewright.ir.diagnostics import remark
from tilewright.ir.generics import walk
from tilewright.mlir import ir
from tilewright.passes import Pass, device_option, located, option, register
from tilewright.plan.mesh.fit_program import fit_program
from tilewright.sim.coremesh.machine import Machine, machine
from tilewright.sim.coremesh.program import Program
from tilewright.sim.coremesh_ir.expressions import to_affine
from tilewright.sim.coremesh_ir.read import read_program

#: Ops of a program that are no instructions.
_DECLARED = ("coremesh.buffer", "coremesh.route", "coremesh.place", "coremesh.collect", "coremesh.yield")


def _mesh(device: Device) -> str | None:
    return device.name if device.mesh is not None else None


@register
@dataclass(frozen=True)
class FitMeshPrograms(Pass):
    """Give buffers of mesh programs addresses and routes colors, and check all that is known before a run.

    Addresses and colors are decisions, as attributes: those that were there are made anew. A program that does not fit
    a core's memory or a router's colors, races, waits for itself, or receives what nobody sends is an error at its
    instruction; a remark gives what it takes of the machine (WaferLLM's PLMR), and warns of values that nobody reads.

    Before:
    ```mlir
    func.func @f(%a: tensor<4x9xf32>) -> tensor<4x9xf32> {
      %r = coremesh.program "shift" grid(2, 3) (%in = %a) : (tensor<4x9xf32>) -> tensor<4x9xf32> {
        coremesh.buffer @A : tensor<2x3xf32> slots 2
        coremesh.route @left along x ring from (p + 1) mod 3
        coremesh.place %in in @A block(y, x) ring : tensor<4x9xf32>
        %s = coremesh.send @A on @left
        %t = coremesh.recv @A[1] from @left
        coremesh.wait round %s, %t
        %out = coremesh.collect @A[1] block(y, (x + 1) mod 3) ring : tensor<4x9xf32>
        coremesh.yield %out : tensor<4x9xf32>
      }
      return %r : tensor<4x9xf32>
    }
    ```
    After:
    ```mlir
    coremesh.buffer @A : tensor<2x3xf32> slots 2 address 5120
    coremesh.route @left along x ring from (p + 1) mod 3 colors [0, 1, 2] by ...
    ```
    """

    name: ClassVar[str] = "tile-fit-mesh-programs"
    dialects: ClassVar[tuple[str, ...]] = ("coremesh",)
    machine: str = device_option("wse2", _mesh, "the mesh, by name")
    preset: str = option("ideal", "of the machine: ideal or calibrated")

    def run(self, op: ir.Operation) -> None:
        """Visit all programs."""
        found = walk(op, "coremesh.program")
        mesh = machine(self.machine, self.preset) if found else None
        for program in found:
            assert mesh is not None
            try:
                _fit(program, mesh)
            except TilewrightError as error:
                raise located(error, _instruction(program, error.location or "")) from error


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

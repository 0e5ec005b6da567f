# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How a tensor gets from one layout to another: from core to core, or out through the edge of the grid and in again."""

from __future__ import annotations

from math import prod

from tilewright.core.dtypes import of_mlir
from tilewright.core.errors import UserError
from tilewright.ir.diagnostics import remark
from tilewright.mlir import ir
from tilewright.plan.mesh.collectives.laid_collectives import move
from tilewright.plan.mesh.collectives.layouts import laid
from tilewright.sim.coremesh.checks.memory import core_classes
from tilewright.sim.coremesh.machine import Machine
from tilewright.sim.coremesh.timing import time_program

#: On the function: "grid", "edge", or "fastest", which it is where the function says nothing.
MOVES = "coremesh.moves"


class Moves:
    """Decides for each move, by simulated time (tier T1) if nothing else is asked for.

    Args:
        function: says how, if it does.
        machine: what is compiled for; None: everything moves on the grid.

    Raises:
        UserError: the function asks for something else.
    """

    def __init__(self, function: ir.Operation, machine: Machine | None) -> None:
        told = function.attributes[MOVES] if MOVES in function.attributes else ir.StringAttr.get("fastest")
        self.how = ir.StringAttr(told).value if isinstance(told, ir.StringAttr) else str(told)
        if self.how not in ("grid", "edge", "fastest"):
            raise UserError(f"{MOVES} is '{self.how}': use grid, edge or fastest")
        self.machine = machine
        self._known: dict[tuple[str, str], float | None] = {}

    def on_grid(self, op: ir.Operation, in_loop: bool = False) -> bool:
        """Whether a `coremesh.relayout` is to stay: in a loop of the model, wherever memory does."""
        if self.machine is None or self.how == "edge":
            return self.how != "edge"
        cycles, edge = self._cycles(op, self.machine), self._edge(op, self.machine)
        if cycles is None:
            remark(op, "moved through the edge of the grid: no core holds what it has of it on the way")
            return False
        if self.how == "fastest" and not in_loop and edge and edge < cycles:
            remark(op, f"moved through the edge of the grid: {edge:,.0f} cycles; from core to core {cycles:,.0f}")
            return False
        return True

    def _cycles(self, op: ir.Operation, machine: Machine) -> float | None:
        """Cycles from core to core; None where memory does not do."""
        key = str(op.operands[0].type), str(op.results[0].type)
        if key not in self._known:
            program = move(laid(op.operands[0]), laid(op.results[0]))
            fits = core_classes(program)[0].peak <= machine.sram_bytes - machine.mesh.code_bytes
            self._known[key] = time_program(program, machine, loads=False).cycles if fits else None
        return self._known[key]

    def _edge(self, op: ir.Operation, machine: Machine) -> float:
        """Cycles through the edge; 0 where nothing is known of it."""
        kind, rate = ir.RankedTensorType(op.results[0].type), machine.mesh.offchip_bytes_per_cycle
        return 2 * prod(kind.shape) * of_mlir(str(kind.element_type)).itemsize / rate if rate else 0.0

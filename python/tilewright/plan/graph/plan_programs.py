# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-plan-programs`: which loops of launches become static programs of tasks."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from tilewright.devices import facts
from tilewright.ir import decisions
from tilewright.ir.constants import integer_constant, trip_count
from tilewright.ir.structure import EXPECTED
from tilewright.ir.target_info import rate_of
from tilewright.mlir import ir
from tilewright.passes import Pass, device_option, register
from tilewright.plan.graph.rammer import Variant, plan_programs

#: Launches that one program takes: more are code without gain, fewer are not worth a program.
_MOST_PLACED, _LEAST_STEPS = 32, 4
_QUIET = ("memref.subview", "memref.expand_shape", "memref.collapse_shape", "memref.cast", "memref.reinterpret_cast")


@register
@dataclass(frozen=True)
class PlanPrograms(Pass):
    """Give loops of short launches execution units (`tile.units`), and how many steps are a program.

    The steps of a recurrent network are launches of a few microseconds each, and a launch on several threads takes
    near one. In a program each unit knows its tasks, and waits for signals of the others only. Rammer's policy
    (`rammer.py`) estimates whether an iteration is one program; long iterations stay launches, whose chunks balance
    cores that other work disturbs. Single steps do what whole programs leave, of a number that a run brings, too.

    Before:
    ```mlir
    tile.kernel @k(%x: memref<4096xf32>) grid(%i) {
      tile.return
    }
    func.func @main(%x: memref<4096xf32>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c8 = arith.constant 8 : index
      scf.for %t = %c0 to %c8 step %c1 {
        tile.launch @k grid(%c8) outs(%x : memref<4096xf32>)
      }
      return
    }
    ```
    After:
    ```mlir
    scf.for %t = %c0 to %c8 step %c1 {
      tile.launch @k grid(%c8) outs(%x : memref<4096xf32>)
    } {tile.steps = 8 : i64, tile.units = 2 : i64}
    ```
    """

    name: ClassVar[str] = "tile-plan-programs"
    dialects: ClassVar[tuple[str, ...]] = ("tile",)

    units: int = device_option(2, facts.unit_count, "execution units: cores of the machine")

    def run(self, op: ir.Operation) -> None:
        """Decide about each innermost loop of the host."""
        for function in op.regions[0].blocks[0].operations:
            if function.operation.name == "func.func":
                self._visit(function.operation)

    def _visit(self, op: ir.Operation) -> None:
        for region in op.regions:
            for block in region.blocks:
                for inner in block.operations:
                    steps = self._steps(inner.operation) if inner.operation.name == "scf.for" else 0
                    if steps:
                        decisions.UNITS.set(inner.operation, self.units)
                        decisions.STEPS.set(inner.operation, steps)
                    elif not inner.operation.name.startswith("tile."):
                        self._visit(inner.operation)

    def _steps(self, loop: ir.Operation) -> int:
        """Iterations that a program takes; 0 where the loop stays one of launches."""
        launches, period = _launches(loop), _period(loop)
        rate = functools.partial(rate_of, loop)
        if self.units < 2 or not launches or not period or integer_constant(loop.operands[2]) is None:
            return 0
        steps = _program_steps(trip_count(loop), period, _MOST_PLACED // len(launches))
        variants = {number: [_estimate(launch, rate("program.read"))] for number, launch in enumerate(launches)}
        if steps < _LEAST_STEPS or not any(v.tasks > 1 for (v,) in variants.values()):
            return 0  # there is nothing to share, or the loop is short
        needs = {number: [number - 1] if number else [] for number in variants}
        programs = plan_programs(needs, variants, self.units, rate("program.launch"), rate("program.wait"))
        return steps if len(programs) == 1 and programs[0].time <= rate("program.longest") else 0


def _program_steps(trips: int | None, period: int, limit: int) -> int:
    """The multiple of the period, up to the limit, that starts fewest programs and, for the rest, single steps.

    Of a number of steps that a run brings the rest is any: (d - 1) / 2 in the mean.
    """

    def starts(d: int) -> float:
        return EXPECTED / d + (d - 1) / 2 if trips is None else trips // d + trips % d

    choices = range(period, min(limit, EXPECTED if trips is None else trips) + 1, period)
    return min(choices, key=lambda d: (starts(d), -d), default=0)


def _launches(loop: ir.Operation) -> list[ir.Operation]:
    """The launches, if the loop holds nothing else but views, and their grids are known."""
    found = []
    operations = [inner.operation for inner in loop.regions[0].blocks[0].operations]
    for inner in operations[:-1]:
        if inner.name == "tile.launch":
            found.append(inner)
        elif inner.name not in _QUIET and inner.name != "arith.constant" and not _is_index_arithmetic(inner):
            return []
    return found if all(_grid(launch) is not None for launch in found) else []


def _is_index_arithmetic(op: ir.Operation) -> bool:
    return op.name in ("arith.addi", "arith.subi", "arith.muli", "affine.apply")


def _period(loop: ir.Operation) -> int:
    """Iterations after which all buffers that the loop carries are back in their places; 0 where it carries others."""
    block = loop.regions[0].blocks[0]
    end = block.operations[len(block.operations) - 1]
    carried = list(block.arguments)[1:]
    if not all(value in carried for value in end.operands):
        return 0
    moves = [carried.index(value) for value in end.operands]
    places, period = list(moves), 1
    while places != list(range(len(moves))) and period <= _MOST_PLACED:
        places, period = [places[m] for m in moves], period + 1
    return period if period <= _MOST_PLACED else 0


def _grid(launch: ir.Operation) -> list[int] | None:
    segments = list(ir.DenseI32ArrayAttr(launch.attributes["operandSegmentSizes"]))
    bounds = [integer_constant(value) for value in list(launch.operands)[: segments[0]]]
    return None if None in bounds else [b for b in bounds if b is not None]


def _estimate(launch: ir.Operation, rate: float) -> Variant:
    """Tasks, and seconds of one: all operands are read from the L2 cache, at `rate` bytes per second."""
    tasks = prod(_grid(launch) or [])
    total = 0
    for value in launch.operands:
        if isinstance(value.type, ir.MemRefType) and value.type.has_static_shape:
            total += 4 * prod(value.type.shape)
    return Variant(tasks, total / rate / max(tasks, 1))

# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-plan-shifts`: which loops run as one with the loop in front of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tilewright.devices.device import Device
from tilewright.ir import decisions
from tilewright.ir.constants import trip_count
from tilewright.ir.diagnostics import remark
from tilewright.ir.structure import EXPECTED, blocks
from tilewright.ir.target_info import find_device
from tilewright.mlir import ir
from tilewright.passes import Pass, register

_LEAST_GAIN = 1.1
"""How many times as fast one loop is predicted to be, at least: rows of what lies between loops are not in the law."""

_MOST_LOOPS = 4
"""Loops that become one, at most: n of them, each one iteration behind the last, are n * n steps of code."""


@register
@dataclass(frozen=True)
class PlanShifts(Pass):
    """Decide which loops run as one with the loop in front of them (`tile.shift`, which others lose).

    One behind the other, each loop waits for every step of its own, and what it needs of a whole sequence is one
    product before it. As one loop, an iteration holds a step of each: fewer iterations, whose steps a GPU runs side by
    side between two barriers. They read the weights of all loops, and row by row. The law is
    `plan/cost/recurrence.py`; a remark gives both times. Without a device they run in turn.

    Before:
    ```mlir
    func.func @f(%h0: tensor<8xf32>, %g0: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c9 = arith.constant 9 : index
      %a = scf.for %t = %c0 to %c9 step %c1 iter_args(%h = %h0) -> (tensor<8xf32>) {
        %n = math.tanh %h : tensor<8xf32>
        scf.yield %n : tensor<8xf32>
      }
      %b = scf.for %t = %c0 to %c9 step %c1 iter_args(%g = %g0) -> (tensor<8xf32>) {
        %n = math.exp %g : tensor<8xf32>
        scf.yield %n : tensor<8xf32>
      } {tile.shift = 0 : i64}
      return %a, %b : tensor<8xf32>, tensor<8xf32>
    }
    ```
    After (a core takes the same time for both; so nothing is changed):
    ```mlir
    math.exp
    ...
    }
    return
    ```
    """

    name: ClassVar[str] = "tile-plan-shifts"
    dialects: ClassVar[tuple[str, ...]] = ("scf", "tile")

    def run(self, op: ir.Operation) -> None:
        """Visit groups of loops."""
        for block in blocks(op):
            for group in _groups(block):
                _decide(group, find_device(op))


def _groups(block: ir.Block) -> list[list[ir.Operation]]:
    """Loops of which each but the first may be one with the loop in front."""
    groups: list[list[ir.Operation]] = [[]]
    for view in block.operations:
        loop = view.operation
        if loop.name != "scf.for":
            continue
        if not decisions.SHIFT.on(loop) or len(groups[-1]) == _MOST_LOOPS:
            decisions.SHIFT.drop(loop)
            groups.append([])
        groups[-1].append(loop)
    return [group for group in groups if len(group) > 1]


def _decide(loops: list[ir.Operation], device: Device | None) -> None:
    trips = trip_count(loops[0]) or EXPECTED
    lag = sum(decisions.SHIFT.read(loop) for loop in loops[1:])
    fused, why = False, "the module names no device to predict times of (tile-set-target)"
    if device is not None:
        # Most programs hold no such loops: what decides about them is loaded when some are met.
        from tilewright.plan.cost.recurrence import as_one, in_turn
        from tilewright.plan.recurrences.work import work_of_loops

        works = work_of_loops(loops)
        one, other = in_turn(works, trips, device), as_one(works, trips + lag, device)
        fused = one >= _LEAST_GAIN * other
        why = f"predicted are {one * 1e6:.0f} us in turn, {other * 1e6:.0f} us as one"
    if not fused:
        for loop in loops[1:]:
            decisions.SHIFT.drop(loop)
    order = f"run as one, of {trips + lag} iterations" if fused else "run in turn"
    remark(loops[0], f"{len(loops)} loops of {trips} iterations {order}: {why}")

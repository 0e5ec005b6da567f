# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-plan-loops`: which loops and branches around launches a GPU runs itself."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import ClassVar

from tilewright.devices import facts
from tilewright.ir import decisions
from tilewright.mlir import ir
from tilewright.passes import Pass, device_option, register, remark
from tilewright.plan.graph.device_loops import (
    CONTROL,
    Found,
    Kernels,
    Stretch,
    launches_in,
    team_blocks,
    visit_stretches,
)
from tilewright.plan.graph.host_costs import Limits, expected_trips


@register
@dataclass(frozen=True)
class PlanLoops(Pass):
    """Let a GPU run loops and branches around launches itself, as one kernel.

    The blocks of the kernel meet behind each launch. A launch takes microseconds, a step of a recurrent network hardly
    more; and a branch that numbers on the device decide makes the host wait for it. `tile.blocks`, on all that becomes
    one kernel, says how many blocks run it: as many as a GPU surely holds at a time, and no more than there are tasks
    at a time. Launches beside a loop are part of its kernel, long ones where it holds about as many blocks as they
    would have alone. What would lose more than the host takes for it, and for the loops and branches that are its then,
    stays with the host; a remark says so, with both times, and what else keeps a loop there.

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
    } {tile.blocks = 8 : i64}
    ```
    """

    name: ClassVar[str] = "tile-plan-loops"
    anchor: ClassVar[str | None] = "builtin.module"
    dialects: ClassVar[tuple[str, ...]] = ("tile",)

    units: int = device_option(108, facts.unit_count, "multiprocessors of the GPU")

    def run(self, op: ir.Operation) -> None:
        """Decide about each stretch of the host function that a kernel could be."""
        visit_stretches(op, self.units, _take, _leave, _tell)


def _leave(op: ir.Operation, reason: str) -> None:
    if reason and any(True for _ in launches_in(op)):
        remark(op, f"{_WHAT[op.name]} stays with the host, which launches its kernels one by one: {reason}")


def _take(stretch: Stretch, kernels: Kernels) -> bool:
    """Mark a stretch where that saves time; whether it does."""
    limits = Limits.of(stretch.marked[0])
    if sum(map(_starts, stretch.marked)) < 2 or limits.launch <= limits.barrier:
        return False
    blocks = max(kernels.blocks(stretch.marked), *map(team_blocks, stretch.marked))
    for op in stretch.marked:
        decisions.BLOCKS.set(op, blocks)
    return True


def _tell(found: Found, taken: Collection[ir.Operation]) -> None:
    """Say what is launched beside kernels that run others, and what is in one though it loses time there."""
    for op, reason in found.reasons.items():
        if op.name == "tile.launch":
            remark(op, f"a launch of its own, beside a kernel that runs others: {reason}")
    for op, reason in found.kept.items():
        if op in taken:
            remark(op, f"part of a kernel that runs others: {reason}")


_WHAT = {"scf.for": "a loop", "scf.while": "a loop", "scf.if": "a branch"}


def _starts(op: ir.Operation) -> int:
    """Launches that the host is spared; one that waits for a number of the device counts twice."""
    if op.name == "tile.launch":
        return 1
    inside = sum(_starts(child) for child in _children(op))
    return 2 * inside if op.name == "scf.if" else inside * expected_trips(op)


def _children(op: ir.Operation) -> Iterator[ir.Operation]:
    for region in op.regions:
        for block in region.blocks:
            for child in block.operations:
                if child.operation.name == "tile.launch" or child.operation.name in CONTROL:
                    yield child.operation

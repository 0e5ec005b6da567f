# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-plan-levels`: which loops around launches each task runs by itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from tilewright.ir import decisions
from tilewright.ir.constants import trip_count
from tilewright.mlir import ir
from tilewright.passes import Pass, register


@register
@dataclass(frozen=True)
class PlanLevels(Pass):
    """Let each task run all iterations of a loop around launches, where none needs what others compute.

    It is the lowest level at which control flow lives (Cocktailer, OSDI 2023: a uTask of one thread block): no launch,
    no program step and no barrier behind each iteration, and what a task hands on stays in its own cache. As many
    tasks run at a time as the kernel of one iteration has, so nothing is lost; only a loop known to have one iteration
    stays. `tile-find-task-loops` says where it is legal, `tile.level` can be taken off by hand. Below the level
    of a "task" is that of a "thread": what is handed on stays in registers, where it can (`tile-keep-states`).

    Before:
    ```mlir
    tile.kernel @k(%x: memref<64xf32>) grid(%i) {
      tile.return
    }
    func.func @main(%x: memref<64xf32>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c8 = arith.constant 8 : index
      scf.for %t = %c0 to %c8 step %c1 {
        tile.launch @k grid(%c8) outs(%x : memref<64xf32>)
      } {tile.independent}
      return
    }
    ```
    After:
    ```mlir
    scf.for %t = %c0 to %c8 step %c1 {
      tile.launch @k grid(%c8) outs(%x : memref<64xf32>)
    } {tile.independent, tile.level = "thread"}
    ```
    """

    name: ClassVar[str] = "tile-plan-levels"
    anchor: ClassVar[str | None] = "builtin.module"
    dialects: ClassVar[tuple[str, ...]] = ("tile",)

    def run(self, op: ir.Operation) -> None:
        """Decide about each loop of host functions."""
        for loop in _loops(op):
            if decisions.INDEPENDENT.on(loop) and trip_count(loop) != 1:
                decisions.LEVEL.set(loop, "thread")


def _loops(op: ir.Operation) -> Iterator[ir.Operation]:
    for region in op.regions:
        for block in region.blocks:
            for child in block.operations:
                if child.operation.name == "scf.for":
                    yield child.operation
                if child.operation.name != "tile.kernel":
                    yield from _loops(child.operation)

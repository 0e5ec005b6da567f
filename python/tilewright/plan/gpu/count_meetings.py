# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass tile-count-meetings: how often the blocks of a launch meet, for the report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tilewright.ir import decisions
from tilewright.ir.constants import trip_count
from tilewright.mlir import ir
from tilewright.passes import Pass, register

#: What a block tells the others by: `GridBarrier.cpp` writes one for each meeting.
_ARRIVAL = "atom.release.gpu.global.add"
ATTRIBUTE = "meetings"


@register
@dataclass(frozen=True)
class CountMeetings(Pass):
    """Write how often all blocks of a kernel meet in one launch, as `meetings`.

    It stands behind `tile-inline-launches`, where meetings are there and loops still have bounds. A loop whose trips
    only a run knows counts as one iteration. Nothing follows from the number: the report shows it, beside the launches
    that the meetings stand for.

    Before:
    ```mlir
    gpu.module @device {
      gpu.func @k(%counter: i64, %one: i32) kernel attributes {tile.waits} {
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c8 = arith.constant 8 : index
        scf.for %t = %c0 to %c8 step %c1 {
          llvm.inline_asm has_side_effects asm_dialect = att
            "atom.release.gpu.global.add.u32 R1, [$0], $1;", "l,r" %counter, %one : (i64, i32) -> ()
        }
        gpu.return
      }
    }
    ```
    After:
    ```mlir
    gpu.func @k(%counter: i64, %one: i32) kernel attributes {meetings = 8 : i64, tile.waits} {
    ```
    """

    name: ClassVar[str] = "tile-count-meetings"
    anchor: ClassVar[str | None] = "builtin.module"
    dialects: ClassVar[tuple[str, ...]] = ("tile",)

    def run(self, op: ir.Operation) -> None:
        """Look at kernels whose blocks wait for each other."""
        for device in _in(op, "gpu.module"):
            for function in _in(device, "gpu.func"):
                count = _meetings(function, 1) if decisions.WAITS.on(function) else 0
                if count:
                    function.attributes[ATTRIBUTE] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), count)


def _in(op: ir.Operation, name: str) -> list[ir.Operation]:
    """Those right in its body: kernels without meetings are not walked through."""
    return [view.operation for view in op.regions[0].blocks[0].operations if view.operation.name == name]


def _meetings(op: ir.Operation, times: int) -> int:
    found = 0
    for region in op.regions:
        for block in region.blocks:
            for view in block.operations:
                inner = view.operation
                if inner.name == "llvm.inline_asm" and _ARRIVAL in str(inner.attributes["asm_string"]):
                    found += times
                elif inner.regions:
                    trips = trip_count(inner) if inner.name == "scf.for" else 1
                    found += _meetings(inner, times * (1 if trips is None else trips))
    return found

# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass tile-count-meetings: how often the blocks of a launch meet, for the report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tilewright.ir import decisions
from tilewright.ir.constants import trip_count
from tilewright.ir.generics import nested
from tilewright.mlir import ir
from tilewright.passes import Pass, register

#: What a block tells the others by: `GridBarrier.cpp` writes one for each meeting.
_ARRIVAL = "atom.release.gpu.global.add"
ATTRIBUTE = "meetings"


@register
@dataclass(frozen=True)
class CountMeetings(Pass):
    """Write how often blocks of a kernel meet behind each other in one launch, as `meetings`.

    Teams meet beside each other: between two meetings of all blocks, those of the team with the most count. It stands
    behind `tile-inline-launches`, where meetings are there and loops still have bounds. A loop whose trips only a run
    knows counts as one iteration. Nothing follows from the number: the report shows it, beside the launches that the
    meetings stand for.

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
                count = _count(function).longest() if decisions.WAITS.on(function) else 0
                if count:
                    function.attributes[ATTRIBUTE] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), count)


def _in(op: ir.Operation, name: str) -> list[ir.Operation]:
    """Those right in its body: kernels without meetings are not walked through."""
    return [inner for inner in nested(op) if inner.name == name]


class _Critical:
    """Meetings behind each other, of all blocks (`whole`) and of each team since; teams by the address they count at.

    A team's blocks come to its own meetings while others come to theirs; all blocks meet behind the team with the most.
    """

    def __init__(self) -> None:
        self.whole = 0
        self.teams: dict[ir.Value, int] = {}

    def longest(self) -> int:
        return self.whole + max(self.teams.values(), default=0)

    def add(self, inner: _Critical, times: int) -> None:
        """Go through what has been counted, that many times."""
        if inner.whole:
            self.whole, self.teams = self.longest() + times * inner.longest(), {}
            return
        for team, count in inner.teams.items():
            self.teams[team] = self.teams.get(team, 0) + times * count


def _count(op: ir.Operation) -> _Critical:
    found = _Critical()
    for inner in nested(op):
        if inner.name == "llvm.inline_asm" and _ARRIVAL in str(inner.attributes["asm_string"]):
            found.add(_meeting(inner.operands[0]), 1)
        elif inner.regions:
            trips = trip_count(inner) if inner.name == "scf.for" else 1
            found.add(_count(inner), 1 if trips is None else trips)
    return found


def _meeting(counter: ir.Value) -> _Critical:
    """One, of all blocks, or of a team: the counters of these lie behind that of all."""
    one, owner = _Critical(), counter.owner
    if not isinstance(owner, ir.Block) and owner.name == "llvm.getelementptr":
        one.teams[counter] = 1
    else:
        one.whole = 1
    return one

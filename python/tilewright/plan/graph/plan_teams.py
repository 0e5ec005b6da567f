# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-plan-teams`: which blocks of a kernel that runs loops of launches meet without the others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from tilewright.devices import facts
from tilewright.ir import decisions
from tilewright.mlir import ir
from tilewright.passes import Pass, device_option, register, remark
from tilewright.plan.graph.chains import (
    NUMBERS,
    Chain,
    Clock,
    Touched,
    find_chains,
    may_be_left_out,
    share,
    touched_by,
)
from tilewright.plan.graph.device_loops import CONTROL, Kernels, Stretch, launches_in, visit_stretches
from tilewright.plan.graph.host_costs import rate_of_gpu

_LEAST_GAIN = 1.1
"""How many times as fast teams are predicted to be, at least: what tasks take beside each other is an estimate."""

_MOST_STARTS = 16
"""Launches of one block from which chains are looked for, at most; behind them, from loops and branches only."""

_MARKED = CONTROL | {"tile.launch", "memref.copy"}


@register
@dataclass(frozen=True)
class PlanTeams(Pass):
    """Divide the blocks of a kernel that will run loops of launches, where chains are independent.

    Loops of unequal lengths, branches, and chains of launches in the body of a loop may need nothing of each other.
    All blocks would run them in turn, and meet behind each launch. As teams (`tile.team`: the first block, how many),
    each runs its own chain, and its blocks meet with a counter of their own: sub-grid barriers (Cocktailer, OSDI
    2023). A team has blocks in proportion to the predicted work of its chain, and fewer than the grid: where that is
    predicted to be slower there are none. The law adds the rounds of tasks that blocks take and the meetings; a remark
    gives both times. Buffers of teams share no memory (`tile-plan-arena`). `tile-inline-launches` finds by itself who
    must meet, so that any `tile.team` is right.

    Before:
    ```mlir
    tile.kernel @k(%x: memref<4096xf32>) grid(%i) {
      tile.return
    }
    func.func @main(%x: memref<4096xf32>, %y: memref<4096xf32>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c5 = arith.constant 5 : index
      %c8 = arith.constant 8 : index
      scf.for %t = %c0 to %c8 step %c1 {
        tile.launch @k grid(%c8) outs(%x : memref<4096xf32>)
      }
      scf.for %t = %c0 to %c5 step %c1 {
        tile.launch @k grid(%c8) outs(%y : memref<4096xf32>)
      }
      return
    }
    ```
    After:
    ```mlir
    scf.for %t = %c0 to %c8 step %c1 {
      tile.launch @k grid(%c8) outs(%x : memref<4096xf32>)
    } {tile.team = array<i64: 0, 8>}
    scf.for %t = %c0 to %c5 step %c1 {
      tile.launch @k grid(%c8) outs(%y : memref<4096xf32>)
    } {tile.team = array<i64: 8, 8>}
    ```
    """

    name: ClassVar[str] = "tile-plan-teams"
    anchor: ClassVar[str | None] = "builtin.module"
    dialects: ClassVar[tuple[str, ...]] = ("tile",)

    units: int = device_option(108, facts.unit_count, "multiprocessors of the GPU")

    def run(self, op: ir.Operation) -> None:
        """Look at what each kernel would be made of."""
        visit_stretches(op, self.units, _divide)


def _divide(stretch: Stretch, kernels: Kernels) -> bool:
    _Planner(stretch.marked, kernels).run()
    return True


class _Planner:
    """Finds teams of one kernel to be.

    Args:
        ops: what becomes the kernel.
        kernels: of the module.
    """

    def __init__(self, ops: list[ir.Operation], kernels: Kernels) -> None:
        self._ops = ops
        self._clock = Clock(kernels.rounds, rate_of_gpu(ops[0], "grid.barrier"))
        launches = [launch for op in ops for launch in launches_in(op)]
        self._held = kernels.held(launches) if launches else 0
        self._blocks = kernels.blocks(ops) if launches else 0

    def run(self) -> None:
        """Decide about the kernel's body and, where it has no teams, about bodies in it."""
        if self._held > 1:
            self._visit_all(self._ops)

    def _visit_all(self, ops: Sequence[ir.Operation]) -> None:
        for run in _without_reads(ops):
            self._visit(run)
        _tell_of_numbers(ops)

    def _visit(self, ops: Sequence[ir.Operation]) -> None:
        start = 0
        while start < len(ops):
            count = self._divide(ops, start)
            if count == 0 and ops[start].name in CONTROL:
                for region in ops[start].regions:
                    for block in region.blocks:
                        self._visit_all([op.operation for op in block.operations])
            start += max(count, 1)

    def _divide(self, ops: Sequence[ir.Operation], start: int) -> int:
        """Teams from one operation on, if they pay; how many operations are theirs."""
        if ops[start].name not in CONTROL and start >= _MOST_STARTS:
            return 0
        chains, count = find_chains(ops[start:])
        if len(chains) < 2 or len(chains) > self._held:
            return 0
        numbers = self._share(chains)
        alone = self._clock.seconds(ops[start : start + count], self._blocks)
        beside = max(self._clock.seconds(chain.ops, n) for chain, n in zip(chains, numbers, strict=True))
        if alone < _LEAST_GAIN * beside:
            return 0
        first = 0
        for chain, number in zip(chains, numbers, strict=True):
            for op in chain.ops:
                decisions.TEAM.set(op, [first, number])
            first += number
        remark(
            ops[start],
            f"{len(chains)} chains of launches run beside each other, by teams of {', '.join(map(str, numbers))} "
            f"blocks: predicted are {alone * 1e6:.0f} us in turn, {beside * 1e6:.0f} us as teams",
        )
        return count

    def _share(self, chains: list[Chain]) -> list[int]:
        work = [self._clock.seconds(chain.ops, 1) for chain in chains]
        return share(work, self._held, [self._clock.widest(chain.ops) for chain in chains])


def _without_reads(ops: Iterable[ir.Operation]) -> Iterator[list[ir.Operation]]:
    """Launches, copies, loops and branches between which no number is read or written: all blocks do that."""
    found: list[ir.Operation] = []
    for op in ops:
        if op.name in _MARKED:
            found.append(op)
        elif op.name in NUMBERS:
            yield found
            found = []
    yield found


def _tell_of_numbers(ops: Sequence[ir.Operation]) -> None:
    """Say which loops and branches of a block would run beside the work in front, but for numbers in memory."""
    before: ir.Operation | None = None
    read: ir.Operation | None = None
    for op in ops:
        if op.name in NUMBERS:
            read = op
        elif op.name in _MARKED:
            if before is not None and CONTROL & {op.name, before.name}:
                _tell_of_number(before, read, op)
            before, read = op, None


def _tell_of_number(before: ir.Operation, read: ir.Operation | None, op: ir.Operation) -> None:
    between = Touched() if read is None else touched_by(read)
    if decisions.TEAM.on(op) or any(now.needs(touched_by(before)) for now in (touched_by(op), between)):
        return
    if read is not None:
        remark(op, "all blocks run it in turn, not a team: a number in memory is read or written in front of it")
    elif not (may_be_left_out(op) and may_be_left_out(before)):
        remark(op, "all blocks run it in turn, not a team: numbers in memory decide what a loop or a branch gives")

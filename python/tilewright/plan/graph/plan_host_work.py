# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-plan-host-work`: which small launches the host does itself, beside a GPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tilewright.ir import decisions
from tilewright.ir.units import kernel_of, symbol_of
from tilewright.mlir import ir
from tilewright.passes import Pass, register, remark
from tilewright.plan.graph.host_costs import rate_of_gpu
from tilewright.plan.graph.host_walk import Rates, Run, Step, steps_of, walk

_MOST_LAUNCHES = 64
"""Launches of one host function that are looked at: each is tried on either side."""


@register
@dataclass(frozen=True)
class PlanHostWork(Pass):
    """Let the host do small launches itself, where it needs their numbers anyway.

    Where a loop or a branch stays with the host, it reads the number that decides, and waits for the device. What
    computes it of a few others is a launch of its own, as are counters and sizes. `tile.level = "host"` makes
    operations of the host of such a launch (Cocktailer, OSDI 2023: operations of at most 64 elements go to the CPU).
    The law adds launches, times that the host waits for numbers or gives some, and its own operations, over loops; what
    only the host touches never moves. Launches that share buffers are tried together, then each alone. A function
    whose host reads nothing stays as it is: a graph can record it.

    Before:
    ```mlir
    tile.kernel @next(%n: memref<i64>, %m: memref<i64>) {
      tile.return
    }
    tile.kernel @ends(%n: memref<i64>, %go: memref<i1>) {
      tile.return
    }
    tile.kernel @work(%x: memref<4096xf32>) grid(%i) {
      tile.return
    }
    func.func @main(%x: memref<4096xf32>, %n: memref<i64>, %go: memref<i1>, %tasks: index) {
      scf.while : () -> () {
        tile.launch @ends ins(%n : memref<i64>) outs(%go : memref<i1>) {tile.host_operations = 3 : i64}
        %more = memref.load %go[] : memref<i1>
        scf.condition(%more)
      } do {
        tile.launch @work grid(%tasks) outs(%x : memref<4096xf32>)
        tile.launch @next ins(%n : memref<i64>) outs(%n : memref<i64>) {tile.host_operations = 3 : i64}
        scf.yield
      }
      return
    }
    ```
    After:
    ```mlir
    tile.launch @ends ins(%n : memref<i64>) outs(%go : memref<i1>) {tile.host_operations = 3 : i64, tile.level = "host"}
    ...
    tile.launch @work grid(%tasks) outs(%x : memref<4096xf32>)
    tile.launch @next ins(%n : memref<i64>) outs(%n : memref<i64>) {tile.host_operations = 3 : i64, tile.level = "host"}
    ```
    """

    name: ClassVar[str] = "tile-plan-host-work"
    anchor: ClassVar[str | None] = "builtin.module"
    dialects: ClassVar[tuple[str, ...]] = ("tile",)

    def run(self, op: ir.Operation) -> None:
        """Decide for each host function."""
        top = [child.operation for child in op.regions[0].blocks[0].operations]
        strange = {symbol_of(kernel) for kernel in top if kernel.name == "tile.kernel" and not _is_known(kernel)}
        for function in top:
            if function.name == "func.func" and len(function.regions[0].blocks):
                steps = steps_of(function.regions[0].blocks[0])
                if any(step.kind == "read" for step in walk(steps)):
                    _Planner(function, steps, strange).run()


def _is_known(op: ir.Operation) -> bool:
    """Whether a host program has all arithmetic of a kernel."""
    for region in op.regions:
        for block in region.blocks:
            for inner in (child.operation for child in block.operations):
                if inner.name.startswith(("arith.", "math.")) and not _has(inner.name):
                    return False
                if not _is_known(inner):
                    return False
    return True


def _has(name: str) -> bool:
    from tilewright.core.arithmetic import COMPARISONS, CONVERSIONS, FUNCTIONS  # needs NumPy

    return name == "arith.constant" or any(name in table for table in (FUNCTIONS, CONVERSIONS, COMPARISONS))


class _Planner:
    """Decides for one host function.

    Args:
        function: of the host.
        steps: what it does.
        strange: kernels with arithmetic that no host program has.
    """

    def __init__(self, function: ir.Operation, steps: list[Step], strange: set[str]) -> None:
        self._steps = steps
        names = ("launch", "host.read", "host.write", "host.operation")
        self._rates = Rates(*(rate_of_gpu(function, name) for name in names))
        found = [step for step in walk(steps) if step.op is not None and decisions.HOST_OPERATIONS.on(step.op)]
        found = [step for step in found if step.op is not None and kernel_of(step.op) not in strange]
        self._found = found[:_MOST_LAUNCHES]
        if len(found) > _MOST_LAUNCHES:
            left = found[_MOST_LAUNCHES].op
            assert left is not None
            remark(left, f"small launches from here on stay with the device: {_MOST_LAUNCHES} are looked at")

    def run(self) -> None:
        """Mark what the host does."""
        chosen = self._choose()
        if not chosen:
            return
        before, after = (self._seconds(some) for some in (frozenset(), chosen))
        ops = [step.op for step in self._found if step in chosen and step.op is not None]
        for op in ops:
            decisions.LEVEL.set(op, "host")
        remark(
            ops[0],
            f"{len(chosen)} small launches are the host's work, beginning with this one: predicted are "
            f"{before * 1e6:.0f} us with and {after * 1e6:.0f} us without them for launches, waits and numbers",
        )

    def _seconds(self, chosen: frozenset[Step]) -> float:
        return Run(self._rates, chosen).seconds(self._steps)

    def _choose(self) -> frozenset[Step]:
        """Groups that share buffers first: one of them alone may only move its numbers to and fro."""
        chosen, best = frozenset[Step](), self._seconds(frozenset())
        for group in [*_groups(self._found), *(frozenset([step]) for step in self._found)]:
            other = chosen ^ group if len(group) == 1 else chosen | group
            seconds = self._seconds(other)
            if seconds < best:
                chosen, best = other, seconds
        return chosen


def _groups(steps: list[Step]) -> list[frozenset[Step]]:
    """Launches that touch buffers of one another, by way of others too."""
    groups: list[tuple[set[ir.Value], list[Step]]] = []
    for step in steps:
        touched, members = set(step.touched), [step]
        apart = []
        for values, others in groups:
            if values & touched:
                touched |= values
                members = [*others, *members]
            else:
                apart.append((values, others))
        groups = [*apart, (touched, members)]
    return [frozenset(members) for _, members in groups]

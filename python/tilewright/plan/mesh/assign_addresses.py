# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Give every buffer of a program its address: buffers that are never live together share memory.

The largest first, each at the lowest place that is free whenever it is live (as TVM's and IREE's planners do). Where
the high-water mark stays the same, buffers that one computation streams side by side begin in different banks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection
from dataclasses import replace

from tilewright.sim.coremesh.checks.lifetimes import buffer_bytes, live_buffers, points_of
from tilewright.sim.coremesh.checks.memory import core_classes, memory_error
from tilewright.sim.coremesh.machine import Machine
from tilewright.sim.coremesh.program import Compute, Program

#: Bytes that every address is a multiple of.
_ALIGNED = 4


def assign_addresses(program: Program, machine: Machine, keep: Collection[str] = ()) -> Program:
    """The program with addresses; those that its buffers had are forgotten.

    Args:
        keep: buffers whose memory no other one gets, so that what lies there before does so afterwards.

    Raises:
        UserError: the buffers do not fit; it names core, demand, capacity, and each tensor with its bytes.
    """
    layout = _Layout(program, machine, keep)
    orders: tuple[Callable[[str], tuple[int, ...]], ...] = (
        lambda name: (-layout.sizes[name], layout.first[name]),
        lambda name: (layout.first[name], -layout.sizes[name]),
        lambda name: (-layout.sizes[name] * layout.points[name], layout.first[name]),
    )
    plans = [layout.place(sorted(layout.sizes, key=order), None) for order in orders]
    best = min((plan for plan in plans if plan is not None), key=layout.end, default=None)
    assert best is not None, "without a bound every buffer finds a place"
    end = layout.end(best)
    if end > machine.sram_bytes:
        raise memory_error(program, machine, core_classes(program)[0], end - machine.mesh.code_bytes)
    for order in orders:
        spread = layout.place(sorted(layout.sizes, key=order), end)
        if spread is not None and layout.clashes(spread) < layout.clashes(best):
            best = spread
    return replace(program, buffers=tuple(replace(one, address=best[one.name]) for one in program.buffers))


class _Layout:
    def __init__(self, program: Program, machine: Machine, keep: Collection[str]) -> None:
        self.mesh = machine.mesh
        self.sizes = {buffer.name: buffer_bytes(buffer) for buffer in program.buffers}
        self.first = dict.fromkeys(self.sizes, 0)
        self.points = dict.fromkeys(self.sizes, 0)
        self.apart: dict[str, set[str]] = defaultdict(set)
        self.beside: dict[str, set[str]] = defaultdict(set)
        for number, live in reversed(list(enumerate(live_buffers(program)))):
            for name in live:
                self.first[name] = number
                self.points[name] += 1
                self.apart[name] |= live - {name}
        for name in keep:
            self.apart[name] = {*self.sizes} - {name}
            for other in self.apart[name]:
                self.apart[other].add(name)
        for point in points_of(program):
            if isinstance(point.instruction, Compute):
                names = {slot.buffer for slot in (*point.instruction.reads, *point.instruction.writes)}
                for name in names:
                    self.beside[name] |= names - {name}

    def end(self, plan: dict[str, int]) -> int:
        """The high-water mark: one more than the last byte."""
        return max((plan[name] + size for name, size in self.sizes.items()), default=self.mesh.code_bytes)

    def bank(self, address: int) -> int:
        return address // self.mesh.bank_bytes % self.mesh.sram_banks

    def clashes(self, plan: dict[str, int]) -> int:
        """Pairs of buffers that one computation streams and that begin in the same bank."""
        pairs = [(one, other) for one, names in self.beside.items() for other in names if one < other]
        return sum(self.bank(plan[one]) == self.bank(plan[other]) for one, other in pairs)

    def place(self, order: list[str], bound: int | None) -> dict[str, int] | None:
        """Addresses in this order; with a bound, in different banks if that is free. None: beyond the bound."""
        plan: dict[str, int] = {}
        for name in order:
            address = self._address(name, plan, bound)
            if address is None:
                return None
            plan[name] = address
        return plan

    def _address(self, name: str, plan: dict[str, int], bound: int | None) -> int | None:
        size = self.sizes[name]
        taken = sorted((plan[other], plan[other] + self.sizes[other]) for other in self.apart[name] if other in plan)
        starts = {-(-start // _ALIGNED) * _ALIGNED for start in (self.mesh.code_bytes, *(end for _, end in taken))}
        if bound is not None:
            starts = {start + bank * self.mesh.bank_bytes for start in starts for bank in range(self.mesh.sram_banks)}
        free = [
            start
            for start in starts
            if all(start >= end or start + size <= begin for begin, end in taken)
            if bound is None or start + size <= bound
        ]
        used = {self.bank(plan[other]) for other in self.beside[name] if other in plan} if bound is not None else set()
        return min(free, key=lambda start: (self.bank(start) in used, start), default=None)

# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Packing tasks of several kernels on execution units at compile time: Rammer's policy (OSDI 2020, section 4).

Kernels are bags of equal tasks. Those whose inputs are ready form a *wave*; a wave joins the program that grows, or
starts a new one, whichever is estimated to be faster. Tasks go to the unit that is free first. Where a wave has more
tasks than units, a kernel that costs the least in total beats the one that is fastest alone.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil


@dataclass(frozen=True)
class Variant:
    """One implementation of a kernel: its tasks, and the time of one of them alone on a unit."""

    tasks: int
    time: float

    def alone(self, units: int) -> float:
        """Time of the kernel with all units to itself."""
        return ceil(self.tasks / units) * self.time


@dataclass
class Packing:
    """Which unit runs how many tasks of which kernel, in which order, and when each unit is done."""

    units: int
    wait: float = 0.0
    ends: list[float] = field(default_factory=list)
    placed: dict[Hashable, dict[int, int]] = field(default_factory=dict)
    done: dict[Hashable, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """All units start at once."""
        self.ends = self.ends or [0.0] * self.units

    @property
    def time(self) -> float:
        """When the last unit is done."""
        return max(self.ends)

    def copy(self) -> Packing:
        """A packing that can grow apart from this one."""
        placed = {node: dict(where) for node, where in self.placed.items()}
        return Packing(self.units, self.wait, list(self.ends), placed, dict(self.done))

    def add(self, node: Hashable, variant: Variant, needs: Sequence[Hashable]) -> None:
        """Give each task to the unit that ends first; tasks wait for those kernels of the packing that they need."""
        inside = [self.done[need] for need in needs if need in self.done]
        ready = max(inside, default=0.0) + (self.wait if inside else 0.0)
        where = self.placed.setdefault(node, {})
        for _ in range(variant.tasks):
            unit = min(range(self.units), key=lambda u: (max(self.ends[u], ready), u))
            self.ends[unit] = max(self.ends[unit], ready) + variant.time
            where[unit] = where.get(unit, 0) + 1
        self.done[node] = max(self.ends[unit] for unit in where)


def waves(needs: Mapping[Hashable, Sequence[Hashable]]) -> list[list[Hashable]]:
    """Nodes by the length of the longest chain before them, in the mapping's order.

    Raises:
        ValueError: nodes need each other in a cycle.
    """
    left = {node: {need for need in before if need in needs} for node, before in needs.items()}
    found: list[list[Hashable]] = []
    while left:
        wave = [node for node, before in left.items() if not before]
        if not wave:
            raise ValueError(f"kernels need each other in a cycle: {sorted(map(str, left))}")
        found.append(wave)
        gone = set(wave)
        left = {node: before - gone for node, before in left.items() if node not in gone}
    return found


def fastest(variants: Sequence[Variant], units: int) -> Variant:
    """The kernel that is done first with all units to itself."""
    return min(variants, key=lambda v: v.alone(units))


def most_efficient(variants: Sequence[Variant]) -> Variant:
    """The kernel that occupies units least in total."""
    return min(variants, key=lambda v: v.time * v.tasks)


def pack_wave(
    wave: Sequence[Hashable],
    needs: Mapping[Hashable, Sequence[Hashable]],
    variants: Mapping[Hashable, Sequence[Variant]],
    packing: Packing,
) -> Packing:
    """A copy of `packing` with a wave more, of fast kernels or of efficient ones, whichever ends earlier."""

    def packed(choice: Mapping[Hashable, Variant]) -> Packing:
        grown = packing.copy()
        for node in wave:
            grown.add(node, choice[node], needs[node])
        return grown

    fast = {node: fastest(variants[node], packing.units) for node in wave}
    first = packed(fast)
    if sum(v.tasks for v in fast.values()) < packing.units:
        return first
    second = packed({node: most_efficient(variants[node]) for node in wave})
    return second if second.time < first.time else first


def plan_programs(
    needs: Mapping[Hashable, Sequence[Hashable]],
    variants: Mapping[Hashable, Sequence[Variant]],
    units: int,
    launch: float,
    wait: float,
) -> list[Packing]:
    """The programs, each launched once, that run all kernels.

    Args:
        needs: for each kernel, those whose results it reads.
        variants: for each kernel, its implementations.
        units: execution units.
        launch: time that it takes to start a program and to see its end.
        wait: time between a signal and the end of a wait for it.
    """
    plans: list[Packing] = []
    current: Packing | None = None
    for wave in waves(needs):
        fresh = pack_wave(wave, needs, variants, Packing(units, wait))
        if current is None:
            current = fresh
            continue
        grown = pack_wave(wave, needs, variants, current)
        if grown.time <= current.time + launch + fresh.time:
            current = grown
        else:
            plans.append(current)
            current = fresh
    return plans if current is None else [*plans, current]

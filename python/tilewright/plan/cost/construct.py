# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Construction of tiles, "scale up then scale out" (Roller, section 3.3 and its algorithm 1).

From the unit tile of ones a tile grows, along the axis with the best reuse score first, by aligned sizes, until
computing takes longer than loading; then it is the base of the next level. A program holds one tile per level. The
last tile is replicated over the cores; where that gives fewer tiles than cores, the axes with the least reuse shrink.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from tilewright.plan.cost.expression import Expression
from tilewright.plan.cost.rtile import RTile
from tilewright.plan.cost.rules import (
    Machine,
    bank_free,
    fills_units,
    fits_registers,
    hides_latency,
    next_aligned,
    padding_of,
    sub_tiles,
    whole_transactions,
)

#: Padding that rule 4 accepts is raised in these steps until there are enough programs, up to the cap.
EPSILON_STEP, EPSILON_CAP = 0.2, 1.0
_VISITS = 2000


def reuse_score(tile: RTile, loop: int, size: int, transaction: int = 1) -> float:
    """Traffic saved per byte of capacity when a loop's size grows: (Q(T) - Q(T')) / (F(T') - F(T)), section 3.3."""
    larger = tile.with_size(loop, size)
    saved = tile.traffic(transaction) - larger.traffic(transaction)
    return saved / max(larger.footprint - tile.footprint, 1)


@dataclass(frozen=True)
class Program:
    """A tile per level, innermost first: unit (registers or a thread), then the core's."""

    unit: RTile
    core: RTile

    @property
    def grid(self) -> int:
        """Tasks."""
        return self.core.grid


def admissible(program: Program, machine: Machine) -> bool:
    """Whether all alignment rules hold for both tiles (rule 4 aside, which is a matter of degree)."""
    unit, core = program.unit, program.core
    if any(s % u and s != e for s, u, e in zip(core.shape, unit.shape, core.expression.extents, strict=True)):
        return False
    if not (fits_registers(unit, machine) and hides_latency(unit, machine) and bank_free(unit, machine)):
        return False
    if not fills_units(core, unit, machine) or not _fits_core(core, machine):
        return False
    return whole_transactions(core, machine.transaction)


def construct(expression: Expression, machine: Machine, keep: int = 10) -> list[Program]:
    """Up to `keep` programs (more where the last round finds several), in the order of discovery."""
    found: dict[tuple, Program] = {}
    epsilon = 0.0
    while len(found) < keep and epsilon <= EPSILON_CAP + 1e-9:
        search = _Search(expression, machine, keep, epsilon, found)
        search.units(RTile(expression, (1,) * expression.rank))
        if not found and search.border:
            search.scale_up(search.border[-1])
        epsilon += EPSILON_STEP
    return [scale_out(program, machine) for program in found.values()]


def _fits_core(tile: RTile, machine: Machine) -> bool:
    level = machine.device.level(machine.core)
    if machine.gpu:
        return tile.input_footprint <= level.bytes  # outputs stay in registers
    return tile.footprint <= level.bytes // 2  # half a cache: what streams by needs room as well


def compute_seconds(tile: RTile, machine: Machine) -> float:
    """Time of a tile at the peak of one core."""
    return tile.flops / machine.device.units.peak_of("f32")


def load_seconds(tile: RTile, machine: Machine) -> float:
    """Time to load a tile from memory when all cores load."""
    return tile.load(machine.transaction) / machine.core_bandwidth


@dataclass
class _Search:
    """Depth-first growth at one epsilon."""

    expression: Expression
    machine: Machine
    keep: int
    epsilon: float
    found: dict[tuple, Program]
    border: list[RTile] = field(default_factory=list)
    seen: set[tuple] = field(default_factory=set)

    def units(self, tile: RTile) -> None:
        """Grow the unit tile; each that is aligned and fills the pipes is a base for the core's level."""
        for unit in self._grow_units(tile):
            self.scale_up(unit)
            if len(self.found) >= self.keep:
                return

    def _grow_units(self, tile: RTile) -> Iterator[RTile]:
        key = ("unit", tile.shape)
        if key in self.seen or len(self.seen) > _VISITS or not fits_registers(tile, self.machine):
            return
        self.seen.add(key)
        for loop, size in self._axes(tile, None):
            yield from self._grow_units(tile.with_size(loop, size))
        if hides_latency(tile, self.machine) and bank_free(tile, self.machine):
            self.border.append(tile)
            if self._unit_saturated(tile):
                yield tile

    def _unit_saturated(self, tile: RTile) -> bool:
        """No aligned growth is left that fits: what the paper's code takes for the peak at the register level."""
        larger = (tile.with_size(loop, size) for loop, size in self._axes(tile, None))
        return self.machine.gpu or not any(fits_registers(t, self.machine) for t in larger)

    def scale_up(self, unit: RTile) -> None:
        """Grow the core's tile from a unit tile until computing it takes longer than loading it."""
        shape = list(unit.shape)
        for loop in sorted(self.expression.reductions):
            shape[loop] = min(self._first_step(loop), self.expression.extents[loop])
        self._grow_core(replace(unit, shape=tuple(shape)), unit)

    def _first_step(self, loop: int) -> int:
        size = next_aligned(RTile(self.expression, (1,) * self.expression.rank), loop, self.machine, None)
        return max(size or 1, self.machine.transaction // 4)

    def _grow_core(self, tile: RTile, unit: RTile) -> None:
        key = (unit.shape, tile.shape)
        if key in self.seen or len(self.found) >= self.keep or len(self.seen) > _VISITS:
            return
        self.seen.add(key)
        tile = replace(tile, padding=padding_of(tile, unit, self.machine))
        if not self._fits(tile, unit):
            return
        program = Program(unit, tile)
        if self._saturated(tile) and admissible(program, self.machine):
            self.found[key] = program
            return
        for loop, size in self._axes(tile, unit):
            self._grow_core(tile.with_size(loop, size), unit)

    def _fits(self, tile: RTile, unit: RTile) -> bool:
        if self.machine.most and sub_tiles(tile, unit) > self.machine.most:
            return False
        return _fits_core(tile, self.machine)

    def _saturated(self, tile: RTile) -> bool:
        return compute_seconds(tile, self.machine) > load_seconds(tile, self.machine) or all(
            s >= e for s, e in zip(tile.shape, self.expression.extents, strict=True)
        )

    def _axes(self, tile: RTile, base: RTile | None) -> list[tuple[int, int]]:
        """Axes that can grow with their next aligned size, best reuse first."""
        grown = []
        for loop in range(self.expression.rank):
            if base is None and loop in self.expression.reductions:
                continue
            size = next_aligned(tile, loop, self.machine, base, self.epsilon)
            if size is not None:
                grown.append((reuse_score(tile, loop, size, self.machine.transaction), -loop, size))
        return [(-loop, size) for _, loop, size in sorted(grown, reverse=True)]


def scale_out(program: Program, machine: Machine) -> Program:
    """Replicate the core's tile over the cores; while there are fewer tiles than cores, shrink it (section 3.3).

    The axis with the lowest reuse score is halved first, in multiples of the unit tile; reduced axes stay in a core.
    """
    core, unit = program.core, program.unit
    while core.grid < machine.device.units.count:
        smaller = [s for d in core.expression.parallel if (s := _halved(core, unit, d)) is not None]
        if not smaller:
            break
        core = min(smaller, key=lambda item: (item[0], item[1]))[2]
    return Program(unit, core)


def _halved(tile: RTile, unit: RTile, loop: int) -> tuple[float, int, RTile] | None:
    size, step = tile.shape[loop], unit.shape[loop]
    half = -(-size // (2 * step)) * step
    if half >= size:
        return None
    smaller = tile.with_size(loop, half)
    return reuse_score(smaller, loop, size), loop, smaller

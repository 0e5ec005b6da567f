# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A sweep over machines: what a model costs on grids that differ in cores, memory, links and what lies behind them.

Cycles are those of tier T1 of the programs of each part, one after the other; they depend on grid and links. Memory
decides whether a machine runs the model at all, and what of its weights and cache does not stay in it: that streams in
through the edge in each pass, beside the programs, so that the slower of both counts. A program works on copies of its
tiles; weights and cache lie beside them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tilewright.core.errors import UserError
from tilewright.plan.mesh.studies.pareto import front
from tilewright.plan.mesh.studies.workload import Part, Workload
from tilewright.sim.coremesh.checks.lifetimes import buffer_bytes, live_buffers
from tilewright.sim.coremesh.machine import Machine
from tilewright.sim.coremesh.program import Program
from tilewright.sim.coremesh.timing import Sync, time_program
from tilewright.sim.coremesh.timing.result import Split

#: What a user may weigh against each other; all are better where they are less.
AXES = {
    "time": "seconds of one pass",
    "cores": "cores",
    "sram": "bytes of memory of all cores",
    "links": "bytes per cycle of all links, each direction",
    "offchip": "bytes per cycle through the edge",
    "area": "mm2 of the cores, by the prices",
}


@dataclass(frozen=True)
class Prices:
    """Square micrometres, for the axis ``area``.

    The defaults are those of WSE-2: a core of 38,000, of which 48 KB of memory take half (Lie, "Cerebras Architecture
    Deep Dive", IEEE Micro 2023); the links are inside the other half, and a price of their width is not published.

    Attributes:
        core: of a core without memory.
        kb: of 1024 bytes of memory.
        link: of one byte per cycle of one core's links.
    """

    core: float = 19_000.0
    kb: float = 19_000.0 / 48
    link: float = 0.0


@dataclass(frozen=True)
class Variant:
    """What differs between machines.

    Attributes:
        sram: bytes of a core.
        link, offchip: bytes per cycle of one link, and of the whole edge (0: nothing lies behind it).
    """

    height: int
    width: int
    sram: int
    link: float
    offchip: float

    def __str__(self) -> str:
        """As a table has it."""
        return (
            f"{self.height}x{self.width} cores, {self.sram / 1024:g} KB, {self.link:g} B/link, {self.offchip:g} B/edge"
        )


@dataclass(frozen=True)
class Point:
    """A machine and what the model costs there.

    Attributes:
        cycles: of a pass: the slower of the programs and of what streams in.
        split: of the programs.
        streamed: bytes that come in through the edge in each pass.
        problem: why it does not run there; empty: it does. Then nothing else is known.
        costs: by axis of `AXES`.
    """

    variant: Variant
    cycles: float = 0.0
    split: Split = field(default_factory=lambda: Split(0.0, 0.0, 0.0, 0.0))
    streamed: int = 0
    problem: str = ""
    costs: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Exploration:
    """A sweep.

    Attributes:
        points: of all variants, in the order in which they were named.
        axes: that are weighed.
        front: those that run, of which none is at least as good in all axes and better in one, fastest first; of equal
            ones those that need no more of anything else.
        machine: what the variants began with; sync: of messages.
    """

    workload: Workload
    machine: Machine
    sync: str
    axes: tuple[str, ...]
    prices: Prices
    points: tuple[Point, ...]
    front: tuple[Point, ...]
    extrapolated: bool


def explore(
    workload: Workload,
    machine: Machine,
    *,
    grids: Sequence[tuple[int, int]] = (),
    srams: Sequence[int] = (),
    links: Sequence[float] = (),
    offchips: Sequence[float] = (),
    axes: Sequence[str] = ("time", "area", "links", "offchip"),
    prices: Prices | None = None,
    sync: Sync = "dataflow",
) -> Exploration:
    """Time a workload on all combinations of what is named; what is left empty is as the machine has it.

    Args:
        machine: what the variants begin with: preset, clock, latencies, overheads.
        grids: (height, width) pairs.
        srams: bytes of a core.
        links, offchips: bytes per cycle of a link, of the edge.
        axes: of `AXES`, two at least.
        prices: of ``area``.

    Raises:
        UserError: an axis is unknown, a size makes no sense, or the machine's links have no one width.
    """
    mesh = machine.mesh
    _check_axes(axes)
    if links and mesh.packet_rates:
        raise UserError(
            f"the rates of machine '{machine.name}' depend on the size of a packet, so its links have no width to "
            "sweep: leave the links out, or begin with another machine"
        )
    grids = tuple(grids) or ((mesh.height, mesh.width),)
    _check_positive("a grid", [size for grid in grids for size in grid])
    _check_positive("sram", srams)
    _check_positive("a link", links)
    if any(rate < 0 for rate in offchips):
        raise UserError(f"offchip is {min(offchips)}: give bytes per cycle, or 0 where nothing lies behind the edge")
    sweep = _Sweep(workload, machine, sync, prices or Prices())
    points = tuple(
        point
        for grid in grids
        for link in tuple(links) or (mesh.link_bytes_per_cycle,)
        for point in sweep.points(
            grid, link, tuple(srams) or (machine.sram_bytes,), tuple(offchips) or (mesh.offchip_bytes_per_cycle,)
        )
    )
    chosen = _front([point for point in points if not point.problem], axes)
    return Exploration(workload, machine, sync, tuple(axes), sweep.prices, points, tuple(chosen), sweep.extrapolated)


def _front(running: Sequence[Point], axes: Sequence[str]) -> list[Point]:
    """The front; of machines that cost the same, those that no other beats in all that could be weighed."""

    def costs(point: Point, names: Sequence[str]) -> tuple[float, ...]:
        return tuple(point.costs[name] for name in names)

    best = [running[number] for number in front([costs(point, axes) for point in running])]
    alike: dict[tuple[float, ...], list[Point]] = {}
    for point in best:
        alike.setdefault(costs(point, axes), []).append(point)
    kept = [group[number] for group in alike.values() for number in front([costs(one, list(AXES)) for one in group])]
    return sorted(kept, key=lambda point: point.costs["time"])


def _check_axes(axes: Sequence[str]) -> None:
    for axis in axes:
        if axis not in AXES:
            raise UserError(f"there is no axis '{axis}': use some of {', '.join(AXES)}")
    if len(set(axes)) < 2 or len(set(axes)) != len(axes):
        raise UserError(f"a front needs two axes or more that differ; there are: {', '.join(axes) or 'none'}")


def _check_positive(what: str, sizes: Sequence[float]) -> None:
    if any(size <= 0 for size in sizes):
        raise UserError(f"{what} has size {min(sizes):g}: it must be more than 0")


class _Sweep:
    """Times each grid and width of links once."""

    def __init__(self, workload: Workload, machine: Machine, sync: Sync, prices: Prices) -> None:
        self.workload, self.machine, self.sync, self.prices = workload, machine, sync, prices
        self.extrapolated = False

    def points(
        self, grid: tuple[int, int], link: float, srams: Sequence[int], offchips: Sequence[float]
    ) -> Iterator[Point]:
        height, width = grid
        machine = self.machine.replace(height=height, width=width, link_bytes_per_cycle=link)
        programs = [(part, part.program(height, width, self.workload.dtype)) for part in self.workload.parts]
        split = self._split(machine, programs)
        cycles = split.compute + split.communication + split.overhead + split.idle
        for sram in srams:
            for offchip in offchips:
                variant = Variant(height, width, sram, link, offchip)
                yield self._point(variant, cycles, split, self._needs(programs, height, width))

    def _split(self, machine: Machine, programs: Sequence[tuple[Part, Program]]) -> Split:
        parts = np.zeros(4)
        for part, program in programs:
            timing = time_program(program, machine, sync=self.sync, loads=False)
            one = timing.split
            parts += part.times * np.array([one.compute, one.communication, one.overhead, one.idle])
            self.extrapolated |= timing.extrapolated
        return Split(*parts.tolist())

    def _needs(self, programs: Sequence[tuple[Part, Program]], height: int, width: int) -> tuple[int, int]:
        """Bytes of a core: of the program that needs most at once; of all weights and the cache."""
        working = max(working_bytes(program) for _, program in programs)
        itemsize = np.dtype(self.workload.dtype).itemsize
        kept = sum(part.weight_bytes(height, width, itemsize) for part, _ in programs)
        return working, kept + -(-self.workload.cache_bytes // (height * width))

    def _point(self, variant: Variant, cycles: float, split: Split, needs: tuple[int, int]) -> Point:
        working, kept = needs
        room = variant.sram - self.machine.mesh.code_bytes
        if working > room:
            left = f"which has {room} beside its code" if room > 0 else "whose code alone fills it"
            return Point(variant, problem=f"a program needs {working} bytes of a core, {left}: give cores more memory")
        away = max(kept + working - room, 0)
        streamed = min(away, kept) * variant.height * variant.width
        if streamed and not variant.offchip:
            return Point(
                variant,
                problem=f"weights, cache and a program need {kept + working} bytes of a core, which has {room} beside "
                "its code, and nothing lies behind the edge",
            )
        whole = max(cycles, streamed / variant.offchip if streamed else 0.0)
        point = Point(variant, whole, split, streamed)
        return replace(point, costs=self._costs(variant, whole))

    def _costs(self, variant: Variant, cycles: float) -> dict[str, float]:
        cores = variant.height * variant.width
        crossings = variant.height * (variant.width - 1) + variant.width * (variant.height - 1)
        if self.machine.mesh.topology == "torus":
            crossings = 2 * cores
        prices = self.prices
        return {
            "time": self.machine.seconds(cycles),
            "cores": cores,
            "sram": cores * variant.sram,
            "links": 2 * crossings * variant.link,
            "offchip": variant.offchip,
            "area": cores * (prices.core + prices.kb * variant.sram / 1024 + prices.link * variant.link) / 1e6,
        }


def working_bytes(program: Program) -> int:
    """Bytes of a core that are live at once in a program, at most."""
    sizes = {buffer.name: buffer_bytes(buffer) for buffer in program.buffers}
    return max((sum(sizes[name] for name in names) for names in live_buffers(program)), default=0)


def plain(exploration: Exploration) -> dict[str, Any]:
    """Plain values, for JSON."""
    best = {id(point) for point in exploration.front}
    machine = exploration.machine
    return {
        "simulated": True,
        "workload": exploration.workload.name,
        "tokens": exploration.workload.tokens,
        "machine": machine.name,
        "preset": machine.preset,
        "clock": machine.clock,
        "sync": exploration.sync,
        "fabric_entries": None,
        "tier": "T1",
        "extrapolated": exploration.extrapolated,
        "axes": {axis: AXES[axis] for axis in exploration.axes},
        "prices": vars(exploration.prices),
        "points": [
            {
                **vars(point.variant),
                "runs": not point.problem,
                "problem": point.problem,
                "front": id(point) in best,
                "cycles": point.cycles,
                "split": vars(point.split),
                "streamed": point.streamed,
                "costs": point.costs,
            }
            for point in exploration.points
        ],
    }

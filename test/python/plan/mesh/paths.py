# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which cores' data go to which cores in a program, straight along an axis."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from tilewright.sim.coremesh.grid import Grid
from tilewright.sim.coremesh.program import Program
from tilewright.sim.coremesh.steps import incoming, unroll

Core = tuple[int, int]


def paths(program: Program) -> set[tuple[str, str, Core, Core]]:
    """Axis, route, sender and receiver of every path that data take."""
    grid = Grid(program)
    routes = {route.name: route for route in program.routes}
    found = set()
    for step in unroll(program):
        name = incoming(step.instruction)
        if name is None:
            continue
        sources = grid.sources(routes[name], step.loops)
        for core in np.flatnonzero(grid.mask(step.instruction.cores, step.loops)):
            source, target = (divmod(int(one), program.width) for one in (sources[core], core))
            found.add((routes[name].axis, name, source, target))
    return found


def distances(program: Program) -> set[int]:
    """Hops of all paths."""
    return {abs(a[0] - b[0]) + abs(a[1] - b[1]) for _, _, a, b in paths(program)}


def busiest(program: Program, axis: str) -> int:
    """Most paths along an axis that one core starts, ends or passes on; those of a multicast count as one."""
    through: defaultdict[Core, set[tuple[str, Core]]] = defaultdict(set)
    for of, route, source, target in paths(program):
        if of == axis:
            (y0, y1), (x0, x1) = sorted((source[0], target[0])), sorted((source[1], target[1]))
            for y in range(y0, y1 + 1):
                for x in range(x0, x1 + 1):
                    through[y, x].add((route, source))
    return max(map(len, through.values()))

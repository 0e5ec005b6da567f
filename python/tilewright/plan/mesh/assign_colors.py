# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Give every route of a program its colors: as few as a router needs, the same ones wherever routes never meet."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tilewright.core.errors import UserError
from tilewright.plan.mesh.tables import table_expr
from tilewright.sim.coremesh.checks.colors import Occupancy, check_positions, routes_by_color, usable_colors
from tilewright.sim.coremesh.checks.field import Field, core_name
from tilewright.sim.coremesh.checks.flows import flows_of
from tilewright.sim.coremesh.checks.lanes import Lane, lanes_of
from tilewright.sim.coremesh.expressions import Binary, Const, Expr
from tilewright.sim.coremesh.machine import Machine
from tilewright.sim.coremesh.program import Program, Route
from tilewright.sim.coremesh.steps import unroll

#: Colors beyond those of the machine that are still counted, so that an error can say how many are needed.
_COUNTED = 64


def assign_colors(program: Program, machine: Machine) -> Program:
    """The program with colors; those that its routes had are forgotten. A machine without colors needs none.

    Lanes of one axis are intervals of a line: taken by their lower end, each the lowest free color, they need no more
    colors than some router has lanes (interval graphs are perfect). The two-hop shift of MeshGEMM takes three per axis.

    Raises:
        UserError: a core has more lanes than colors, or a router more states of one color than switch positions; it
            names core, routes, demand, and capacity.
    """
    field = Field(program)
    bare = replace(program, routes=tuple(replace(route, colors=(), color=Const(0)) for route in program.routes))
    if not routes_by_color(machine):
        return bare
    occupancy, colors = Occupancy(field), []
    for lines in flows_of(bare, field, unroll(bare)):
        for lane in lanes_of(lines):
            check_positions(lane, machine)
            color = next(number for number in range(occupancy.colors + 1) if occupancy.free(lane, number))
            occupancy.put(lane, color)
            colors.append(color)
            if color >= usable_colors(machine) + _COUNTED:
                raise _too_many(program, machine, occupancy, at_least=True)
    if occupancy.colors > usable_colors(machine):
        raise _too_many(program, machine, occupancy, at_least=False)
    lanes = list(zip(occupancy.lanes, colors, strict=True))
    routes = tuple(
        _colored(field, route, [(lane, color) for lane, color in lanes if lane.route == route.name])
        for route in bare.routes
    )
    return replace(bare, routes=routes)


def _too_many(program: Program, machine: Machine, occupancy: Occupancy, *, at_least: bool) -> UserError:
    counts = occupancy.per_core()
    row, column = np.unravel_index(int(counts.argmax()), counts.shape)
    through = occupancy.at(int(row), int(column))
    shown = "; ".join(str(lane) for lane in through[:8]) + ("; ..." if len(through) > 8 else "")
    need = max(occupancy.colors, len(through))
    return UserError(
        f"Program '{program.name}' needs {'at least ' if at_least else ''}{need} colors at "
        f"{core_name(int(row), int(column))}, and a core of machine '{machine.name}' has {usable_colors(machine)} "
        f"({machine.mesh.colors}, of which it keeps {machine.mesh.reserved_colors}). {len(through)} flows pass "
        f"there: {shown}. Let fewer routes pass one core: an algorithm with a constant number of paths per core "
        "(MeshGEMM, a K-tree with a smaller K), software relays, or fewer routes in one program."
    )


def _colored(field: Field, route: Route, lanes: list[tuple[Lane, int]]) -> Route:
    across = field.height if route.axis == "x" else field.width
    table = np.full((across, field.length(route.axis)), -1)
    for lane, color in lanes:
        places = np.unique(np.concatenate([np.asarray(flow.destinations) for flow in lane.flows]))
        table[np.ix_(lane.lines.members, places)] = color
    palette = np.unique(table[table >= 0])
    if not palette.size:
        return replace(route, colors=(0,))  # carries nothing
    index = np.where(table >= 0, np.searchsorted(palette, table), -1)
    return replace(route, colors=tuple(palette.tolist()), color=_table(index))


def _table(table: np.ndarray) -> Expr:
    """An expression of (p, q) for a table [q, p], -1 where any value will do."""
    patterns: list[np.ndarray] = []
    chosen = np.zeros(len(table), dtype=np.int64)
    seen: dict[bytes, int] = {}
    for line, row in enumerate(table):
        if row.tobytes() not in seen:
            seen[row.tobytes()] = _pattern(patterns, row)
        chosen[line] = seen[row.tobytes()]
    found = table_expr(np.maximum(patterns[0], 0), 0, patterns[0] >= 0)
    first = np.broadcast_to(np.asarray(found((np.arange(table.shape[1]), 0))), table.shape[1:])
    for number, pattern in enumerate(patterns[1:], 1):
        here = table_expr((chosen == number).astype(np.int64), 1)
        care = pattern >= 0
        found = Binary("+", found, table_expr(np.where(care, pattern - first, 0), 0, care, here))
    return found


def _pattern(patterns: list[np.ndarray], row: np.ndarray) -> int:
    """The number of a pattern that agrees with a row wherever both have a value; it takes up the row's."""
    for number, pattern in enumerate(patterns):
        if ((row < 0) | (pattern < 0) | (row == pattern)).all():
            patterns[number] = np.maximum(pattern, row)
            return number
    patterns.append(row.copy())
    return len(patterns) - 1

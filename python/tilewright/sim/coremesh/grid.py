# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A program's expressions core by core: who takes part, which slot, from whom; as lines: `checks/field.py`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.sim.coremesh.checks.field import Field, core_name
from tilewright.sim.coremesh.expressions import Expr
from tilewright.sim.coremesh.program import Cores, Order, Program, Route


class Grid:
    """The cores of a program, numbered row by row: core ``y * width + x``.

    Attributes:
        height, width, cores: how many rows, columns, cores.
        y, x: int64 [cores], as cores stand.
    """

    def __init__(self, program: Program) -> None:
        self._field = Field(program)
        self.height, self.width = program.height, program.width
        self.cores = self.height * self.width
        self.y, self.x = (place.ravel() for place in np.mgrid[: self.height, : self.width])
        self._known: dict[tuple[int, str], tuple[Any, np.ndarray, np.ndarray]] = {}

    def name(self, core: int) -> str:
        """How messages name a core."""
        return core_name(core // self.width, core % self.width)

    def mask(self, cores: Cores, loops: tuple[int, ...]) -> np.ndarray:
        """Who takes part, bool [cores]."""
        return self._spread(cores, "mask", self._field.mask(cores, loops))

    def index(self, expr: Expr, order: Order, loops: tuple[int, ...]) -> np.ndarray:
        """Value of an expression of (y, x, loops...) on each core, int64 [cores]."""
        return self._spread(expr, order, self._field.index(expr, order, loops))

    def sources(self, route: Route, loops: tuple[int, ...]) -> np.ndarray:
        """Number of the core whose data arrive at each core on a route; -1: it would stand outside the grid."""
        places = self._field.sources(route, loops)
        known = self._known.get((id(route), "source"))
        if known is not None and known[1] is places:
            return known[2]
        place = np.broadcast_to(places, (self.height, self.width)).ravel()
        core = self.y * self.width + place if route.axis == "x" else place * self.width + self.x
        return self._keep(route, "source", places, np.where(place < 0, -1, core))

    def color(self, route: Route) -> np.ndarray:
        """Index into the route's colors on which each core listens, int64 [cores]; at linear (p, q)."""
        return np.broadcast_to(self._field.color(route), (self.height, self.width)).ravel()

    def _spread(self, what: Any, kind: str, lines: np.ndarray) -> np.ndarray:
        """One value per core of what is given by lines."""
        known = self._known.get((id(what), kind))
        if known is not None and known[1] is lines:
            return known[2]
        return self._keep(what, kind, lines, np.broadcast_to(lines, (self.height, self.width)).ravel())

    def _keep(self, what: Any, kind: str, lines: np.ndarray, found: np.ndarray) -> np.ndarray:
        found.flags.writeable = False
        self._known[id(what), kind] = what, lines, found  # the object too: its id must not be another's
        return found

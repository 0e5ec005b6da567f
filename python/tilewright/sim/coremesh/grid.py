# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A program's expressions on all cores at once: who takes part, which slot, from whom."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.core.errors import UserError
from tilewright.sim.coremesh.expressions import Expr, depth
from tilewright.sim.coremesh.program import Cores, Order, Route
from tilewright.sim.coremesh.ring import ring_positions


class Grid:
    """The cores of a machine, numbered row by row: core ``y * width + x``.

    Attributes:
        height, width, cores: how many rows, columns, cores.
        y, x: int64 [cores], as cores stand.
    """

    def __init__(self, height: int, width: int) -> None:
        if height < 1 or width < 1:
            raise UserError(f"A mesh of {height} x {width} cores has none: each side must be at least 1.")
        self.height, self.width, self.cores = height, width, height * width
        self.y, self.x = (place.ravel() for place in np.mgrid[:height, :width])
        self._ring = {length: ring_positions(length) for length in (height, width)}
        self._place = {length: np.argsort(ring) for length, ring in self._ring.items()}
        self._known: dict[tuple[int, str], tuple[Any, tuple[int, ...], np.ndarray]] = {}

    def name(self, core: int) -> str:
        """How messages name a core."""
        return f"core (y={core // self.width}, x={core % self.width})"

    def positions(self, order: Order) -> tuple[np.ndarray, np.ndarray]:
        """Row and column of each core, counted in an order, int64 [cores]."""
        if order == "linear":
            return self.y, self.x
        return self._ring[self.height][self.y], self._ring[self.width][self.x]

    def mask(self, cores: Cores, loops: tuple[int, ...]) -> np.ndarray:
        """Who takes part, bool [cores]."""
        return self._cached(cores, "mask", depth(*cores.at_least_zero, *cores.zero), loops, self._mask)

    def index(self, expr: Expr, order: Order, loops: tuple[int, ...]) -> np.ndarray:
        """Value of an expression of (y, x, loops...) on each core, int64 [cores]."""
        return self._cached(expr, order, depth(expr), loops, lambda what, at: self._value(what, order, at))

    def sources(self, route: Route, loops: tuple[int, ...]) -> np.ndarray:
        """Number of the core whose data arrive at each core on a route; -1: it would stand outside the grid."""
        return self._cached(route, "source", depth(route.source), loops, self._sources)

    def color(self, route: Route) -> np.ndarray:
        """Index into the route's colors on which each core listens, int64 [cores]; at linear (p, q)."""
        dims = (self.x, self.y) if route.axis == "x" else (self.y, self.x)
        return np.broadcast_to(route.color(dims), (self.cores,))

    def _cached(
        self, what: Any, kind: str, dims: int, loops: tuple[int, ...], make: Callable[..., np.ndarray]
    ) -> np.ndarray:
        if dims > 2 + len(loops):
            raise UserError(
                f"An expression asks for loop {dims - 3}, counted from the outermost, but stands inside {len(loops)}: "
                f"{what}"
            )
        loops = loops[: max(dims - 2, 0)]
        known = self._known.get((id(what), kind))
        if known is not None and known[1] == loops:
            return known[2]
        found = make(what, loops)
        found.flags.writeable = False
        self._known[id(what), kind] = what, loops, found  # the object too: its id must not be another's
        return found

    def _value(self, expr: Expr, order: Order, loops: tuple[int, ...]) -> np.ndarray:
        return np.broadcast_to(np.asarray(expr((*self.positions(order), *loops)), dtype=np.int64), (self.cores,))

    def _mask(self, cores: Cores, loops: tuple[int, ...]) -> np.ndarray:
        taking = np.ones(self.cores, dtype=bool)
        for expr in cores.at_least_zero:
            taking &= self._value(expr, cores.order, loops) >= 0
        for expr in cores.zero:
            taking &= self._value(expr, cores.order, loops) == 0
        return taking

    def _sources(self, route: Route, loops: tuple[int, ...]) -> np.ndarray:
        rows, columns = self.positions(route.order)
        along, across = (columns, rows) if route.axis == "x" else (rows, columns)
        source = np.broadcast_to(np.asarray(route.source((along, across, *loops)), dtype=np.int64), (self.cores,))
        length = self.width if route.axis == "x" else self.height
        inside = (source >= 0) & (source < length)
        place = np.where(inside, source, 0)
        if route.order == "ring":
            place = self._place[length][place]
        core = self.y * self.width + place if route.axis == "x" else place * self.width + self.x
        return np.where(inside, core, -1)

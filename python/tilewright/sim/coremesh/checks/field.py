# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A program's expressions on all cores at once, as arrays only as large as what they depend on.

A condition on the row alone is an array ``[height, 1]``: checks of 720 x 720 cores then cost what a line costs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.core.errors import UserError
from tilewright.sim.coremesh.expressions import Expr, depth
from tilewright.sim.coremesh.program import Cores, Order, Program, Route
from tilewright.sim.coremesh.ring import ring_positions


class Field:
    """The cores of a program. Arrays are ``[height or 1, width or 1]``; 1 where a value is the same all along.

    Attributes:
        height, width: how many rows and columns.
    """

    def __init__(self, program: Program) -> None:
        self.height, self.width = program.height, program.width
        if self.height < 1 or self.width < 1:
            raise UserError(
                f"Program '{program.name}' is for a mesh of {self.height} x {self.width} cores, which has none. "
                "Each side must be at least 1."
            )
        empty = [buffer for buffer in program.buffers if buffer.slots < 1 or 0 in buffer.shape]
        if empty:
            raise UserError(
                f"Buffer '{empty[0].name}' of program '{program.name}' holds nothing: {empty[0].slots} slots of tiles "
                f"{list(empty[0].shape)}. A core can send and compute only what has elements: leave out the buffer and "
                "what uses it."
            )
        self._ring = {length: ring_positions(length) for length in (self.height, self.width)}
        self._place = {length: np.argsort(ring) for length, ring in self._ring.items()}
        self._known: dict[tuple[int, str], tuple[Any, tuple[int, ...], np.ndarray, int]] = {}

    def length(self, axis: str) -> int:
        """Cores along an axis."""
        return self.width if axis == "x" else self.height

    def positions(self, order: Order) -> tuple[np.ndarray, np.ndarray]:
        """Row [height, 1] and column [1, width] of each core, counted in an order."""
        if order == "ring":
            return self._ring[self.height][:, None], self._ring[self.width][None, :]
        return np.arange(self.height)[:, None], np.arange(self.width)[None, :]

    def mask(self, cores: Cores, loops: tuple[int, ...]) -> np.ndarray:
        """Who takes part, bool."""
        return self._cached(cores, "mask", (*cores.at_least_zero, *cores.zero), loops, self._mask)

    def index(self, expr: Expr, order: Order, loops: tuple[int, ...]) -> np.ndarray:
        """Value of an expression of (y, x, loops...), int64."""
        return self._cached(expr, order, (expr,), loops, lambda what, at: self._value(what, order, at))

    def sources(self, route: Route, loops: tuple[int, ...]) -> np.ndarray:
        """Place on its line, as cores stand, from which data arrive at each core on a route; -1: outside the grid."""
        return self._cached(route, "source", (route.source,), loops, self._sources)

    def color(self, route: Route) -> np.ndarray:
        """Index into the route's colors on which each core listens."""
        rows, columns = self.positions("linear")
        dims = (columns, rows) if route.axis == "x" else (rows, columns)
        return _flat(route.color(dims))

    def first(self, mask: np.ndarray) -> tuple[int, int]:
        """Row and column of the first core of a mask."""
        row, column = np.argwhere(mask)[0]
        return int(row), int(column)

    def size(self, mask: np.ndarray) -> int:
        """Cores of a mask."""
        return int(mask.sum()) * (self.height // mask.shape[0]) * (self.width // mask.shape[1])

    def _cached(
        self, what: Any, kind: str, exprs: tuple[Expr, ...], loops: tuple[int, ...], make: Callable[..., np.ndarray]
    ) -> np.ndarray:
        known = self._known.get((id(what), kind))
        dims = known[3] if known else depth(*exprs)
        if dims > 2 + len(loops):
            raise UserError(
                f"An expression asks for loop {dims - 3}, counted from the outermost, but stands inside {len(loops)} "
                f"loops: {what}. Only the loops around an instruction are dimensions of its expressions."
            )
        loops = loops[: max(dims - 2, 0)]
        if known is not None and known[1] == loops:
            return known[2]
        found = make(what, loops)
        self._known[id(what), kind] = what, loops, found, dims  # the object too: its id must not be another's
        return found

    def _value(self, expr: Expr, order: Order, loops: tuple[int, ...]) -> np.ndarray:
        return _flat(expr((*self.positions(order), *loops)))

    def _mask(self, cores: Cores, loops: tuple[int, ...]) -> np.ndarray:
        taking = np.ones((1, 1), dtype=bool)
        for expr in cores.at_least_zero:
            taking = taking & (self._value(expr, cores.order, loops) >= 0)
        for expr in cores.zero:
            taking = taking & (self._value(expr, cores.order, loops) == 0)
        return taking

    def _sources(self, route: Route, loops: tuple[int, ...]) -> np.ndarray:
        rows, columns = self.positions(route.order)
        along, across = (columns, rows) if route.axis == "x" else (rows, columns)
        source = _flat(route.source((along, across, *loops)))
        length = self.length(route.axis)
        inside = (source >= 0) & (source < length)
        if route.order == "ring":
            source = self._place[length][np.where(inside, source, 0)]
        return np.where(inside, source, -1)


def _flat(value: Any) -> np.ndarray:
    array = np.asarray(value, dtype=np.int64)
    return array.reshape(1, 1) if array.ndim == 0 else array


def core_name(row: int, column: int) -> str:
    """How messages name a core."""
    return f"core (y={row}, x={column})"

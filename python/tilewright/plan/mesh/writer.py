# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes a program instruction by instruction: names, tokens and loop indices are kept here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from tilewright.plan.mesh.terms import Condition, Term, TermLike, dim, term
from tilewright.sim.coremesh.combinations import Combine as Combine
from tilewright.sim.coremesh.program import (
    Buffer,
    Compute,
    Cores,
    Cost,
    Instruction,
    Loop,
    Meeting,
    Order,
    Place,
    Program,
    Recv,
    Relay,
    Route,
    Send,
    Slot,
    Wait,
)

Axis = Literal["x", "y"]
Overhead = Literal["", "round", "collective"]


def cores(*conditions: Condition, order: Order = "linear") -> Cores:
    """The cores for which all of these hold."""
    return Cores(
        tuple(one.left.expr for one in conditions if not one.exact),
        tuple(one.left.expr for one in conditions if one.exact),
        order,
    )


def slot(buffer: str, index: TermLike = 0) -> Slot:
    """One slot of a buffer."""
    return Slot(buffer, term(index).expr)


class Writer:
    """A program while it is written.

    Attributes:
        height, width: cores of the grid.
    """

    def __init__(self, name: str, height: int, width: int) -> None:
        self.name, self.height, self.width = name, height, width
        self._buffers: dict[str, Buffer] = {}
        self._routes: dict[str, Route] = {}
        self._inputs: list[Place] = []
        self._outputs: list[Place] = []
        self._bodies: list[list[Instruction]] = [[]]
        self._tokens = 0

    def length(self, axis: Axis) -> int:
        """Cores along an axis."""
        return self.width if axis == "x" else self.height

    def buffer(self, name: str, shape: Sequence[int], dtype: Any, slots: int = 1) -> str:
        """Memory of each core: ``slots`` tiles of ``shape``. Returns its name."""
        name = _fresh(name, self._buffers)
        self._buffers[name] = Buffer(name, tuple(shape), np.dtype(dtype), slots)
        return name

    def tile(self, name: str) -> tuple[tuple[int, ...], np.dtype]:
        """Shape and type of a slot of a buffer."""
        return self._buffers[name].shape, self._buffers[name].dtype

    def route(self, name: str, axis: Axis, source: TermLike, order: Order = "linear") -> str:
        """Paths along an axis; the same under the same name are shared. Returns its name."""
        made = Route(name, axis, term(source).expr, order)
        if self._routes.get(name) == made:
            return name
        name = _fresh(name, self._routes)
        self._routes[name] = replace(made, name=name)
        return name

    def input(self, name: str, shape: Sequence[int], at: Slot, block: Sequence[TermLike], order: Order) -> None:
        """Tiles of a tensor lie here before the program; again for each slot that holds some."""
        self._inputs.append(_place(name, shape, at, block, order))

    def output(
        self,
        name: str,
        shape: Sequence[int],
        at: Slot,
        block: Sequence[TermLike],
        order: Order,
        alike: tuple[int, ...] = (),
    ) -> None:
        """Tiles of a tensor lie here after the program; along dimensions ``alike`` they are copies."""
        self._outputs.append(replace(_place(name, shape, at, block, order), alike=alike))

    def compute(self, who: Cores, kernel: Kernel, reads: Sequence[Slot], writes: Sequence[Slot]) -> None:
        """Run a kernel."""
        cost = kernel.cost(*(tuple(self._buffers[one.buffer] for one in slots) for slots in (reads, writes)))
        self._add(Compute(who, kernel.name, tuple(reads), tuple(writes), cost, kernel))

    def send(self, who: Cores, route: str, at: Slot) -> str:
        """Start to send a slot. Returns the token."""
        token = self._token("send")
        self._add(Send(who, route, at, token))
        return token

    def recv(self, who: Cores, route: str, at: Slot, combine: Combine | None = None) -> str:
        """Start to receive into a slot. Returns the token."""
        token = self._token("recv")
        self._add(Recv(who, route, at, token, combine))
        return token

    def relay(self, who: Cores, incoming: str, outgoing: str, at: Slot, combine: Combine = "add") -> str:
        """Start to receive on a route, combine with a slot and send on on another. Returns the token."""
        token = self._token("relay")
        self._add(Relay(who, incoming, outgoing, at, token, combine))
        return token

    def wait(self, tokens: Sequence[str], overhead: Overhead = "") -> None:
        """Wait for tokens."""
        self._add(Wait(tuple(tokens), overhead))

    @contextmanager
    def loop(self, count: int) -> Iterator[Term]:
        """A loop around what is written inside; yields its index. Of no iterations, nothing is kept."""
        self._bodies.append([])
        yield dim(len(self._bodies))
        body = self._bodies.pop()
        if count:
            self._add(Loop(count, tuple(body)))

    @contextmanager
    def turns(self, count: int) -> Iterator[Term]:
        """A loop, if there is more than one turn; yields its index."""
        if count == 1:
            yield term(0)
            return
        with self.loop(count) as turn:
            yield turn

    def program(self) -> Program:
        """What was written."""
        return Program(
            self.name,
            self.height,
            self.width,
            tuple(self._buffers.values()),
            tuple(self._routes.values()),
            tuple(self._inputs),
            tuple(self._outputs),
            tuple(self._bodies[0]),
        )

    def _add(self, instruction: Instruction) -> None:
        self._bodies[-1].append(instruction)

    def _token(self, kind: str) -> str:
        self._tokens += 1
        return f"{kind}{self._tokens}"


class Kernel:
    """What a core computes on its tiles. Subclasses are values: equal ones do the same.

    Attributes:
        name: of what is computed.
    """

    name: str

    @property
    def meeting(self) -> tuple[Meeting, ...]:
        """Dimensions that are summed over: operands must be the same part of them; none where that is not known."""
        return ()

    def __call__(self, *tiles: np.ndarray) -> tuple[np.ndarray, ...]:
        """Tiles read, each ``[cores, *shape]``, to tiles written."""
        raise NotImplementedError

    def cost(self, reads: tuple[Buffer, ...], writes: tuple[Buffer, ...]) -> Cost:
        """What one execution does on one core, given where its tiles lie."""
        raise NotImplementedError


def _fresh(name: str, taken: dict[str, Any]) -> str:
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}{number}"
    return free


def _place(name: str, shape: Sequence[int], at: Slot, block: Sequence[TermLike], order: Order) -> Place:
    return Place(name, tuple(shape), at, tuple(term(index).expr for index in block), order)

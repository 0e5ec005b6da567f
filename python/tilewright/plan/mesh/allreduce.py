# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Allreduce along one axis or both: a reduction and a multicast, or a ring."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.core.errors import UserError
from tilewright.plan.mesh.reduction import Level, Line, Scheme, broadcast_line, reduce_line, root_place
from tilewright.plan.mesh.terms import P, X, Y, equal, less
from tilewright.plan.mesh.writer import Axis, Combine, Overhead, Writer, cores, slot
from tilewright.sim.coremesh.combinations import NAMES
from tilewright.sim.coremesh.program import Order, Program


@dataclass(frozen=True)
class Reduce:
    """One vector of ``elements`` in each core of a grid, reduced along axes.

    Attributes:
        axes: one after the other; results are broadcast in the opposite order.
        schemes: per axis.
        everywhere: whether all cores get the result (allreduce), or one per line.
        order: of a ring: along the folded ring, or with one long link back.
    """

    height: int
    width: int
    elements: int
    dtype: Any = np.float32
    combine: Combine = "add"
    axes: tuple[Axis, ...] = ("x",)
    schemes: tuple[Scheme, ...] = (Scheme(),)
    everywhere: bool = True
    order: Order = "ring"

    def __post_init__(self) -> None:
        if min(self.height, self.width, self.elements) < 1:
            raise UserError(
                f"A reduction needs a grid and a vector; this one has {self.height} x {self.width} cores and "
                f"{self.elements} elements."
            )
        if not self.axes or len(set(self.axes)) != len(self.axes) or len(self.schemes) != len(self.axes):
            raise UserError(f"Axes {self.axes} must differ, and have one scheme each; there are {len(self.schemes)}.")
        if self.combine not in NAMES:
            raise UserError(f"A reduction has no '{self.combine}': it is one of {', '.join(NAMES)}.")
        rings = [scheme.kind == "ring" for scheme in self.schemes]
        if any(rings) and not (self.everywhere and len(rings) == 1):
            raise UserError("A ring reduces along one axis, for all cores. Ask for that, or for another algorithm.")


def reduction(what: Reduce) -> Program:
    """A program with one input and one output, ``x`` [height, width, elements]: each core's vector, before and after.

    Of a reduction that is not ``everywhere`` only the roots' vectors are the result; see `roots`.
    """
    writer = Writer("allreduce" if what.everywhere else "reduce", what.height, what.width)
    if what.schemes[0].kind == "ring":
        _ring(writer, what)
        return writer.program()
    at = slot(writer.buffer("x", (1, 1, what.elements), what.dtype))
    shape, alike = (what.height, what.width, what.elements), _alike(what.axes) if what.everywhere else ()
    writer.input("x", shape, at, (Y, X, 0), "linear")
    writer.output("x", shape, at, (Y, X, 0), "linear", alike)
    lines = [Line(writer, axis, at, what.combine) for axis in what.axes]
    if what.everywhere:
        allreduce(lines, what.schemes)
    else:
        reduce(lines, what.schemes)
    return writer.program()


def _alike(axes: Sequence[Axis]) -> tuple[int, ...]:
    """Dimensions of ``x`` along which all cores have the same vector in the end."""
    return tuple("yx".index(axis) for axis in axes)


def roots(what: Reduce) -> dict[Axis, int]:
    """Where along each axis the result of a reduction is."""
    lengths = {"y": what.height, "x": what.width}
    return {axis: root_place(scheme, lengths[axis]) for axis, scheme in zip(what.axes, what.schemes, strict=True)}


def reduce(lines: Sequence[Line], schemes: Sequence[Scheme], overhead: Overhead = "collective") -> list[int]:
    """Write a reduction along lines of one axis, then of the next. Returns the place of the root on each.

    Lines that do not hold a root of the axis before reduce what they have: they have nothing better to do.
    """
    return [reduce_line(line, scheme, overhead) for line, scheme in zip(lines, schemes, strict=True)]


def allreduce(lines: Sequence[Line], schemes: Sequence[Scheme]) -> None:
    """Write a reduction along each axis, and broadcasts back in the opposite order.

    The overhead of a collective is paid once per axis, where tasks are switched: when the result is there.
    """
    found = reduce(lines, schemes, "")
    for line, root in reversed(list(zip(lines, found, strict=True))):
        broadcast_line(line, root)


def allreduce_groups(line: Line, groups: int) -> None:
    """Write an allreduce within each of so many groups of cores next to each other: two chains, and a multicast.

    Raises:
        UserError: groups that are no parts of two or more cores.
    """
    scheme = Scheme("k_tree", 2, (groups,))
    members, count, _ = scheme.counts(line.length)
    level = Level(line, members, count, True, ())
    line.writer.wait(level.start())
    route = line.writer.route(f"{line.axis}_groups", line.axis, level.root(level.group(P)))
    root = level.root(level.group(line.place))
    tokens = [line.writer.send(cores(equal(line.place, root)), route, line.at)]
    for side in (less(line.place, root), less(root, line.place)):
        tokens.append(line.writer.recv(cores(side), route, line.at))
    line.writer.wait(tokens, "collective")


def broadcast(height: int, width: int, elements: int, axes: Sequence[Axis], at: Sequence[int], dtype: Any) -> Program:
    """A program that sends a vector from the cores at place ``at`` of each axis to all: ``x`` as in `reduction`.

    Along the first axis, then along the next from all that it reached.
    """
    writer = Writer("broadcast", height, width)
    home = slot(writer.buffer("x", (1, 1, elements), dtype))
    writer.input("x", (height, width, elements), home, (Y, X, 0), "linear")
    writer.output("x", (height, width, elements), home, (Y, X, 0), "linear", _alike(axes))
    for axis, root in zip(axes, at, strict=True):
        broadcast_line(Line(writer, axis, home), root)
    return writer.program()


def _ring(writer: Writer, what: Reduce) -> None:
    """Reduce-scatter, then all-gather, around a ring: in 2 (N - 1) steps each core sends an N-th of the vector."""
    axis = what.axes[0]
    length, place = writer.length(axis), X if axis == "x" else Y
    shape = (1, 1, -(-what.elements // length))
    buffer = writer.buffer("x", shape, what.dtype, length)
    whole = (what.height, what.width, what.elements)
    for chunk in range(length):
        writer.input("x", whole, slot(buffer, chunk), (Y, X, chunk), what.order)
        writer.output("x", whole, slot(buffer, chunk), (Y, X, chunk), what.order, _alike(what.axes))
    route = writer.route(f"{axis}_forward", axis, (P - 1) % length, what.order)
    everyone = cores(order=what.order)
    combines: tuple[Combine | None, ...] = (what.combine, None)
    for ahead, combine in enumerate(combines):
        with writer.loop(length - 1) as step:
            sent = writer.send(everyone, route, slot(buffer, (place + ahead - step) % length))
            arriving = slot(buffer, (place + ahead - step - 1) % length)
            got = writer.recv(everyone, route, arriving, combine)
            writer.wait([sent, got], "round")

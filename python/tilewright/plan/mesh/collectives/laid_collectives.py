# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Collectives on laid-out tensors as programs: reductions of a dimension, multicasts, shifts."""

from __future__ import annotations

from tilewright.core.errors import UnsupportedError
from tilewright.dialects.coremesh import Split
from tilewright.plan.mesh.allreduce import allreduce
from tilewright.plan.mesh.collectives.laid_deals import dealt_anew, redeal
from tilewright.plan.mesh.collectives.layouts import Laid, block, deal, put, received
from tilewright.plan.mesh.halo import Halo, halo
from tilewright.plan.mesh.kernels import Combine, Fill, Store
from tilewright.plan.mesh.product import ALL
from tilewright.plan.mesh.reduction import Line, Scheme, broadcast_line, reduce_line
from tilewright.plan.mesh.relayout import Placing, Relayout, Spread, relayout
from tilewright.plan.mesh.terms import Condition, P, X, Y, at_least, equal, less
from tilewright.plan.mesh.writer import Axis, Writer, cores, slot
from tilewright.sim.coremesh.combinations import Combine as How
from tilewright.sim.coremesh.combinations import identity
from tilewright.sim.coremesh.program import Program, Slot


def reduce_dimension(source: Laid, result: Laid, dimension: int, how: How, scheme: Scheme) -> Program:
    """A dimension that an axis splits, combined: by each core, then along the axis.

    For all cores, or for the one at which the result lies. Input ``x``, output ``y``.

    Raises:
        UnsupportedError: a ring.
    """
    if scheme.kind == "ring":
        raise UnsupportedError(
            "A ring needs a vector that each core has cut in as many chunks as its line has cores; blocks of layouts "
            "are whole. Choose a chain, a tree or a k_tree."
        )
    axis = source.axis_of(dimension)
    writer = Writer("reduce" if axis in result.at else "allreduce", source.height, source.width)
    at = received(writer, "x", source)
    total = slot(writer.buffer("y", result.tile, result.dtype))
    _combine_own(writer, source, dimension, how, at, total)
    line = Line(writer, axis, total, how)
    if axis in result.at:
        _move(line, reduce_line(line, scheme), result.at[axis])
    else:
        allreduce([line], [scheme])
    put(writer, "y", result, total, output=True)
    return writer.program()


def multicast(source: Laid, result: Laid, axis: Axis) -> Program:
    """From one position along an axis to all; input ``x``, output ``y``."""
    writer = Writer("multicast", source.height, source.width)
    at = received(writer, "x", source)
    broadcast_line(Line(writer, axis, at), source.at[axis])
    put(writer, "y", result, at, output=True)
    return writer.program()


def shift(source: Laid, result: Laid, axis: Axis, by: int) -> Program:
    """Each block goes to the core ``by`` positions before, around the end; input ``x``, output ``y``."""
    writer = Writer("shift", source.height, source.width)
    at, length = received(writer, "x", source), source.length(axis)
    moved = slot(writer.buffer("y", result.tile, result.dtype))
    if by % length == 0:
        writer.compute(ALL, Store(), (at,), (moved,))
    else:
        route = writer.route(f"{axis}_shift", axis, (P + by) % length, source.order)
        everyone = cores(order=source.order)
        writer.wait([writer.send(everyone, route, at), writer.recv(everyone, route, moved)], "round")
    put(writer, "y", result, moved, output=True)
    return writer.program()


def widen(source: Laid, dim: int, first: int, step: int, size: int, fill: float) -> Program:
    """Each block with what lies beside it along a dimension; input ``x``, output ``y``.

    Args:
        first, step, size: position p gets the ``size`` elements from ``p * step + first`` on.
        fill: what lies outside of the tensor.

    Raises:
        UnsupportedError: a position has the tensor alone.
    """
    if source.at:
        raise UnsupportedError("A halo is exchanged among cores that all have blocks. Multicast the tensor first.")
    axes = tuple(None if split is None else split.axis for split in source.splits)
    source.blocks()  # plain ones
    grid = (source.height, source.width)
    places = (first, step, size, fill, source.order, source.dtype)
    return halo(Halo(source.shape, source.tile, *grid, dim, source.axis_of(dim), axes, *places))


def move(source: Laid, result: Laid) -> Program:
    """To another layout; input ``x``, output ``y``.

    Raises:
        UnsupportedError: more than a dimension that is not in blocks of one size has to move.
    """
    dim = dealt_anew(source, result)
    if dim is not None:
        return redeal(source, result, dim)
    before, after = (Placing(tuple(map(_spread, one.splits)), one.at) for one in (source, result))
    return relayout(Relayout(source.shape, source.height, source.width, before, after, source.dtype))


def _spread(split: Split | None) -> Spread | None:
    if split is None:
        return None
    dealt = deal(split)
    if dealt:
        raise UnsupportedError(
            f"A relayout to or from{dealt} blocks moves nothing else. Go by a layout with blocks of one size."
        )
    return Spread(split.axis, split.order, split.rotate, split.skew, block(split))


def _combine_own(writer: Writer, source: Laid, dimension: int, how: How, at: Slot, total: Slot) -> None:
    """Each core combines its own part, without padding; one that has only padding begins with what changes nothing."""
    split = source.splits[dimension]
    assert split is not None
    place = Y if split.axis == "y" else X
    place = (place + split.rotate) % source.length(split.axis) if split.rotate else place
    size, block = source.shape[dimension], source.tile[dimension]
    full, rest = divmod(size, block)

    def combine(count: int, where: Condition) -> None:
        kernel = Combine(how, dimension, count)
        writer.compute(cores(where, order=source.order), kernel, (at,), (total,))

    combine(block, less(place, full))
    if rest:
        combine(rest, equal(place, full))
    empty = full + (rest > 0)
    if empty < source.length(split.axis):
        shape = (*source.tile[:dimension], *source.tile[dimension + 1 :])
        start = Fill(shape, source.dtype, identity(how, source.dtype))
        writer.compute(cores(at_least(place, empty), order=source.order), start, (), (total,))


def _move(line: Line, root: int, target: int) -> None:
    """From one core of each line to another."""
    if root == target:
        return
    route = line.writer.route(f"{line.axis}_to_root", line.axis, root)
    tokens = [
        line.writer.send(cores(equal(line.place, root)), route, line.at),
        line.writer.recv(cores(equal(line.place, target)), route, line.at),
    ]
    line.writer.wait(tokens)

# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators that write at positions given by data: ScatterElements, ScatterND, TensorScatter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from tilewright.frontend.builder.dims import Size, has_zero
from tilewright.frontend.builder.dtypes import is_bool
from tilewright.frontend.builder.scalars import BOOL, INDEX, Scalar
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.ops.tensor.one_place import fills_slice, one_number, write_slice
from tilewright.frontend.onnx.ops.tensor.scattering import by_axis, by_rows, can_search
from tilewright.frontend.onnx.registry import Builder, Node, op

Combine = Callable[[Scalar, Scalar], Scalar]


def wrapped(b: Builder, index: Scalar, extent: Size) -> tuple[Scalar, Scalar]:
    """An index that may count from the end, held within the bounds, and whether it was in them."""
    m, limit = b.math, b.idx(extent)
    index = m.cast(index, INDEX)
    index = m.where(index < 0, index + limit, index)
    inside = m.logical_and(index >= 0, index < limit)
    return m.maximum(m.minimum(index, limit - 1), 0), inside


def agree(b: Builder, node: Node, what: str, given: Sequence[Size], wanted: Sequence[Size]) -> None:
    """Sizes that must be equal: refused now, or checked when the model runs."""
    for n, size in zip(given, wanted, strict=True):
        if isinstance(n, int) and isinstance(size, int):
            if n != size:
                node.wrong(f"{what}: sizes {list(given)}, not {list(wanted)}")
        else:
            b.require_same(n, size, f"{what} has another size than what it belongs to")


def _within(b: Builder, node: Node, indices: Tensor, data: Tensor, axis: int) -> None:
    for d, (n, size) in enumerate(zip(indices.shape, data.shape, strict=True)):
        if d == axis:
            continue
        if not (isinstance(n, int) and isinstance(size, int)):
            b.require(b.idx(n) <= b.idx(size), f"dimension {d} of the indices is larger than that of the data")
        elif n > size:
            node.wrong(f"indices {list(indices.shape)} reach beyond data {list(data.shape)}")


def _combine(b: Builder, node: Node, dtype: np.dtype) -> Combine | None:
    """How an update joins the element that it meets; None where it takes its place."""
    m, kind = b.math, node.attr("reduction", "none")
    if is_bool(dtype):
        logical = {"add": m.logical_or, "max": m.logical_or, "mul": m.logical_and, "min": m.logical_and}
        if kind in logical:
            return logical[kind]
    known: dict[str, Combine | None] = {
        "none": None,
        "add": lambda x, y: x + y,
        "mul": lambda x, y: x * y,
        "max": m.maximum,
        "min": m.minimum,
    }
    if kind not in known:
        node.wrong(f"reduction {kind} is not one of {', '.join(known)}")
    return known[kind]


def _scatter(
    b: Builder,
    combine: Combine | None,
    data: Tensor,
    updates: Tensor,
    place: Callable[[list[Scalar]], tuple[list[Scalar], Scalar]],
) -> Tensor:
    """`data` with each element of `updates` written where `place` says for its indices (and whether that exists)."""
    updates = b.array(updates)
    if has_zero(data.shape) or has_zero(updates.shape):
        return data

    def write(at: list[Scalar], result: Tensor, good: Scalar) -> list:
        where, inside = place(at)
        value = b.at(updates, at)
        value = combine(b.at(result, where), value) if combine else value
        return [b.put(value, result, where), b.math.logical_and(good, inside)]

    result, good = b.nest(updates.shape, [data, b.math.scalar(1, BOOL)], write)
    b.require(good, "an index lies outside of the data")
    return result


@op("ScatterElements", "Scatter")
def scatter_elements(b: Builder, node: Node, data: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    """data[.., indices[i], ..] = updates[i] along `axis`, later updates after earlier ones."""
    axis = node.axis(node.attr("axis", 0), data.rank)
    if not data.rank == indices.rank == updates.rank:
        node.wrong(f"data has {data.rank} dimensions, indices {indices.rank}, updates {updates.rank}")
    agree(b, node, "updates", updates.shape, indices.shape)
    _within(b, node, indices, data, axis)
    combine = _combine(b, node, data.dtype)
    if fills_slice(data, indices.shape, axis) and (index := one_number(b, indices)) is not None:
        return write_slice(b, data, *wrapped(b, index, data.shape[axis]), updates.squeeze([axis]), axis, combine)
    if b.many_threads and can_search(data, indices, axis, axis + 1):
        return by_axis(b, data, indices, updates, axis, node.attr("reduction", "none"))
    indices = b.array(indices)

    def place(at: list[Scalar]) -> tuple[list[Scalar], Scalar]:
        target, inside = wrapped(b, b.at(indices, at), data.shape[axis])
        return [target if d == axis else i for d, i in enumerate(at)], inside

    return _scatter(b, combine, data, updates, place)


@op("ScatterND", since=11)
def scatter_nd(b: Builder, node: Node, data: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    """data[indices[i]] = updates[i]: the last dimension of indices names positions on the first ones of data."""
    if indices.rank == 0:
        node.wrong("the indices have no dimensions")
    depth = indices.shape[-1]
    if not isinstance(depth, int):
        node.unsupported(
            "the number of coordinates is known at run time only; state the shape of indices in the model (value_info)"
        )
    if depth > data.rank:
        node.wrong(f"the last dimension of indices is {depth}, but data has {data.rank} dimensions")
    outer = indices.rank - 1
    if updates.rank != outer + data.rank - depth:
        node.wrong(f"updates has {updates.rank} dimensions, not {outer + data.rank - depth}")
    agree(b, node, "updates", updates.shape, (*indices.shape[:-1], *data.shape[depth:]))
    combine = _combine(b, node, data.dtype)
    if depth == 1 and fills_slice(data, [prod(indices.shape), *data.shape[1:]], 0):
        index, row = b.item(b.reshape(indices, [1])), b.reshape(updates, data.shape[1:])
        return write_slice(b, data, *wrapped(b, index, data.shape[0]), row, 0, combine)
    if b.many_threads and can_search(data, indices, 0, depth):
        return by_rows(b, data, indices, updates, node.attr("reduction", "none"))
    indices = b.array(indices)

    def place(at: list[Scalar]) -> tuple[list[Scalar], Scalar]:
        good, target = b.math.scalar(1, BOOL), []
        for d in range(depth):
            position, inside = wrapped(b, b.at(indices, [*at[:outer], d]), data.shape[d])
            good = b.math.logical_and(good, inside)
            target.append(position)
        return [*target, *at[outer:]], good

    return _scatter(b, combine, data, updates, place)


@op("TensorScatter", since=24)
def tensor_scatter(b: Builder, node: Node, cache: Tensor, update: Tensor, starts: Tensor | None = None) -> Tensor:
    """A cache with new entries from a position of its own in each batch; beyond the end, "circular" begins anew."""
    axis = node.axis(node.attr("axis", -2), cache.rank)
    mode = node.attr("mode", "linear")
    if axis == 0 or mode not in ("linear", "circular"):
        node.wrong(f"axis {axis} is the batch's" if axis == 0 else f"mode {mode} is neither linear nor circular")
    others = [d for d in range(cache.rank) if d != axis]
    agree(b, node, "update", [update.shape[d] for d in others], [cache.shape[d] for d in others])
    old, new = b.array(cache), b.array(update)
    starts = Tensor.known(np.zeros(1, np.int64)) if starts is None else starts
    starts = b.array(b.broadcast(starts, [cache.shape[0]]))
    size, length = b.idx(cache.shape[axis]), b.idx(update.shape[axis])
    if mode == "linear":
        _check_room(b, node, starts, size - length)

    def element(m, *at: Scalar) -> Scalar:
        """The entry of the update that falls on this position, if one does."""
        offset = at[axis] - m.cast(b.at(starts, [at[0]]), INDEX)
        offset = m.where(offset < 0, offset + size, offset) if mode == "circular" else offset
        inside = m.logical_and(offset >= 0, offset < length)
        offset = m.maximum(m.minimum(offset, length - 1), 0)
        read: Sequence = [offset if d == axis else i for d, i in enumerate(at)]
        return m.where(inside, b.at(new, read), b.at(old, at))

    return b.produce(cache.shape, cache.dtype, element)


def _check_room(b: Builder, node: Node, starts: Tensor, limit: Scalar) -> None:
    m = b.math

    def inside(at: list[Scalar], good: Scalar) -> list[Scalar]:
        start = m.cast(b.at(starts, at), INDEX)
        return [m.logical_and(good, m.logical_and(start >= 0, start <= limit))]

    (good,) = b.nest(starts.shape, [m.scalar(1, BOOL)], inside)
    b.require(good, "the update does not fit into the cache")

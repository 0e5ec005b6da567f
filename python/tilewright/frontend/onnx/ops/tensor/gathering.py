# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gather and its kin: embeddings, picking positions. Negative indices count from the end, others end the run."""

from __future__ import annotations

import numpy as np

from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.ops.common.bounds import check_indices
from tilewright.frontend.onnx.ops.tensor.movement import part
from tilewright.frontend.onnx.registry import Builder, Node, op


@op("Gather")
def gather(b: Builder, node: Node, x: Tensor, indices: Tensor) -> Tensor:
    """Rows of x along `axis`; known consecutive indices are a slice."""
    axis = node.axis(node.attr("axis", 0), x.rank)
    extent = x.shape[axis]
    check_indices(b, node, indices, extent, axis)
    if not indices.is_known or not isinstance(extent, int):
        return b.gather(x, indices, axis)
    wanted = indices.numpy().astype(np.int64)
    wanted = np.where(wanted < 0, wanted + extent, wanted)
    run = wanted.reshape(-1)
    entries = None if x.is_known else b.entries(x)
    if entries and wanted.ndim <= 1 and run.size:  # sizes stay sizes
        picked = b.vector([entries[i] for i in run], x.dtype)
        return picked if wanted.ndim else picked.squeeze([0])
    if run.size and wanted.ndim <= 1 and np.array_equal(run, np.arange(run[0], run[0] + run.size)):
        piece = part(b, x, axis, int(run[0]), run.size)
        return piece if wanted.ndim else piece.squeeze([axis])
    return b.gather(x, Tensor.known(wanted), axis)


@op("GatherElements", since=11)
def gather_elements(b: Builder, node: Node, x: Tensor, indices: Tensor) -> Tensor:
    """x[i][indices[i][j]] and so on: an index for each element of the result."""
    if x.rank != indices.rank or x.rank == 0:
        node.wrong(f"data has {x.rank} dimensions, indices have {indices.rank}; both need as many, and at least one")
    axis = node.axis(node.attr("axis", 0), x.rank)
    for d, (n, count) in enumerate(zip(x.shape, indices.shape, strict=True)):
        if d != axis and isinstance(n, int) and isinstance(count, int):
            if count > n:
                node.wrong(f"indices have size {count} along axis {d}, data only {n}")
        elif d != axis:
            b.require(b.idx(count) <= b.idx(n), f"indices reach further along axis {d} than data")
    check_indices(b, node, indices, x.shape[axis], axis)
    if x.is_known and indices.is_known and indices.size:
        wrapped = indices.numpy() % max(1, x.shape[axis])
        return Tensor.known(np.take_along_axis(x.numpy()[_like(indices, axis)], wrapped, axis))
    b.require_elements(x.shape[axis], indices.shape, axis)
    data, places = b.stored(x), b.stored(indices)

    def body(m, *place):
        row = b.wrapped_index(b.read(places, place), x.shape[axis])
        return b.read(data, [*place[:axis], row, *place[axis + 1 :]])

    return b.produce(indices.shape, x.dtype, body)


def _like(indices: Tensor, axis: int) -> tuple[slice, ...]:
    return tuple(slice(None) if d == axis else slice(n) for d, n in enumerate(indices.shape))


@op("GatherND", since=11)
def gather_nd(b: Builder, node: Node, x: Tensor, indices: Tensor) -> Tensor:
    """Slices of x at coordinates along the last dimension of indices, after `batch_dims` shared dimensions."""
    batch, depth = node.attr("batch_dims", 0), indices.shape[-1]
    if not isinstance(depth, int):
        node.unsupported(
            "the number of coordinates is known at run time only, and with it the result's rank; "
            "state the shape of indices in the model (value_info)"
        )
    if batch < 0 or batch + depth > x.rank or batch >= indices.rank:
        node.wrong(f"{depth} coordinates after {batch} batch dimensions do not fit data {list(x.shape)}")
    for d in range(batch):
        b.require_same(x.shape[d], indices.shape[d], f"batch dimension {d} differs")
    lead, along = indices.rank - 1, list(range(batch, batch + depth))
    shape = (*indices.shape[:-1], *x.shape[batch + depth :])
    for j, d in enumerate(along):
        b.require_elements(x.shape[d], shape, d)
        check_indices(b, node, part(b, indices, lead, j, 1), x.shape[d], d)
    data, places = b.stored(x), b.stored(indices)

    def body(m, *place):
        rows = [b.wrapped_index(b.read(places, [*place[:lead], b.idx(j)]), x.shape[d]) for j, d in enumerate(along)]
        return b.read(data, [*place[:batch], *rows, *place[lead:]])

    return b.produce(shape, x.dtype, body)

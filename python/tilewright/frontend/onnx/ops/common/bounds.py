# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Indices that lie outside of their axis: an error of the model where they are known, the end of the run else.

What reads at such an index stays within bounds anyway (`Builder.gather` clamps), so that nothing waits for the check:
it stands behind everything else. On machines with thousands of threads (GPUs) there is none: the host would have to
wait for the numbers.
"""

from __future__ import annotations

from tilewright.frontend.builder.dims import Size
from tilewright.frontend.builder.dtypes import I64
from tilewright.frontend.builder.scalars import Scalar
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.registry import Builder, Node

#: Indices that the host looks at one by one; for more of them, a kernel finds the least and the greatest.
_FEW = 1024


def check_indices(b: Builder, node: Node, indices: Tensor, extent: Size, axis: int) -> None:
    """Demand that all indices lie among `extent` elements; negative ones count from the end.

    Args:
        b: the builder.
        node: the node that reads there.
        indices: integers.
        extent: the number of elements along the axis.
        axis: the axis, for the message.

    Raises:
        UserError: a known index lies outside. Others end the run with an error that names node, index and limits.
    """
    if indices.is_static and indices.size == 0:
        return
    if indices.is_known and isinstance(extent, int):
        wanted = indices.numpy()
        if wanted.min() < -extent or wanted.max() >= extent:
            node.wrong(f"indices reach from {wanted.min()} to {wanted.max()}, but axis {axis} has {extent} elements")
    elif not b.many_threads:
        b.at_the_end(lambda: _require(b, indices, extent, axis))


def _require(b: Builder, indices: Tensor, extent: Size, axis: int) -> None:
    lowest, highest = (b.math.cast(i, I64) for i in _extremes(b, indices))
    end = b.math.cast(b.idx(extent), I64)
    limits = f", which has {extent} elements ({-extent} to {extent - 1})" if isinstance(extent, int) else ""
    for inside in (lowest >= 0 - end, highest < end):
        b.require(inside, f"an index lies outside of axis {axis} of the data{limits}", tell=not indices.is_known)


def _extremes(b: Builder, indices: Tensor) -> tuple[Scalar, Scalar]:
    """The least and the greatest of some integers."""
    if indices.is_known:
        return b.math.scalar(int(indices.numpy().min()), I64), b.math.scalar(int(indices.numpy().max()), I64)
    if indices.size == 1:
        return b.item(indices), b.item(indices)
    if indices.is_static and indices.size <= _FEW:
        flat = b.array(b.reshape(indices, [indices.size]))

        def widen(at: list[Scalar], low: Scalar, high: Scalar) -> list[Scalar]:
            index = b.at(flat, at)
            return [b.math.minimum(low, index), b.math.maximum(high, index)]

        first = b.at(flat, [0])
        low, high = b.nest(flat.shape, [first, first], widen)
        return low, high
    low, high = (b.item(b.reduce(kind, indices, range(indices.rank), keepdims=False)) for kind in ("min", "max"))
    return low, high

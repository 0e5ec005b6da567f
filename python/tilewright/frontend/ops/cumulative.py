# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cumulative sums and products."""

from __future__ import annotations

from ..numbers import promoted
from ..registry import Builder, Node, op
from ..scalars import INDEX, Scalar
from ..tensor import Tensor


def _extents(b: Builder, node: Node, x: Tensor, axis: Tensor) -> tuple[Scalar, Scalar, Scalar]:
    """How many elements lie before, along and after an axis; it may be known at run time only."""
    m = b.math
    sizes = [b.idx(n) for n in x.shape]
    if axis.is_known:
        chosen = b.idx(node.axis(int(axis.numpy().reshape(-1)[0]), x.rank))
    else:
        given = m.cast(b.item(axis), INDEX)
        chosen = m.where(given < 0, given + x.rank, given)
        b.require(m.logical_and(chosen >= 0, chosen < x.rank), "the axis is out of range")
    outer, along, inner = b.idx(1), b.idx(1), b.idx(1)
    for d, n in enumerate(sizes):
        outer = m.where(chosen > d, outer * n, outer)
        along = m.where(chosen.eq(d), n, along)
        inner = m.where(chosen < d, inner * n, inner)
    return outer, along, inner


@op("CumSum", "CumProd", since=11)
def cumulative(b: Builder, node: Node, x: Tensor, axis: Tensor) -> Tensor:
    """The sum (product) of all elements up to each one, without it if `exclusive`, from the end if `reverse`."""
    product = node.proto.op_type == "CumProd"
    exclusive, reverse = bool(node.attr("exclusive", 0)), bool(node.attr("reverse", 0))
    if x.rank == 0:
        node.wrong("the input has no dimensions")
    if any(n == 0 for n in x.shape):
        return x
    wide = b.cast(x, promoted(x.dtype))
    outer, along, inner = _extents(b, node, x, axis)
    flat = b.array(b.reshape(wide, [x.size]))
    m, neutral = b.math, int(product)

    def step(at: list[Scalar], out: Tensor) -> list[Tensor]:
        o, i, j = at
        i = along - 1 - i if reverse else i
        here = (o * along + i) * inner + j
        first = i.eq(along - 1) if reverse else i.eq(0)
        prior = m.where(first, here, here + inner if reverse else here - inner)
        total = m.where(first, neutral, b.at(out, [prior]))
        value = b.at(flat, [prior if exclusive else here])
        value = m.where(first, neutral, value) if exclusive else value
        return [b.put(total * value if product else total + value, out, [here])]

    (result,) = b.nest([outer, along, inner], [b.full(neutral, flat.shape, wide.dtype)], step)
    return b.cast(b.reshape(result, x.shape), x.dtype)

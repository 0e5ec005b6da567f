# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cumulative sums and products."""

from __future__ import annotations

from math import prod

from tilewright.frontend.builder.dims import Size
from tilewright.frontend.builder.dtypes import promoted
from tilewright.frontend.builder.scalars import INDEX, Scalar
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.ops.common.prefix import scan
from tilewright.frontend.onnx.ops.math.sorting import inverse, last
from tilewright.frontend.onnx.registry import Builder, Node, op


def _extents(b: Builder, node: Node, x: Tensor, axis: Tensor) -> tuple[Scalar, Scalar]:
    """How many elements lie along an axis, and behind each of them; it may be known at run time only."""
    m = b.math
    if axis.size != 1:
        node.wrong(f"the axis is one number, not a tensor of shape {list(axis.shape)}")
    if axis.is_known:
        chosen = node.axis(int(axis.numpy().reshape(-1)[0]), x.rank)
        return _known(b, x.shape[chosen]), _known(b, prod(x.shape[chosen + 1 :]))
    given = m.cast(b.item(axis), INDEX)
    wanted = m.where(given < 0, given + x.rank, given)
    b.require(m.logical_and(wanted >= 0, wanted < x.rank), f"the axis is out of range for {x.rank} dimensions")
    along, inner = b.idx(1), b.idx(1)
    for d, n in enumerate(x.shape):
        along = m.where(wanted.eq(d), b.idx(n), along)
        inner = m.where(wanted < d, inner * b.idx(n), inner)
    return along, inner


def _known(b: Builder, size: Size) -> Scalar:
    """A divisor: a constant where it is one."""
    return b.math.scalar(size, INDEX) if isinstance(size, int) else b.idx(size)


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
    if b.many_threads and x.is_static and axis.is_known:
        perm = last(x, node.axis(int(axis.numpy().reshape(-1)[0]), x.rank))
        total = scan(b, "prod" if product else "sum", wide.transpose(perm), exclusive, reverse)
        return b.cast(total.transpose(inverse(perm)), x.dtype)
    along, inner = _extents(b, node, x, axis)
    flat = b.array(b.reshape(wide, [x.size]))
    m, neutral, end = b.math, int(product), b.idx(x.size) - 1

    def step(i: Scalar, out: Tensor) -> list[Tensor]:
        here = end - i if reverse else i
        place = m.rem(m.div(here, inner), along)
        first = place.eq(along - 1) if reverse else place.eq(0)
        prior = m.where(first, here, here + inner if reverse else here - inner)
        total = m.where(first, neutral, b.at(out, [prior]))
        value = b.at(flat, [prior if exclusive else here])
        value = m.where(first, neutral, value) if exclusive else value
        return [b.put(total * value if product else total + value, out, [here])]

    (result,) = b.for_(0, x.size, [b.full(neutral, flat.shape, wide.dtype)], step)
    return b.cast(b.reshape(result, x.shape), x.dtype)

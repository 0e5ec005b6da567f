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


def _along(b: Builder, x: Tensor, axis: int, product: bool, exclusive: bool, reverse: bool) -> Tensor:
    """Along a known axis: rows and columns beside it stay indices of their own, which machines may share out."""
    sizes = [prod(int(n) for n in part) for part in (x.shape[:axis], x.shape[axis : axis + 1], x.shape[axis + 1 :])]
    given, m, neutral = b.array(b.reshape(x, sizes)), b.math, int(product)

    def step(outer: Scalar, place: Scalar, inner: Scalar, out: Tensor) -> list[Tensor]:
        here = sizes[1] - 1 - place if reverse else place
        first = place.eq(0)
        prior = m.where(first, here, here + 1 if reverse else here - 1)
        total = m.where(first, neutral, b.at(out, [outer, prior, inner]))
        value = b.at(given, [outer, prior if exclusive else here, inner])
        value = m.where(first, neutral, value) if exclusive else value
        return [b.put(total * value if product else total + value, out, [outer, here, inner])]

    def columns(outer: Scalar, place: Scalar, out: Tensor) -> list[Tensor]:
        if sizes[2] == 1:
            return step(outer, place, b.idx(0), out)
        return b.for_(0, sizes[2], [out], lambda inner, now: step(outer, place, inner, now))

    def rows(outer: Scalar, out: Tensor) -> list[Tensor]:
        return b.for_(0, sizes[1], [out], lambda place, now: columns(outer, place, now))

    (result,) = b.for_(0, sizes[0], [b.full(neutral, sizes, x.dtype)], rows)
    return b.reshape(result, x.shape)


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
    if axis.size != 1:
        node.wrong(f"the axis is one number, not a tensor of shape {list(axis.shape)}")
    if any(n == 0 for n in x.shape):
        return x
    wide = b.cast(x, promoted(x.dtype))
    if b.many_threads and x.is_static and axis.is_known:
        perm = last(x, node.axis(int(axis.numpy().reshape(-1)[0]), x.rank))
        total = scan(b, "prod" if product else "sum", wide.transpose(perm), exclusive, reverse)
        return b.cast(total.transpose(inverse(perm)), x.dtype)
    if x.is_static and axis.is_known:
        at = node.axis(int(axis.numpy().reshape(-1)[0]), x.rank)
        return b.cast(_along(b, wide, at, product, exclusive, reverse), x.dtype)
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

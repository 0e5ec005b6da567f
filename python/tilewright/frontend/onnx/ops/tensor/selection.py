# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators that select by data: NonZero, Compress, OneHot, ReverseSequence."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from tilewright.frontend.builder.dims import Size
from tilewright.frontend.builder.dtypes import is_complex
from tilewright.frontend.builder.limits import check_known
from tilewright.frontend.builder.scalars import BOOL, INDEX, Scalar
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.ops.common.prefix import hits
from tilewright.frontend.onnx.ops.math.sorting import run_time_size
from tilewright.frontend.onnx.ops.tensor.scatter import agree
from tilewright.frontend.onnx.registry import Builder, Node, op


def positions_where(b: Builder, shape: tuple[Size, ...], chosen: Callable[[list[Scalar]], Scalar]) -> Tensor:
    """The indices at which a condition holds, in row-major order: a matrix with a row per dimension."""
    m = b.math
    zero, one = b.idx(0), b.idx(1)
    (count,) = b.nest(shape, [zero], lambda at, count: [count + m.where(chosen(at), one, zero)])
    found = b.blank([len(shape), b.size(count)], np.int64)

    def collect(at: list[Scalar], count: Scalar, found: Tensor) -> list:
        def keep() -> list:
            result = found
            for d, i in enumerate(at):
                result = b.put(m.cast(i, result.dtype), result, [d, count])
            return [count + 1, result]

        return b.if_(chosen(at), keep, lambda: [count, found])

    return b.nest(shape, [zero, found], collect)[1]


def nonzero(b: Builder, x: Scalar) -> Scalar:
    """Whether a number of any type is not 0."""
    m = b.math
    if is_complex(x.dtype):
        return m.logical_not(m.logical_and(m.real(x).eq(0), m.imag(x).eq(0)))
    return x if x.dtype == BOOL else m.logical_not(x.eq(0))


@op("NonZero", since=9)
def non_zero(b: Builder, node: Node, x: Tensor) -> Tensor:
    """Indices of the elements that are not 0; their number is known at run time only."""
    x = b.reshape(x, [1]) if x.rank == 0 else x
    if x.is_known:
        return Tensor.known(np.array(np.nonzero(x.numpy()), np.int64))
    if b.many_threads and _can_count(x):
        return _found_at_once(b, x)
    x = b.array(x)
    return positions_where(b, x.shape, lambda at: nonzero(b, b.at(x, at)))


def _can_count(x: Tensor) -> bool:
    """Whether a tensor's elements are counted in parallel."""
    return x.is_static and x.size != 0 and not is_complex(x.dtype)


def _found_at_once(b: Builder, x: Tensor) -> Tensor:
    """The indices of the elements that are not 0, by prefix sums of them."""
    flat = b.reshape(x, [x.size])
    places, count = hits(b, b.elementwise(lambda m, v: m.cast(v, BOOL), flat, dtype=BOOL))
    sizes = [int(n) for n in x.shape]
    steps = [prod(sizes[d + 1 :]) for d in range(x.rank)]
    columns = [Tensor.known(np.array(numbers, np.int64)).unsqueeze([1]) for numbers in (steps, sizes)]

    def index(m, place, step, size):
        return m.rem(m.div(place, step), size)

    rows = b.elementwise(index, places.unsqueeze([0]), *columns)
    return b.first(rows, b.math.cast(b.item(count), INDEX), axis=1)


@op("Compress", since=9)
def compress(b: Builder, node: Node, x: Tensor, condition: Tensor) -> Tensor:
    """The slices along `axis` (or the elements of all of x) whose condition holds; a short condition ends early."""
    if node.attr("axis") is None:
        x, axis = b.reshape(x, [x.size]), 0
    else:
        axis = node.axis(node.attr("axis"), x.rank)
    if condition.rank != 1 or x.rank == 0:
        node.wrong(f"condition {list(condition.shape)}, input {list(x.shape)}: a vector and some dimensions are needed")
    if isinstance(condition.shape[0], int) and isinstance(x.shape[axis], int):
        if condition.shape[0] > x.shape[axis]:
            node.wrong(f"the condition has {condition.shape[0]} entries, but axis {axis} has {x.shape[axis]}")
    else:
        b.require(b.idx(condition.shape[0]) <= b.idx(x.shape[axis]), "the condition has more entries than the axis")
    if condition.is_known:
        return b.gather(x, Tensor.known(np.flatnonzero(condition.numpy()).astype(np.int64)), axis)
    if b.many_threads and _can_count(condition):
        positions = _found_at_once(b, condition)
    else:
        condition = b.array(condition)
        positions = positions_where(b, condition.shape, lambda at: b.at(condition, at))
    x = b.array(x)

    def element(m, *at: Scalar) -> Scalar:
        source = b.at(positions, [0, at[axis]])
        return b.at(x, [source if d == axis else i for d, i in enumerate(at)])

    shape = [positions.shape[1] if d == axis else n for d, n in enumerate(x.shape)]
    return b.produce(shape, x.dtype, element)


@op("OneHot", since=9)
def one_hot(b: Builder, node: Node, indices: Tensor, depth: Tensor, values: Tensor) -> Tensor:
    """values[1] at the index along a new axis, values[0] elsewhere; indices beyond the depth give no one."""
    axis = node.axis(node.attr("axis", -1), indices.rank + 1)
    size = run_time_size(b, node, depth, 0, axis)
    if isinstance(size, int):
        return _one_hot_of(b, indices, size, values, axis)
    source, pair = b.array(indices), b.array(values)
    shape = (*indices.shape[:axis], size, *indices.shape[axis:])

    def element(m, *at: Scalar) -> Scalar:
        wanted = m.cast(m.cast(b.at(source, [*at[:axis], *at[axis + 1 :]]), np.dtype(np.int64)), INDEX)
        wanted = m.where(wanted < 0, wanted + b.idx(size), wanted)
        return m.where(wanted.eq(at[axis]), b.at(pair, [1]), b.at(pair, [0]))

    return b.produce(shape, values.dtype, element)


def _one_hot_of(b: Builder, indices: Tensor, size: int, values: Tensor, axis: int) -> Tensor:
    """The same for a known depth: a comparison with all positions."""
    wanted = b.cast(indices, np.int64)
    wanted = b.elementwise(lambda m, i: m.where(i < 0, i + size, i), wanted).unsqueeze([axis])
    check_known(size)
    positions = Tensor.known(np.arange(size).reshape(-1, *[1] * (indices.rank - axis)))
    off, on = (b.slice(values, [i], [1], [1]) for i in (0, 1))
    hot = b.elementwise(lambda m, w, p: m.eq(w, p), wanted, positions, dtype=BOOL)
    return b.elementwise(lambda m, h, on, off: m.where(h, on, off), hot, on, off, dtype=values.dtype)


@op("ReverseSequence", since=10)
def reverse_sequence(b: Builder, node: Node, x: Tensor, lengths: Tensor) -> Tensor:
    """The first entries along the time axis, as many as each batch says, in reverse order."""
    time, batch = node.axis(node.attr("time_axis", 0), x.rank), node.axis(node.attr("batch_axis", 1), x.rank)
    if {time, batch} != {0, 1}:
        node.wrong(f"time_axis {time} and batch_axis {batch} must be the first two dimensions")
    agree(b, node, "sequence_lens", lengths.shape, [x.shape[batch]])
    source, counts = b.array(x), b.array(lengths)

    def element(m, *at: Scalar) -> Scalar:
        count = m.cast(b.at(counts, [at[batch]]), INDEX)
        count = m.minimum(count, b.idx(x.shape[time]))
        back = m.where(at[time] < count, count - 1 - at[time], at[time])
        return b.at(source, [back if d == time else i for d, i in enumerate(at)])

    return b.produce(x.shape, x.dtype, element)

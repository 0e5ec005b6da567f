# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators that sort: TopK by insertion or a heap (by ranks for GPUs), Unique by a merge sort of positions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tilewright.frontend.builder.dims import Size
from tilewright.frontend.builder.dtypes import is_complex, is_float
from tilewright.frontend.builder.loops import Index
from tilewright.frontend.builder.scalars import INDEX, Scalar
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.ops.common.ranking import can_rank, first_by_rank
from tilewright.frontend.onnx.registry import Builder, Node, op

Follows = Callable[[Scalar, Scalar], Scalar]

#: Elements that are kept in order while the others pass by; for more of them, a heap moves fewer.
_INSERTED = 32


def less(b: Builder, x: Scalar, y: Scalar) -> Scalar:
    """NumPy's order of numbers: NaN is larger than all others and equal to itself."""
    m = b.math
    if not is_float(x.dtype):
        return x < y
    return m.logical_or(x < y, m.logical_and(m.is_nan(y), m.logical_not(m.is_nan(x))))


def scratch(b: Builder, count: Size) -> list[Tensor]:
    """The two vectors of positions that `argsort` works in."""
    return [b.blank([count], np.int64), b.blank([count], np.int64)]


def argsort(b: Builder, count: Size, follows: Follows, buffers: Sequence[Tensor]) -> list[Tensor]:
    """The positions 0 .. count - 1 in order: a stable merge sort from the bottom up.

    Args:
        b: the builder.
        count: the number of elements.
        follows: whether the element at the first position must come behind the one at the second.
        buffers: from `scratch`; they are overwritten.

    Returns:
        Buffers, the first of which holds the positions.
    """
    m, total = b.math, b.idx(count)
    order, spare = buffers
    (order,) = b.for_(0, count, [order], lambda i, order: [b.put(m.cast(i, order.dtype), order, [i])])

    def merge(width: Scalar, order: Tensor, spare: Tensor) -> list[Tensor]:
        """Merge each two neighbouring runs of `width` positions into `spare`, and copy it back."""

        def step(k: Scalar, left: Scalar, middle: Scalar, right: Scalar, high: Scalar, spare: Tensor) -> list:
            fresh = k.eq(high)  # two new runs: from here to the middle, and from there to the next `high`
            left, middle = m.where(fresh, k, left), m.where(fresh, m.minimum(k + width, total), middle)
            right, high = m.where(fresh, middle, right), m.where(fresh, m.minimum(k + width * 2, total), high)
            a = b.at(order, [m.minimum(left, total - 1)])
            c = b.at(order, [m.minimum(right, total - 1)])
            behind = m.logical_or(right >= high, m.logical_not(follows(m.cast(a, INDEX), m.cast(c, INDEX))))
            first = m.logical_and(left < middle, behind)
            spare = b.put(m.where(first, a, c), spare, [k])
            return [m.where(first, left + 1, left), middle, m.where(first, right, right + 1), high, spare]

        spare = b.for_(0, count, [*[b.idx(0)] * 4, spare], step)[4]
        (order,) = b.for_(0, count, [order], lambda i, order: [b.put(b.at(spare, [i]), order, [i])])
        return [order, spare]

    def double(_: Scalar, width: Scalar, *both: Tensor) -> list:
        return [width * 2, *merge(width, *both)]

    return b.for_(0, doublings(b, count), [b.idx(1), order, spare], double)[1:]


def doublings(b: Builder, count: Size) -> Index:
    """How often 1 is doubled until it reaches a count."""
    if isinstance(count, int):
        return max(count - 1, 0).bit_length()
    start = [b.idx(1), b.idx(0)]
    return b.while_(start, lambda width, _: width < b.idx(count), lambda width, n: [width * 2, n + 1])[1]


def _sink(b: Builder, heap: Tensor, size: Scalar, place: Scalar, first: Follows) -> tuple[Scalar, Scalar, Tensor]:
    """Exchange the element at one place with that of its children that comes first, if one comes before it.

    Returns:
        whether there was one, where the element lies then, and the heap.
    """
    m = b.math
    left, right = (m.minimum(place * 2 + d, size - 1) for d in (1, 2))
    a, c, here = b.at(heap, [left]), b.at(heap, [right]), b.at(heap, [place])
    second = first(m.cast(c, INDEX), m.cast(a, INDEX))
    child, where = m.where(second, c, a), m.where(second, right, left)
    sink = m.logical_and(place * 2 + 1 < size, first(m.cast(child, INDEX), m.cast(here, INDEX)))
    heap = b.put(m.where(sink, child, here), heap, [place])
    heap = b.put(m.where(sink, here, child), heap, [where])
    return sink, m.where(sink, where, place), heap


def sift(b: Builder, heap: Tensor, size: Scalar, place: Scalar, first: Follows, levels: Index) -> Tensor:
    """`heap` with the element at one place sunk, by at most `levels`, until none of its children comes first."""

    def step(_: Scalar, place: Scalar, heap: Tensor) -> list:
        return [*_sink(b, heap, size, place, first)[1:]]

    return b.for_(0, levels, [place, heap], step)[1]


def heapify(b: Builder, heap: Tensor, size: Scalar, first: Follows) -> Tensor:
    """The first `size` elements as a heap: each sinks, from the last parent up to the root (Floyd, 1964).

    One loop and not two, so that the heap is handed on in place: all of them sink by fewer than `size` levels together.
    """
    m, half = b.math, b.math.div(size, 2)

    def step(_: Scalar, parent: Scalar, place: Scalar, heap: Tensor) -> list:
        sank, place, heap = _sink(b, heap, size, place, first)
        before = m.where(parent.eq(0), 0, parent - 1)  # the root once more does no harm
        return [m.where(sank, parent, before), m.where(sank, place, before), heap]

    last = m.maximum(half, 1) - 1
    return b.for_(0, half + size, [last, last, heap], step)[2]


def best(b: Builder, count: Size, size: Size, follows: Follows, heap: Tensor) -> Tensor:
    """The first `size` positions of `argsort`'s order: a heap of the best ones so far, the worst at its root.

    Most elements cost one comparison: a few of many are found in about as many steps as there are elements.
    """
    m, total = b.math, b.idx(size)
    levels = doublings(b, size + 1)

    def worse(i: Scalar, j: Scalar) -> Scalar:
        return m.logical_or(follows(i, j), m.logical_and(i > j, m.logical_not(follows(j, i))))

    def enter(i: Scalar, heap: Tensor) -> list[Tensor]:
        better = follows(m.cast(b.at(heap, [0]), INDEX), i)

        def replace() -> list[Tensor]:
            return [sift(b, b.put(m.cast(i, heap.dtype), heap, [0]), total, b.idx(0), worse, levels)]

        return b.if_(better, replace, lambda: [heap])

    def take(k: Scalar, heap: Tensor) -> list[Tensor]:
        end = total - 1 - k
        worst, other = b.at(heap, [0]), b.at(heap, [end])
        heap = b.put(worst, b.put(other, heap, [0]), [end])
        return [sift(b, heap, m.maximum(end, 1), b.idx(0), worse, levels)]

    (heap,) = b.for_(0, size, [heap], lambda i, heap: [b.put(m.cast(i, heap.dtype), heap, [i])])
    heap = heapify(b, heap, total, worse)
    start = m.where(total.eq(0), b.idx(count), total)
    (heap,) = b.for_(start, count, [heap], enter)
    return b.for_(0, size, [heap], take)[0]


def inserted(
    b: Builder, rows: Tensor, at: list[Scalar], size: int, largest: bool, values: Tensor, positions: Tensor
) -> list[Tensor]:
    """The first `size` elements of a row, always in order: each of the others is compared with the last of them.

    Few of many enter, and one that does moves those behind it. Of equal elements the one that came first stays first.

    Args:
        b: the builder.
        rows: the elements, along the last dimension.
        at: the row's place.
        size: how many, at least one.
        largest: in falling order.
        values: where they are written, by row.
        positions: where their positions are written.
    """
    m, count = b.math, rows.shape[-1]

    def behind(kept: Scalar, x: Scalar) -> Scalar:
        return less(b, kept, x) if largest else less(b, x, kept)

    def step(i: Scalar, worst: Scalar, values: Tensor, positions: Tensor) -> list:
        x, end = b.at(rows, [*at, i]), m.minimum(i, size - 1)

        def enter() -> list:
            def moves(j: Scalar, values: Tensor, _: Tensor) -> Scalar:
                return m.logical_and(j > 0, behind(b.at(values, [*at, m.maximum(j, 1) - 1]), x))

            def move(j: Scalar, values: Tensor, positions: Tensor) -> list:
                kept, position = b.at(values, [*at, j - 1]), b.at(positions, [*at, j - 1])
                return [j - 1, b.put(kept, values, [*at, j]), b.put(position, positions, [*at, j])]

            place, *moved = b.while_([end, values, positions], moves, move)
            moved = [b.put(x, moved[0], [*at, place]), b.put(m.cast(i, np.dtype(np.int64)), moved[1], [*at, place])]
            return [b.at(moved[0], [*at, end]), *moved]

        better = m.logical_or(i < size, behind(worst, x))
        return b.if_(better, enter, lambda: [worst, values, positions])

    head = b.at(rows, [*at, 0])
    values = b.put(head, values, [*at, 0])  # `moves` reads it even where nothing lies before the place
    return b.for_(0, count, [head, values, positions], step)[1:]


def last(x: Tensor, axis: int) -> list[int]:
    """The permutation that moves `axis` behind all others."""
    return [*(d for d in range(x.rank) if d != axis), axis]


def inverse(perm: Sequence[int]) -> list[int]:
    """The permutation that undoes another."""
    return [perm.index(d) for d in range(len(perm))]


def run_time_size(b: Builder, node: Node, x: Tensor, output: int, axis: int) -> Size:
    """A size that an input of one integer gives: known, declared by the model (and checked), or a Dim."""
    if x.is_known:
        return int(x.numpy().reshape(-1)[0])
    size = b.math.cast(b.math.cast(b.item(x), np.dtype(np.int64)), INDEX)
    b.require(size >= 0, "the number of results (k, depth) is negative")
    return b.settle([b.size(size)], [node.declared_size(output, axis)], node)[0]


def _k(b: Builder, node: Node, x: Tensor, k: Tensor | None, axis: int) -> Size:
    given = Tensor.known([node.attr("k")], np.int64) if k is None else k
    size = run_time_size(b, node, given, 0, axis)
    if isinstance(size, int) and isinstance(x.shape[axis], int):
        if not 0 <= size <= x.shape[axis]:
            node.wrong(f"k is {size}, but axis {axis} has {x.shape[axis]} elements")
    else:
        b.require(b.idx(size) <= b.idx(x.shape[axis]), f"k exceeds the size of axis {axis}")
    return size


@op("TopK")
def top_k(b: Builder, node: Node, x: Tensor, k: Tensor | None = None) -> list[Tensor]:
    """The k largest or smallest along an axis, in order; of equal ones the first. NaN counts as the largest."""
    axis = node.axis(node.attr("axis", -1), x.rank)
    largest = bool(node.attr("largest", 1))
    size = _k(b, node, x, k, axis)
    perm = last(x, axis)
    rows = x.transpose(perm)
    if b.many_threads and rows.is_static and isinstance(size, int) and can_rank(int(rows.shape[-1]), size):
        found = first_by_rank(b, rows, size, largest)
        return [part.transpose(inverse(perm)) for part in found]
    rows = b.array(rows)
    *outer, count = rows.shape
    out = [b.blank([*outer, size], x.dtype), b.blank([*outer, size], np.int64)]
    if isinstance(size, int) and 0 < size <= _INSERTED:
        found = b.nest(outer, out, lambda at, *kept: inserted(b, rows, at, size, largest, *kept))
        return [part.transpose(inverse(perm)) for part in found]

    def row(at: list[Scalar], values: Tensor, positions: Tensor, order: Tensor) -> list[Tensor]:
        def follows(i: Scalar, j: Scalar) -> Scalar:
            one, other = b.at(rows, [*at, i]), b.at(rows, [*at, j])
            return less(b, one, other) if largest else less(b, other, one)

        order = best(b, count, size, follows, order)

        def take(i: Scalar, values: Tensor, positions: Tensor) -> list[Tensor]:
            position = b.at(order, [i])
            return [b.put(b.at(rows, [*at, position]), values, [*at, i]), b.put(position, positions, [*at, i])]

        return [*b.for_(0, size, [values, positions], take), order]

    values, positions, _ = b.nest(outer, [*out, b.blank([size], np.int64)], row)
    return [values.transpose(inverse(perm)), positions.transpose(inverse(perm))]


def _slices_less(b: Builder, x: Tensor) -> Follows:
    """Whether one row of a matrix comes before another, by their first elements that differ."""
    m, width = b.math, b.idx(x.shape[1])

    def compare(i: Scalar, j: Scalar) -> Scalar:
        def pair(p: Scalar) -> tuple[Scalar, Scalar]:
            p = m.minimum(p, width - 1)
            return b.at(x, [i, p]), b.at(x, [j, p])

        def alike(p: Scalar) -> Scalar:
            one, other = pair(p)
            return m.logical_not(m.logical_or(less(b, one, other), less(b, other, one)))

        (p,) = b.while_([b.idx(0)], lambda p: m.logical_and(p < width, alike(p)), lambda p: [p + 1])
        return less(b, *pair(p))

    return compare


def _elements_less(b: Builder, x: Tensor) -> Follows:
    return lambda i, j: less(b, b.at(x, [i]), b.at(x, [j]))


def _groups(b: Builder, count: Size, before: Follows, in_order: bool) -> tuple[Tensor, Scalar]:
    """The number of each position's group of equal elements, and how many groups there are.

    Groups are numbered by their elements' order, or by where they first occur.
    """
    m = b.math
    order, spare = argsort(b, count, lambda i, j: before(j, i), scratch(b, count))

    def number(k: Scalar, group: Scalar, leader: Scalar, groups: Tensor) -> list:
        """Walk in order: the group of each position by number, or by its first position."""
        here, prior = b.at(order, [k]), b.at(order, [m.maximum(k - 1, 0)])
        fresh = before(m.cast(prior, INDEX), m.cast(here, INDEX))
        leader = m.where(m.logical_or(fresh, k.eq(0)), here, leader)
        group = m.where(fresh, group + 1, group)
        return [group, leader, b.put(group if in_order else leader, groups, [here])]

    zero = m.scalar(0, np.dtype(np.int64))
    group, _, groups = b.for_(0, count, [zero, zero, spare], number)
    if in_order:
        return groups, m.where(b.idx(count).eq(0), 0, group + 1)

    def renumber(i: Scalar, group: Scalar, groups: Tensor) -> list:
        leader = b.at(groups, [i])  # a position before i already holds its group's number
        first = leader.eq(m.cast(i, leader.dtype))
        number = m.where(first, group, b.at(groups, [leader]))
        return [m.where(first, group + 1, group), b.put(number, groups, [i])]

    total, groups = b.for_(0, count, [zero, groups], renumber)
    return groups, total


@op("Unique", since=11)
def unique(b: Builder, node: Node, x: Tensor) -> list[Tensor]:
    """Different elements (or slices along `axis`), their first positions, each element's group, the counts."""
    if is_complex(x.dtype):
        node.unsupported("complex numbers have no order")
    flat = node.attr("axis") is None
    axis = 0 if flat else node.axis(node.attr("axis"), x.rank)
    perm = [axis, *(d for d in range(x.rank) if d != axis)]
    source = b.array(b.reshape(x, [x.size])) if flat else b.array(x.transpose(perm))
    count, *rest = source.shape
    if flat and count == 0:
        return [Tensor.known([], dtype) for dtype in (x.dtype, np.int64, np.int64, np.int64)]
    if any(n == 0 for n in source.shape):
        node.unsupported(f"slices without elements, of {list(x.shape)}, are all alike: they have no lowering")
    if rest:
        before = _slices_less(b, b.array(b.reshape(source, [count, source.size // count])))
    else:
        before = _elements_less(b, source)

    groups, total = _groups(b, count, before, bool(node.attr("sorted", 1)))
    size = b.size(total)
    counts = b.full(0, [size], np.int64)

    def collect(k: Scalar, firsts: Tensor, counts: Tensor) -> list[Tensor]:
        """From the last position to the first: the first one stays."""
        i = b.idx(count) - 1 - k
        group = b.at(groups, [i])
        return [
            b.put(b.math.cast(i, firsts.dtype), firsts, [group]),
            b.put(b.at(counts, [group]) + 1, counts, [group]),
        ]

    firsts, counts = b.for_(0, count, [b.blank([size], np.int64), counts], collect)
    shape = [size, *rest]
    chosen = b.produce(shape, x.dtype, lambda m, g, *at: b.at(source, [b.at(firsts, [g]), *at]))
    y = chosen if flat else chosen.transpose(inverse(perm))
    return [y, firsts, groups, counts]

# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Poolings over windows and over everything."""

from __future__ import annotations

import functools
import operator
from math import prod

import numpy as np

from tilewright.frontend.builder.dims import is_static
from tilewright.frontend.builder.dtypes import is_float, lowest
from tilewright.frontend.builder.emit import Space
from tilewright.frontend.builder.limits import check_copies, check_known
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.ops.common.precision import widened
from tilewright.frontend.onnx.ops.common.window import Window, loop_extents, window
from tilewright.frontend.onnx.ops.math.reduction import mean
from tilewright.frontend.onnx.registry import Builder, Node, op


def pool(b: Builder, x: Tensor, win: Window, fill: float, body) -> Tensor:
    """Reduce windows of [n, c, spatial...], padded with `fill`, which is the reduction's neutral element too."""
    order = x.full_order()
    return _reduce_windows(b, [win.padded(b, x, fill, order)], x.shape[:2], win, x.dtype, (fill, body), order)


def _reduce_windows(b: Builder, xs, outer, win: Window, dtype, reduction, order) -> Tensor:
    """The reduction (neutral, body) of one generic: xs[0] is the padded input, xs[1] as the result, xs[2] spatial."""
    neutral, body = reduction
    rank = len(win.kernel) + 2
    spatial, taps = list(range(2, rank)), list(range(rank, 2 * rank - 2))
    space = Space([*outer, *win.out, *win.kernel], frozenset(taps))
    reads = win.reads(spatial, taps)
    places = [[0, 1, *reads], range(rank), reads]
    inputs = [*zip(xs, places, strict=False), *loop_extents(b, list(zip(taps, win.kernel, strict=True)))]
    whole = lambda m, *values: body(m, *values[: len(xs)], values[-1])  # noqa: E731
    return b.generic(space, inputs, range(rank), dtype, whole, neutral, order)


@op("MaxPool")
def max_pool(b: Builder, node: Node, x: Tensor) -> list[Tensor]:
    """The maximum of each window, and where it is; padding never wins."""
    win = window(node, x, node.attr("kernel_shape"))
    top = pool(b, x, win, lowest(x.dtype), lambda m, x, acc: m.maximum(acc, x))
    if len(node.proto.output) < 2 or not node.proto.output[1]:
        return [top]
    if not is_static(x.shape):
        node.unsupported("the places of maxima need sizes that are known at compile time")
    return [top, _positions(b, x, win, top, bool(node.attr("storage_order", 0)))]


def _positions(b: Builder, x: Tensor, win: Window, top: Tensor, columns: bool) -> Tensor:
    """The place of each maximum in the flattened input: the first of equal ones, row by row.

    With `columns`, places count the first spatial dimension fastest.
    """
    assert is_static(x.shape)
    extents, none = x.shape[2:], prod(x.shape[2:])
    order = x.full_order()
    padded = win.padded(b, x, lowest(x.dtype), order)
    assert is_static(padded.shape)
    check_known(none)
    places = np.arange(none, dtype=np.int64).reshape(extents)
    outline = padded.shape[2:]
    pads = [(int(a), max(n - int(a) - e, 0)) for n, a, e in zip(outline, win.low, extents, strict=True)]
    places = np.pad(places, pads, constant_values=none)[tuple(slice(0, n) for n in outline)]

    def body(m, value, best, place, acc):
        hit = m.eq(value, best)
        if is_float(x.dtype):
            hit = m.logical_or(hit, m.logical_not(m.eq(value, value)))
        return m.minimum(acc, m.where(hit, place, none))

    xs = [padded, top, Tensor.known(places)]
    first = _reduce_windows(b, xs, x.shape[:2], win, np.dtype(np.int64), (none, body), order)
    check_known(*x.shape[:2])
    planes = np.arange(prod(x.shape[:2]), dtype=np.int64).reshape(*x.shape[:2], *[1] * len(extents)) * none

    def flat(m, place, plane):
        return (_by_columns(m, place, extents) if columns else place) + plane

    return b.elementwise(flat, first, Tensor.known(planes))


def _by_columns(m, place, extents):
    """A row-major place as one that counts the first dimension fastest."""
    coordinates = []
    for n in reversed(extents):
        coordinates.append(m.rem(place, n))
        place = m.div(place, n)
    return functools.reduce(lambda total, c: total * c[1] + c[0], zip(coordinates, reversed(extents), strict=True), 0)


def _counts(b: Builder, x: Tensor, win: Window, include_pad: bool) -> Tensor:
    """Elements under each window, as a tensor that broadcasts with the output."""
    rank, result = len(win.kernel), Tensor.known(1.0, x.dtype)
    for i, extent in enumerate(x.shape[2:]):
        low, high = (0, win.low[i] + extent + win.high[i]) if include_pad else (win.low[i], win.low[i] + extent)
        check_copies(win.kernel[i], "elements of a window")
        taps = [k * win.dilations[i] for k in range(win.kernel[i])]

        def count(m, total, place, end, first=low, stride=win.strides[i], taps=taps):
            reads = [place * stride + t for t in taps]
            inside = [m.logical_and(at >= first, at < end) for at in reads]
            return total * functools.reduce(operator.add, (m.cast(hit, x.dtype) for hit in inside))

        places = b.positions(win.out[i]).unsqueeze(range(1, rank - i))
        result = b.elementwise(count, result, places, b.size_tensor(high))
    return result


@op("AveragePool")
@widened
def average_pool(b: Builder, node: Node, x: Tensor) -> Tensor:
    """The mean of each window, with or without its padding."""
    win = window(node, x, node.attr("kernel_shape"))
    total = pool(b, x, win, 0.0, lambda m, x, acc: acc + x)
    counts = _counts(b, x, win, bool(node.attr("count_include_pad", 0)))
    if counts.is_known and counts.numpy().flat[0] and (counts.numpy() == counts.numpy().flat[0]).all():
        factor = 1.0 / float(counts.numpy().flat[0])
        return b.elementwise(lambda m, s: s * factor, total)
    return b.elementwise(lambda m, s, c: s / c, total, counts)


def _powers(b: Builder, x: Tensor, p: float) -> Tensor:
    if p == 2:
        return b.elementwise(lambda m, x: x * x, x)
    return b.elementwise(lambda m, x: m.absolute(x) if p == 1 else m.power(m.absolute(x), float(p)), x)


def _root(b: Builder, x: Tensor, p: float) -> Tensor:
    if p == 1:
        return x
    return b.elementwise(lambda m, x: m.sqrt(x) if p == 2 else m.power(x, 1.0 / p), x)


def _order(node: Node) -> float:
    p = node.attr("p", 2)
    return p if p > 0 else node.wrong(f"there is no norm of order {p}")


@op("LpPool")
@widened
def lp_pool(b: Builder, node: Node, x: Tensor) -> Tensor:
    """The p-norm of each window."""
    p, win = _order(node), window(node, x, node.attr("kernel_shape"))
    return _root(b, pool(b, _powers(b, x, p), win, 0.0, lambda m, x, acc: acc + x), p)


@op("GlobalLpPool")
@widened
def global_lp_pool(b: Builder, node: Node, x: Tensor) -> Tensor:
    """The p-norm over all spatial dimensions."""
    p = _order(node)
    return _root(b, b.reduce("sum", _powers(b, x, p), list(range(2, x.rank))), p)


@op("GlobalAveragePool")
@widened
def global_average_pool(b: Builder, node: Node, x: Tensor) -> Tensor:
    """The mean over all spatial dimensions."""
    return mean(b, x, list(range(2, x.rank)))


@op("GlobalMaxPool")
def global_max_pool(b: Builder, node: Node, x: Tensor) -> Tensor:
    """The maximum over all spatial dimensions."""
    return b.reduce("max", x, list(range(2, x.rank)))

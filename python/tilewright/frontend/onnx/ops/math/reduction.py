# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions, softmax and arg-max."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from tilewright.frontend.builder.builder import REDUCTIONS, neutral
from tilewright.frontend.builder.dims import Size, is_static
from tilewright.frontend.builder.dtypes import is_int, is_narrow, largest, promoted
from tilewright.frontend.builder.emit import Space
from tilewright.frontend.builder.tensor import Tensor, nothing
from tilewright.frontend.onnx.ops.common.extrema import extremum_places
from tilewright.frontend.onnx.ops.common.precision import widened
from tilewright.frontend.onnx.ops.common.runtime import Truth, axis_masks, choose, sizes, without
from tilewright.frontend.onnx.registry import Builder, Node, op

_KINDS = {"ReduceSum": "sum", "ReduceProd": "prod", "ReduceMax": "max", "ReduceMin": "min"}
_SQUARES = ("ReduceL2", "ReduceSumSquare")
_LOGS = ("ReduceLogSum", "ReduceLogSumExp")
_WIDE = np.dtype(np.float64)


@dataclass
class Axes:
    """What a node reduces.

    Attributes:
        known: the axes, or None where they are known at run time only.
        masks: then, for each dimension, whether it is reduced.
        keepdims: whether reduced dimensions stay, with size 1.
        count: how many axes there are.
    """

    known: list[int] | None
    masks: Sequence[Truth]
    keepdims: bool
    count: int

    def reduce(self, b: Builder, node: Node, kind: str, x: Tensor, keepdims: bool | None = None) -> Tensor:
        """Reduce x by sum, prod, max or min."""
        keep = self.keepdims if keepdims is None else keepdims
        if self.known == [0] and (total := b.reduced_sizes(kind, x, keep)) is not None:
            return total
        if self.known is not None:
            return b.reduce(kind, x, self.known, keep)
        if is_narrow(x.dtype) and kind in ("sum", "prod"):
            return b.cast(self._at_run_time(b, node, kind, b.cast(x, np.float32), keep), x.dtype)
        return self._at_run_time(b, node, kind, x, keep)

    def _at_run_time(self, b: Builder, node: Node, kind: str, x: Tensor, keep: bool) -> Tensor:
        """Two loops for each dimension: one over the result, one that reduces. One of them runs once."""
        outer = [choose(b, mask, 1, n) for mask, n in zip(self.masks, x.shape, strict=True)]
        inner = [choose(b, mask, n, 1) for mask, n in zip(self.masks, x.shape, strict=True)]
        if keep and self.keepdims:
            outer = b.settle(outer, node.declared(), node)
        space = Space([*outer, *inner], frozenset(range(x.rank, 2 * x.rank)))
        x = b.stored(x)

        def body(m, acc):
            places = [b.counter(space, d) + b.counter(space, d + x.rank) for d in range(x.rank)]
            return REDUCTIONS[kind][1](m, b.read(x, places), acc)

        if is_static(outer) and 0 in outer:
            total = nothing(outer, x.dtype)
        else:
            total = b.generic(space, [], range(x.rank), x.dtype, body, neutral(kind, x.dtype))
        return total if keep else self.dropped(b, node, x.shape, total)

    def dropped(self, b: Builder, node: Node, shape: Sequence[Size], total: Tensor) -> Tensor:
        """A result whose reduced dimensions were kept, without them."""
        if self.known is not None:
            return total.squeeze(self.known)
        kept = without(b, shape, self.masks, len(shape) - self.count)
        return b.reshape(total, b.settle(kept, node.declared(), node))

    def elements(self, b: Builder, x: Tensor) -> Size:
        """How many elements of x go into one of the result."""
        if self.known is not None:
            return prod(x.shape[d] for d in self.known)
        return prod(choose(b, mask, n, 1) for mask, n in zip(self.masks, x.shape, strict=True))


def _axes(b: Builder, node: Node, x: Tensor, axes: Tensor | None) -> Axes:
    given = node.attr("axes") if axes is None else sizes(b, node, axes, "axes")
    keep = bool(node.attr("keepdims", 1))
    if not given:
        chosen = [] if node.attr("noop_with_empty_axes", 0) else list(range(x.rank))
        return Axes(chosen, [], keep, len(chosen))
    if is_static(given):
        chosen = node.axes(given, x.rank)
        return Axes(chosen, [], keep, len(chosen))
    return Axes(None, axis_masks(b, given, x.rank), keep, len(given))


@op(*_KINDS)
def reduce(b: Builder, node: Node, x: Tensor, axes: Tensor | None = None) -> Tensor:
    """Sum, product, maximum, minimum."""
    return _axes(b, node, x, axes).reduce(b, node, _KINDS[node.proto.op_type], x)


@op("ReduceMean")
def reduce_mean(b: Builder, node: Node, x: Tensor, axes: Tensor | None = None) -> Tensor:
    """Sum divided by the number of elements."""
    along = _axes(b, node, x, axes)
    if along.known is not None:
        return mean(b, x, along.known, along.keepdims)
    return _divided(b, along.reduce(b, node, "sum", x), along.elements(b, x))


def mean(b: Builder, x: Tensor, axes: list[int], keepdims: bool = True) -> Tensor:
    """The mean over axes."""
    return _divided(b, b.reduce("sum", x, axes, keepdims), prod(x.shape[d] for d in axes))


def _divided(b: Builder, total: Tensor, count: Size) -> Tensor:
    if not isinstance(count, int):
        return b.elementwise(lambda m, s, n: m.div(s, n), total, b.size_tensor(count, total.dtype))
    if count == 1:
        return total
    return b.elementwise(lambda m, s: m.div(s, m.cast(_like(m, s, count), s.dtype)), total)


def _like(m, s, count: int):
    return np.asarray(count, s.dtype) if isinstance(s, np.ndarray | np.generic) else m.scalar(count, s.dtype)


def _floating(b: Builder, x: Tensor) -> Tensor:
    """Integers as floats, for roots and logarithms."""
    return b.cast(x, _WIDE) if is_int(x.dtype) else x


@op(*_SQUARES)
def reduce_squares(b: Builder, node: Node, x: Tensor, axes: Tensor | None = None) -> Tensor:
    """Sum of squares, and its root."""
    along, dtype = _axes(b, node, x, axes), x.dtype
    x = x if node.proto.op_type == "ReduceSumSquare" else _floating(b, x)
    total = along.reduce(b, node, "sum", b.elementwise(lambda m, x: x * x, x))
    if node.proto.op_type == "ReduceSumSquare":
        return total
    return b.cast(b.elementwise(lambda m, s: m.sqrt(s), total), dtype)


@op("ReduceL1")
def reduce_l1(b: Builder, node: Node, x: Tensor, axes: Tensor | None = None) -> Tensor:
    """Sum of magnitudes."""
    return _axes(b, node, x, axes).reduce(b, node, "sum", b.elementwise(lambda m, x: m.absolute(x), x))


@op(*_LOGS)
def reduce_logs(b: Builder, node: Node, x: Tensor, axes: Tensor | None = None) -> Tensor:
    """Logarithm of a sum, or of a sum of exponentials (shifted by the maximum, where it is finite)."""
    along, dtype = _axes(b, node, x, axes), x.dtype
    x = _floating(b, x)
    if node.proto.op_type == "ReduceLogSum":
        total = along.reduce(b, node, "sum", x)
        return b.cast(b.elementwise(lambda m, s: m.log(s), total), dtype)
    top = along.reduce(b, node, "max", x, keepdims=True)
    top = b.elementwise(lambda m, t: m.where(m.absolute(t) < np.inf, t, 0), top)
    powers = b.elementwise(lambda m, x, t: m.exp(x - t), x, top)
    total = along.reduce(b, node, "sum", powers, keepdims=True)
    result = b.cast(b.elementwise(lambda m, s, t: m.log(s) + t, total, top), dtype)
    return result if along.keepdims else along.dropped(b, node, x.shape, result)


def softmax(b: Builder, x: Tensor, axes: list[int], zeros: bool = False) -> Tensor:
    """exp(x - max) / sum over `axes`, with one division per row: products with the sum's reciprocal follow.

    With `zeros`, rows of which every element is -inf give zeros, not NaN: their maximum is the lowest finite number.
    Floats of 16 bits and fewer have a sum and a reciprocal in f32: two roundings fewer, and they cost a number per row.
    """
    start = -largest(x.dtype) if zeros else None
    top = b.reduce("max", x, axes, start=start)
    powers = b.elementwise(lambda m, x, t: m.exp(x - t), x, top)
    wide = promoted(x.dtype)
    total = b.reduce("sum", b.cast(powers, wide), axes)
    scale = b.elementwise(lambda m, s: m.where(m.eq(s, 0.0), 1.0, 1.0 / s) if zeros else 1.0 / s, total)
    return b.elementwise(lambda m, e, r: e * r, powers, scale, dtype=x.dtype)


def log_softmax(b: Builder, x: Tensor, axes: list[int]) -> Tensor:
    """x - max - log(sum of exp(x - max))."""
    top = b.reduce("max", x, axes)
    shifted = b.elementwise(lambda m, x, t: x - t, x, top)
    total = b.reduce("sum", b.elementwise(lambda m, d: m.exp(d), shifted), axes)
    return b.elementwise(lambda m, d, s: d - m.log(s), shifted, total)


@op("Softmax", "LogSoftmax")
@widened
def softmax_axis(b: Builder, node: Node, x: Tensor) -> Tensor:
    """Along one axis; before opset 13 over all dimensions from `axis` on."""
    old = node.version < 13
    axis = node.axis(node.attr("axis", 1 if old else -1), x.rank)
    axes = list(range(axis, x.rank)) if old else [axis]
    return (softmax if node.proto.op_type == "Softmax" else log_softmax)(b, x, axes)


@op("ArgMax", "ArgMin")
def arg_extremum(b: Builder, node: Node, x: Tensor) -> Tensor:
    """The first (or last) position of the extremum along an axis."""
    axis = node.axis(node.attr("axis", 0), x.rank)
    last = bool(node.attr("select_last_index", 0))
    places = extremum_places(b, "max" if node.proto.op_type == "ArgMax" else "min", x, [axis], last)
    return places if node.attr("keepdims", 1) or x.rank == 0 else places.squeeze([axis])

# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions, softmax and arg-max."""

from __future__ import annotations

from math import prod

import numpy as np

from ..registry import Builder, Node, op
from ..tensor import Tensor

_KINDS = {"ReduceSum": "sum", "ReduceProd": "prod", "ReduceMax": "max", "ReduceMin": "min"}
_SQUARES = ("ReduceL2", "ReduceSumSquare")
_LOGS = ("ReduceLogSum", "ReduceLogSumExp")


def _axes(node: Node, x: Tensor, axes: Tensor | None) -> list[int]:
    given = node.attr("axes") if axes is None else node.ints(axes, "axes")
    if given is None or len(given) == 0:
        return [] if node.attr("noop_with_empty_axes", 0) else list(range(x.rank))
    return node.axes(given, x.rank)


def _keep(node: Node) -> bool:
    return bool(node.attr("keepdims", 1))


@op(*_KINDS)
def reduce(b: Builder, node: Node, x: Tensor, axes: Tensor | None = None) -> Tensor:
    """Sum, product, maximum, minimum."""
    return b.reduce(_KINDS[node.proto.op_type], x, _axes(node, x, axes), _keep(node))


@op("ReduceMean")
def reduce_mean(b: Builder, node: Node, x: Tensor, axes: Tensor | None = None) -> Tensor:
    """Sum divided by the number of elements."""
    return mean(b, x, _axes(node, x, axes), _keep(node))


def mean(b: Builder, x: Tensor, axes: list[int], keepdims: bool = True) -> Tensor:
    """The mean over axes."""
    count = prod(x.shape[d] for d in axes)
    total = b.reduce("sum", x, axes, keepdims)
    return total if count == 1 else b.elementwise(lambda m, s: m.div(s, m.cast(_like(m, s, count), s.dtype)), total)


def _like(m, s, count: int):
    return np.asarray(count, s.dtype) if isinstance(s, np.ndarray | np.generic) else m.scalar(count, s.dtype)


@op(*_SQUARES)
def reduce_squares(b: Builder, node: Node, x: Tensor, axes: Tensor | None = None) -> Tensor:
    """Sum of squares, and its root."""
    total = b.reduce("sum", b.elementwise(lambda m, x: x * x, x), _axes(node, x, axes), _keep(node))
    return total if node.proto.op_type == "ReduceSumSquare" else b.elementwise(lambda m, s: m.sqrt(s), total)


@op("ReduceL1")
def reduce_l1(b: Builder, node: Node, x: Tensor, axes: Tensor | None = None) -> Tensor:
    """Sum of magnitudes."""
    return b.reduce("sum", b.elementwise(lambda m, x: m.absolute(x), x), _axes(node, x, axes), _keep(node))


@op(*_LOGS)
def reduce_logs(b: Builder, node: Node, x: Tensor, axes: Tensor | None = None) -> Tensor:
    """Logarithm of a sum, or of a sum of exponentials (shifted by the maximum)."""
    along = _axes(node, x, axes)
    if node.proto.op_type == "ReduceLogSum":
        return b.elementwise(lambda m, s: m.log(s), b.reduce("sum", x, along, _keep(node)))
    top = b.reduce("max", x, along)
    total = b.reduce("sum", b.elementwise(lambda m, x, t: m.exp(x - t), x, top), along)
    result = b.elementwise(lambda m, s, t: m.log(s) + t, total, top)
    return result if _keep(node) else result.squeeze(along)


def softmax(b: Builder, x: Tensor, axes: list[int]) -> Tensor:
    """exp(x - max) / sum over `axes`, with one division per row: products with the sum's reciprocal follow."""
    top = b.reduce("max", x, axes)
    powers = b.elementwise(lambda m, x, t: m.exp(x - t), x, top)
    scale = b.elementwise(lambda m, s: 1.0 / s, b.reduce("sum", powers, axes))
    return b.elementwise(lambda m, e, r: e * r, powers, scale)


def log_softmax(b: Builder, x: Tensor, axes: list[int]) -> Tensor:
    """x - max - log(sum of exp(x - max))."""
    top = b.reduce("max", x, axes)
    shifted = b.elementwise(lambda m, x, t: x - t, x, top)
    total = b.reduce("sum", b.elementwise(lambda m, d: m.exp(d), shifted), axes)
    return b.elementwise(lambda m, d, s: d - m.log(s), shifted, total)


@op("Softmax", "LogSoftmax")
def softmax_axis(b: Builder, node: Node, x: Tensor) -> Tensor:
    """Along one axis; before opset 13 over all dimensions from `axis` on."""
    old = node.version < 13
    axis = node.axis(node.attr("axis", 1 if old else -1), x.rank)
    axes = list(range(axis, x.rank)) if old else [axis]
    return (softmax if node.proto.op_type == "Softmax" else log_softmax)(b, x, axes)


@op("ArgMax", "ArgMin")
def arg_extremum(b: Builder, node: Node, x: Tensor) -> Tensor:
    """The first (or last) position of the extremum: the smallest position among those that equal it."""
    axis = node.axis(node.attr("axis", 0), x.rank)
    last = bool(node.attr("select_last_index", 0))
    best = b.reduce("max" if node.proto.op_type == "ArgMax" else "min", x, [axis])
    count = x.shape[axis]
    outline = [count if d == axis else 1 for d in range(x.rank)]
    positions = Tensor.known(np.arange(count, dtype=np.int64)).with_ones([n for n in outline])
    other = -1 if last else count
    marked = b.elementwise(lambda m, x, t, p: m.where(m.eq(x, t), p, other), x, best, positions, dtype=np.int64)
    return b.reduce("max" if last else "min", marked, [axis], _keep(node))

# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Poolings."""

from __future__ import annotations

import functools

import numpy as np

from ..builder import lowest
from ..emit import Space
from ..registry import Builder, Node, op
from ..tensor import Tensor
from .reduction import mean
from .window import Window, window


def pool(b: Builder, x: Tensor, win: Window, fill: float, body) -> Tensor:
    """Reduce windows of [n, c, spatial...], padded with `fill`, which is the reduction's neutral element too."""
    rank = x.rank - 2
    order = _complete(x.stored_order(), x.rank)
    padded = win.padded(b, x, fill, order)
    spatial, taps = list(range(2, x.rank)), list(range(x.rank, x.rank + rank))
    space = Space([*x.shape[:2], *win.out, *win.kernel], frozenset(taps))
    reads = [0, 1, *win.reads(spatial, taps)]
    inputs = [(padded, reads), *_extent_of(b, win, taps, x.dtype)]
    out = range(x.rank)
    whole = lambda m, x, *rest: body(m, x, rest[-1])  # noqa: E731
    return b.generic(space, inputs, out, x.dtype, whole, fill, order)


def _extent_of(b: Builder, win: Window, taps: list[int], dtype: np.dtype) -> list[tuple[Tensor, list[int]]]:
    """The operand, never read, whose shape tells linalg the extents of the window's loops."""
    loops = [(t, n) for t, n in zip(taps, win.kernel, strict=True) if n != 1]
    if not loops:
        return []
    shape = tuple(n for _, n in loops)
    return [(Tensor(dtype, shape, b.empty(shape, dtype), tuple(range(len(shape)))), [t for t, _ in loops])]


def _complete(order: tuple[int, ...], rank: int) -> list[int]:
    """All dimensions, those of size 1 first."""
    return [*(d for d in range(rank) if d not in order), *order]


@op("MaxPool")
def max_pool(b: Builder, node: Node, x: Tensor) -> Tensor:
    """The maximum of each window; padding never wins."""
    if len(node.proto.output) > 1 and node.proto.output[1]:
        node.unsupported("the second output (indices of the maxima)")
    win = window(node, x, node.attr("kernel_shape"))
    return pool(b, x, win, lowest(x.dtype), lambda m, x, acc: m.maximum(acc, x))


def _counts(x: Tensor, win: Window, include_pad: bool) -> np.ndarray:
    """Elements under each window, as an array that broadcasts with the output."""
    per_axis = []
    for i, extent in enumerate(x.shape[2:]):
        at = np.arange(win.out[i])[:, None] * win.strides[i] + np.arange(win.kernel[i]) * win.dilations[i]
        low, high = (0, win.low[i] + extent + win.high[i]) if include_pad else (win.low[i], win.low[i] + extent)
        per_axis.append(((at >= low) & (at < high)).sum(1))
    return functools.reduce(np.multiply.outer, per_axis).astype(x.dtype)


@op("AveragePool")
def average_pool(b: Builder, node: Node, x: Tensor) -> Tensor:
    """The mean of each window, with or without its padding."""
    win = window(node, x, node.attr("kernel_shape"))
    total = pool(b, x, win, 0.0, lambda m, x, acc: acc + x)
    counts = _counts(x, win, bool(node.attr("count_include_pad", 0)))
    if (counts == counts.flat[0]).all():
        factor = 1.0 / float(counts.flat[0])
        return b.elementwise(lambda m, s: s * factor, total)
    return b.elementwise(lambda m, s, c: s / c, total, Tensor.known(counts))


@op("GlobalAveragePool")
def global_average_pool(b: Builder, node: Node, x: Tensor) -> Tensor:
    """The mean over all spatial dimensions."""
    return mean(b, x, list(range(2, x.rank)))


@op("GlobalMaxPool")
def global_max_pool(b: Builder, node: Node, x: Tensor) -> Tensor:
    """The maximum over all spatial dimensions."""
    return b.reduce("max", x, list(range(2, x.rank)))

# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pad, and CenterCropPad, which pads or crops."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewright.frontend.builder.dims import Size, is_static, maximum, minimum
from tilewright.frontend.builder.limits import check_known
from tilewright.frontend.builder.scalars import Scalar
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.ops.common.runtime import optional_sizes, require_sizes, sizes, spread
from tilewright.frontend.onnx.registry import Builder, Node, op

MODES = ("constant", "reflect", "edge", "wrap")


def _pads(b: Builder, node: Node, x: Tensor, pads: Tensor | None, axes: Tensor | None) -> list[list[Size]]:
    """Amounts before and behind each dimension."""
    flat = list(node.attr("pads") or node.attr("paddings")) if node.version < 11 else sizes(b, node, pads, "pads")
    along = optional_sizes(b, node, axes, "axes")
    count = x.rank if along is None else len(along)
    if len(flat) != 2 * count:
        node.wrong(f"pads has {len(flat)} entries for {count} axes")
    return spread(b, node, along, x.rank, (flat[:count], [0] * x.rank), (flat[count:], [0] * x.rank))


def crop(b: Builder, x: Tensor, low: Sequence[Size], high: Sequence[Size]) -> tuple[Tensor, list[Size], list[Size]]:
    """Negative amounts take elements away, and padding of the other side where there are not enough.

    Returns what is left, and the amounts to add before and behind it.
    """
    starts, extents, before, behind = [], [], [], []
    for n, a, c in zip(x.shape, low, high, strict=True):
        left = n + minimum(a, 0) + minimum(c, 0)
        extents.append(maximum(left, 0))
        starts.append(minimum(maximum(0 - a, 0), n))
        missing = minimum(left, 0)
        before.append(maximum(maximum(a, 0) + missing, 0))
        behind.append(maximum(maximum(c, 0) + missing, 0))
    return b.slice(x, starts, extents, [1] * x.rank), before, behind


def _mirrored(mode: str, extent: int, low: int, high: int) -> np.ndarray:
    check_known(extent + low + high)
    return np.pad(np.arange(extent, dtype=np.int64), (low, high), mode=mode)  # pyright: ignore[reportCallIssue]


def _source(m, b: Builder, mode: str, place: Scalar, extent: Size) -> Scalar:
    """Which element of an axis appears at a place that counts from its first one."""
    last = b.idx(extent) - b.idx(1)
    if mode == "edge":
        return m.minimum(m.maximum(place, b.idx(0)), last)
    period = m.maximum(last * b.idx(2) if mode == "reflect" else last + b.idx(1), b.idx(1))
    rest = m.rem(place, period)
    rest = m.where(rest < b.idx(0), rest + period, rest)
    return m.minimum(rest, period - rest) if mode == "reflect" else rest


def _repeated(b: Builder, node: Node, x: Tensor, mode: str, low: Sequence[Size], high: Sequence[Size]) -> Tensor:
    """Reflect, edge and wrap with amounts that are known at run time only."""
    shape = [a + n + c for a, n, c in zip(low, x.shape, high, strict=True)]
    x = b.stored(x)

    def body(m, *place):
        axes = zip(place, low, high, x.shape, strict=True)
        return b.read(x, [i if a == 0 == c else _source(m, b, mode, i - b.idx(a), n) for i, a, c, n in axes])

    return b.produce(b.settle(shape, node.declared(), node), x.dtype, body)


@op("Pad")
def pad(
    b: Builder,
    node: Node,
    x: Tensor,
    pads: Tensor | None = None,
    value: Tensor | None = None,
    axes: Tensor | None = None,
) -> Tensor:
    """Constant, reflect, edge or wrap; negative amounts crop."""
    mode = node.attr("mode", "constant")
    if mode not in MODES:
        node.wrong(f"mode {mode} is not one of {', '.join(MODES)}")
    low, high = _pads(b, node, x, pads, axes)
    x, low, high = crop(b, x, low, high)
    if mode == "constant":
        fill = _constant(b, node, value)
        if not is_static((*low, *high, *x.shape)):
            shape = [a + n + c for a, n, c in zip(low, x.shape, high, strict=True)]
            return b.pad(x, low, high, fill, shape=b.settle(shape, node.declared(), node))
        return b.pad(x, low, high, fill)
    if not is_static((*low, *high, *x.shape)):
        return _repeated(b, node, x, mode, low, high)
    for axis in range(x.rank):
        if low[axis] or high[axis]:
            positions = _mirrored(mode, x.shape[axis], low[axis], high[axis])
            x = b.gather(x, Tensor.known(positions), axis)
    return x


def _constant(b: Builder, node: Node, value: Tensor | None) -> Scalar | float:
    if value is None:
        return node.attr("value", 0.0)
    return value.numpy().reshape(-1)[0].item() if value.is_known else b.item(value)


@op("CenterCropPad", since=18)
def center_crop_pad(b: Builder, node: Node, x: Tensor, shape: Tensor) -> Tensor:
    """Crop or pad with zeros to a shape, keeping the middle."""
    wanted = sizes(b, node, shape, "the shape")
    axes = node.attr("axes")
    (target,) = spread(b, node, axes, x.rank, (wanted, x.shape))
    target = b.settle(target, node.declared(), node)
    require_sizes(b, target)
    missing = [t - n for t, n in zip(target, x.shape, strict=True)]
    starts = [maximum(0 - m, 0) // 2 for m in missing]
    extents = [minimum(t, n) for t, n in zip(target, x.shape, strict=True)]
    x = b.slice(x, starts, extents, [1] * x.rank)
    low = [maximum(m, 0) // 2 for m in missing]
    high = [maximum(m, 0) - a for m, a in zip(missing, low, strict=True)]
    return b.pad(x, low, high, 0, shape=target)

# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Poolings of regions of interest: RoiAlign and MaxRoiPool."""

from __future__ import annotations

from collections.abc import Sequence

from ..emit import At, Index, Space
from ..numbers import lowest
from ..registry import Builder, Node, op
from ..scalars import Scalar
from ..tensor import Tensor
from .access import I32, I64, Number, Tap, bounded, interpolate, measure, number
from .precision import widened
from .window import loop_extents


def _part(i: int) -> At:
    return At((), i)


def _aligned_taps(m, x: Scalar, extent: Number) -> list[Tap]:
    """The neighbours of a coordinate, which counts up to one place outside of the axis."""
    inside = m.logical_and(x >= -1.0, x <= extent)
    x = bounded(m, x, 0.0, extent - 1.0)
    base = m.floor(x)
    part = x - base
    return [Tap(base, m.where(inside, 1.0 - part, 0.0)), Tap(base + 1.0, m.where(inside, part, 0.0))]


class _Bins:
    """The geometry of RoiAlign along one axis: where a region's bins and samples lie."""

    def __init__(self, node: Node, bins: int, first: int, wide) -> None:
        mode = "output_half_pixel" if node.version < 16 else node.attr("coordinate_transformation_mode", "half_pixel")
        self.half_pixel = mode == "half_pixel"
        self.scale, self.samples = node.attr("spatial_scale", 1.0), node.attr("sampling_ratio", 0)
        self.bins, self.first, self.wide = bins, first, wide

    def size(self, m, start: Scalar, end: Scalar) -> tuple[Scalar, Scalar]:
        """A region's start and the size of its bins, in places of the input."""
        offset = 0.5 if self.half_pixel else 0.0
        start, end = start * self.scale - offset, end * self.scale - offset
        extent = end - start if self.half_pixel else m.maximum(end - start, 1.0)
        return start, extent / float(self.bins)

    def count(self, m, start: Scalar, end: Scalar) -> Scalar:
        """The samples in each bin of a region, as a float."""
        return bounded(m, m.ceil(self.size(m, start, end)[1]), 0.0, 4096.0)

    def most(self, b: Builder, rois: Tensor) -> Tensor:
        """The samples in a bin of the largest region."""
        space = Space([rois.shape[0]])
        reads: list[tuple[Tensor, Sequence[Index]]] = [(rois, [0, _part(self.first + i)]) for i in (0, 2)]
        body = lambda m, start, end, _: m.cast(self.count(m, start, end), I64)  # noqa: E731
        return b.reduce("max", b.generic(space, reads, [0], I64, body), [0], keepdims=False)


@op("RoiAlign")
@widened
def roi_align(b: Builder, node: Node, x: Tensor, rois: Tensor, batch: Tensor) -> Tensor:
    """The mean or maximum of bilinear samples in each bin of each region.

    Without a sampling ratio a region's own size gives the number of its samples, and the loops run to the most that
    any region has.
    """
    sizes = [node.attr("output_height", 1), node.attr("output_width", 1)]
    axes = [_Bins(node, n, 1 - i, x.dtype) for i, n in enumerate(sizes)]
    fixed, highest = axes[0].samples > 0, node.attr("mode", "avg").lower() == "max"
    counts = [a.samples if fixed else b.index_of(a.most(b, rois)) for a in axes]
    rois, x = b.cast(rois, x.dtype), b.stored(x)
    space = Space([rois.shape[0], x.shape[1], *sizes, *counts], frozenset([4, 5]))
    extents = [measure(b, n, x.dtype) for n in x.shape[2:]]
    neutral = lowest(x.dtype) if highest else 0.0

    def body(m, image, left, top, right, bottom, *rest):
        corners, valid, shares = ((top, bottom), (left, right)), [], []
        taps = []
        for i, (axis, (start, end)) in enumerate(zip(axes, corners, strict=True)):
            sample = number(m, b.counter(space, 4 + i), x.dtype)
            count = float(axis.samples) if fixed else axis.count(m, start, end)
            start, size = axis.size(m, start, end)
            step = size / count if fixed else size / m.maximum(count, 1.0)
            place = start + number(m, b.counter(space, 2 + i), x.dtype) * size + (sample + 0.5) * step
            taps.append(_aligned_taps(m, place, extents[i]))
            valid.append(sample < count)
            shares.append(1.0 / count if fixed else 1.0 / m.maximum(count, 1.0))
        plane = [b.wrapped_index(m.cast(image, I64), x.shape[0]), b.counter(space, 1)]
        read = lambda place: b.read(x, [*plane, *place])  # noqa: E731
        if highest:
            value = _largest(m, read, taps, extents)
        else:
            value = interpolate(m, read, taps, extents) * (shares[0] * shares[1])
        value = value if fixed else m.where(m.logical_and(*valid), value, neutral)
        return m.maximum(rest[-1], value) if highest else rest[-1] + value

    inputs = [(batch, [0]), *((rois, [0, _part(i)]) for i in range(4))]
    if fixed:
        inputs += loop_extents(b, [(4, counts[0]), (5, counts[1])])
    y = b.generic(space, inputs, range(4), x.dtype, body, neutral, [0, 2, 3, 1])
    if fixed or not highest:
        return y
    return b.elementwise(lambda m, y: m.where(y > neutral, y, 0.0), y)  # regions without samples


def _largest(m, read, taps: Sequence[Sequence[Tap]], extents: Sequence[Number]) -> Scalar:
    """The largest of the weighted neighbours."""
    values = [interpolate(m, read, [[row], [column]], extents) for row in taps[0] for column in taps[1]]
    result = values[0]
    for value in values[1:]:
        result = m.maximum(result, value)
    return result


@op("MaxRoiPool")
@widened
def max_roi_pool(b: Builder, node: Node, x: Tensor, rois: Tensor) -> Tensor:
    """The maximum of each bin of each region [batch, x1, y1, x2, y2], whole places; rows first, then columns."""
    sizes, scale = node.attr("pooled_shape"), node.attr("spatial_scale", 1.0)
    if len(sizes) != 2 or x.rank != 4:
        node.wrong(f"input {list(x.shape)} and pooled_shape {sizes} need two spatial dimensions")
    neutral, x = lowest(x.dtype), b.stored(x)
    (height, width), count = x.shape[2:], rois.shape[0]

    def inside(m, place: Scalar, bin_: Scalar, bins: int, start: Scalar, end: Scalar, extent: Number):
        """Whether a place lies in a bin."""
        start, end = (
            m.floor(m.absolute(v * scale) + 0.5) * m.where(v < 0.0, -1.0, v * 0.0 + 1.0) for v in (start, end)
        )
        size = m.maximum(end - start + 1.0, 1.0) / float(bins)
        low = bounded(m, m.floor(bin_ * size) + start, 0.0, extent)
        high = bounded(m, m.ceil((bin_ + 1.0) * size) + start, 0.0, extent)
        return m.logical_and(place >= low, place < high)

    rows = Space([count, x.shape[1], sizes[0], width, height], frozenset([4]))

    def row(m, image, top, bottom, *rest):
        place, bin_ = (number(m, b.counter(rows, d), x.dtype) for d in (4, 2))
        hit = inside(m, place, bin_, sizes[0], top, bottom, measure(b, height, x.dtype))
        image = b.wrapped_index(m.cast(image, I32), x.shape[0])
        value = b.read(x, [image, *(b.counter(rows, d) for d in (1, 4, 3))])
        return m.maximum(rest[-1], m.where(hit, value, neutral))

    reads = [(rois, [0, _part(i)]) for i in (0, 2, 4)]
    part = b.generic(rows, [*reads, *loop_extents(b, [(4, height)])], range(4), x.dtype, row, neutral)
    columns = Space([count, x.shape[1], *sizes, width], frozenset([4]))

    def column(m, value, left, right, *rest):
        place, bin_ = (number(m, b.counter(columns, d), x.dtype) for d in (4, 3))
        hit = inside(m, place, bin_, sizes[1], left, right, measure(b, width, x.dtype))
        return m.maximum(rest[-1], m.where(hit, value, neutral))

    reads = [(part, [0, 1, 2, 4]), *((rois, [0, _part(i)]) for i in (1, 3))]
    y = b.generic(columns, reads, range(4), x.dtype, column, neutral)
    return b.elementwise(lambda m, y: m.where(y > neutral, y, 0.0), y)  # empty bins

# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Poolings of regions of interest: RoiAlign and MaxRoiPool."""

from __future__ import annotations

import functools
import operator

from tilewright.frontend.builder.dims import Size
from tilewright.frontend.builder.dtypes import I32, I64, lowest
from tilewright.frontend.builder.emit import At, Space
from tilewright.frontend.builder.scalars import Scalar
from tilewright.frontend.builder.tensor import Tensor, nothing
from tilewright.frontend.onnx.ops.common.access import Number, bounded, measure, number
from tilewright.frontend.onnx.ops.common.precision import widened
from tilewright.frontend.onnx.ops.common.window import loop_extents
from tilewright.frontend.onnx.registry import Builder, Node, op


def _part(i: int) -> At:
    return At((), i)


class _Samples:
    """Where the samples of all regions lie along one axis: vectors over [region, bin, sample]."""

    def __init__(self, b: Builder, node: Node, rois: Tensor, bins: int, ends: tuple[int, int], size: Size) -> None:
        mode = "output_half_pixel" if node.version < 16 else node.attr("coordinate_transformation_mode", "half_pixel")
        half, scale, ratio = mode == "half_pixel", node.attr("spatial_scale", 1.0), node.attr("sampling_ratio", 0)
        start, end = (b.slice(rois, [0, i], [rois.shape[0], 1], [1, 1]).unsqueeze([2]) for i in ends)
        offset = 0.5 if half else 0.0

        def extent(m, start, end):
            length = (end - start) * scale
            return (length if half else m.maximum(length, 1.0)) / float(bins)

        self.step = b.elementwise(extent, start, end)
        self.start = b.elementwise(lambda m, start: start * scale - offset, start)
        if ratio > 0:
            self.counts, self.most = Tensor.known(float(ratio), rois.dtype), ratio
        else:
            self.counts = b.elementwise(lambda m, step: bounded(m, m.ceil(step), 0.0, 4096.0), self.step)
            most = b.reduce("max", b.cast(self.counts, I64), [0, 1, 2], keepdims=False)
            self.most = b.index_of(most)
        self.taps = self._taps(b, bins, size, node.attr("mode", "avg").lower() == "max")

    def _taps(self, b: Builder, bins: int, size: Size, repeat: bool) -> list[Tensor]:
        """Two positions (i32) and two weights of each sample; weights are 0 more than one place outside of the axis.

        Where a region has fewer samples than others, the weights of those missing are 0, or (`repeat`) its last one
        stands for them.
        """
        bin_ = b.positions(bins, self.step.dtype).unsqueeze([0, 2])
        sample, last = b.positions(self.most, self.step.dtype), b.size_tensor(size, self.step.dtype)

        def place(m, start, step, bin_, sample, count):
            sample = m.minimum(sample, count - 1.0) if repeat else sample
            return start + bin_ * step + (sample + 0.5) * (step / m.maximum(count, 1.0))

        def inside(m, x, size, sample, count):
            hit = m.logical_and(x >= -1.0, x <= size)
            return hit if repeat else m.logical_and(hit, sample < count)

        def part(m, x, size, sample, count):
            place = bounded(m, x, 0.0, size - 1.0)
            return place - m.floor(place)

        x = b.elementwise(place, self.start, self.step, bin_, sample, self.counts)
        low = b.elementwise(lambda m, x, n: m.cast(bounded(m, x, 0.0, n - 1.0), I32), x, last, dtype=I32)
        high = b.elementwise(lambda m, at, n: m.minimum(at + 1, n - 1), low, b.size_tensor(size, I32))
        rest = (x, last, sample, self.counts)
        near = b.elementwise(lambda m, *v: m.where(inside(m, *v), 1.0 - part(m, *v), 0.0), *rest)
        far = b.elementwise(lambda m, *v: m.where(inside(m, *v), part(m, *v), 0.0), *rest)
        return [low, high, near, far]


@op("RoiAlign")
@widened
def roi_align(b: Builder, node: Node, x: Tensor, rois: Tensor, batch: Tensor) -> Tensor:
    """The mean or maximum of bilinear samples in each bin of each region.

    Without a sampling ratio a region's own size gives the number of its samples, and the loops run to the most that
    any region has.
    """
    sizes = [node.attr("output_height", 1), node.attr("output_width", 1)]
    highest, rois, x = node.attr("mode", "avg").lower() == "max", b.cast(rois, x.dtype), b.stored(x)
    if rois.shape[0] == 0:
        return nothing((0, x.shape[1], *sizes), x.dtype)
    ends = ((1, 3), (0, 2))
    axes = [_Samples(b, node, rois, n, e, size) for n, e, size in zip(sizes, ends, x.shape[2:], strict=True)]
    space = Space([rois.shape[0], x.shape[1], *sizes, *(a.most for a in axes)], frozenset([4, 5]))

    def body(m, image, *rest):
        rows, columns = [rest[:2], rest[4:6]], [rest[2:4], rest[6:8]]
        plane = [b.wrapped_index(m.cast(image, I64), x.shape[0]), b.counter(space, 1)]
        terms = [
            b.read(x, [*plane, row, column]) * (by_row * by_column)
            for row, by_row in zip(rows[0], columns[0], strict=True)
            for column, by_column in zip(rows[1], columns[1], strict=True)
        ]
        combine = m.maximum if highest else operator.add
        return combine(rest[-1], functools.reduce(combine, terms))

    reads = [(t, [0, 2 + i, 4 + i]) for i, a in enumerate(axes) for t in a.taps]
    y = b.generic(space, [(batch, [0]), *reads], range(4), x.dtype, body, lowest(x.dtype) if highest else 0.0)
    counts = [a.counts.unsqueeze([3]) if a.counts.rank else a.counts for a in axes]
    if highest:
        return b.elementwise(lambda m, y, r, c: m.where(r * c > 0.0, y, 0.0), y, *counts)
    return b.elementwise(lambda m, y, r, c: y / m.maximum(r * c, 1.0), y, *counts)


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

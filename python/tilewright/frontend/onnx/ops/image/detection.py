# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""NonMaxSuppression."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewright.frontend.builder.dims import has_zero
from tilewright.frontend.builder.dtypes import F32, I64
from tilewright.frontend.builder.scalars import BOOL, INDEX, Scalar
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.ops.common.boxes import Box, box_of, overlap
from tilewright.frontend.onnx.ops.image.suppression import Rules, in_rounds
from tilewright.frontend.onnx.ops.math.sorting import doublings, heapify, less, sift
from tilewright.frontend.onnx.ops.tensor.scatter import agree
from tilewright.frontend.onnx.registry import Builder, Node, op


def _box(b: Builder, boxes: Tensor, batch: Scalar, number: Scalar, centered: bool) -> Box:
    return box_of(b.math, [b.at(boxes, [batch, number, i]) for i in range(4)], centered)


@dataclass(frozen=True)
class _Limits:
    """The scalar inputs; scores of any value count where there is no threshold."""

    per_class: Scalar
    overlap: Scalar
    score: Scalar | None


def _limits(b: Builder, most: Tensor, share: Tensor | None, score: Tensor | None, boxes: Tensor) -> _Limits:
    m = b.math
    wanted = m.cast(b.item(most), INDEX)
    per_class = m.maximum(m.minimum(wanted, b.idx(boxes.shape[1])), 0)
    return _Limits(
        per_class,
        m.scalar(0.0, F32) if share is None else b.item(share),
        None if score is None else b.item(score),
    )


def _is_none(most: Tensor) -> bool:
    """Whether no class may keep a box."""
    return most.is_known and int(most.numpy().reshape(-1)[0]) <= 0


@op("NonMaxSuppression", since=10)
def non_max_suppression(
    b: Builder,
    node: Node,
    boxes: Tensor,
    scores: Tensor,
    most: Tensor | None = None,
    share: Tensor | None = None,
    score: Tensor | None = None,
) -> Tensor:
    """Rows (batch, class, box): by falling score, without boxes that overlap a kept one more than the threshold."""
    if boxes.rank != 3 or scores.rank != 3 or boxes.shape[2] != 4:
        node.wrong(f"boxes {list(boxes.shape)} and scores {list(scores.shape)} are not [B, N, 4] and [B, C, N]")
    agree(b, node, "scores", (scores.shape[0], scores.shape[2]), boxes.shape[:2])
    for given in (most, share, score):
        if given is not None and has_zero(given.shape):
            node.wrong("a parameter has no elements")
    if has_zero(scores.shape) or most is None or _is_none(most):
        return b.hollow((0, 3), I64)
    centered = bool(node.attr("center_point_box", 0))
    if b.many_threads and scores.is_static:
        return in_rounds(b, boxes, scores, Rules(most, share, score, centered))
    return _by_heap(b, boxes, scores, _limits(b, most, share, score, boxes), centered)


def _by_heap(b: Builder, boxes: Tensor, scores: Tensor, limits: _Limits, centered: bool) -> Tensor:
    """The same on one thread, which takes one box after the other."""
    m = b.math
    boxes, scores = b.array(boxes), b.array(scores)
    batches, classes, count = scores.shape
    room = b.idx(batches) * b.idx(classes) * limits.per_class
    heap, levels = b.blank([count], np.int64), doublings(b, count)

    def one_class(at: list[Scalar], start: Scalar, rows: Tensor, heap: Tensor) -> list:
        """A heap of the boxes whose score counts gives the best one left, until enough are kept."""

        def first(i: Scalar, j: Scalar) -> Scalar:
            x, y = b.at(scores, [*at, i]), b.at(scores, [*at, j])
            return m.logical_or(less(b, y, x), m.logical_and(i < j, m.logical_not(less(b, x, y))))

        def enter(i: Scalar, size: Scalar, heap: Tensor) -> list:
            heap = b.put(m.cast(i, heap.dtype), heap, [size])  # the next one overwrites it where it does not count
            counts = m.scalar(1, BOOL) if limits.score is None else b.at(scores, [*at, i]) > limits.score
            return [m.where(counts, size + 1, size), heap]

        def clear_of(number: Scalar, total: Scalar, rows: Tensor) -> Scalar:
            """Whether a box overlaps none of this class's kept ones too much."""
            box = _box(b, boxes, at[0], number, centered)

            def clear(k: Scalar, _: Scalar) -> list[Scalar]:
                kept = m.cast(b.at(rows, [k, 2]), INDEX)
                share = overlap(m, box, _box(b, boxes, at[0], kept, centered))
                return [k + 1, m.logical_not(share > limits.overlap)]

            begin = [start, m.scalar(1, BOOL)]
            return b.while_(begin, lambda k, fine: m.logical_and(k < total, fine), clear)[1]

        def candidate(k: Scalar, total: Scalar, rows: Tensor, heap: Tensor) -> list:
            number, end = b.at(heap, [0]), size - 1 - k
            heap = b.put(b.at(heap, [end]), heap, [0])
            heap = sift(b, heap, m.maximum(end, 1), b.idx(0), first, levels)
            fine = clear_of(m.cast(number, INDEX), total, rows)
            for d, v in enumerate([m.cast(at[0], I64), m.cast(at[1], I64), number]):
                rows = b.put(v, rows, [total, d])  # overwritten, too
            return [m.where(fine, total + 1, total), rows, heap]

        def unless_done(k: Scalar, total: Scalar, rows: Tensor, heap: Tensor) -> list:
            wanted = total - start < limits.per_class
            return b.if_(wanted, lambda: candidate(k, total, rows, heap), lambda: [total, rows, heap])

        size, heap = b.for_(0, count, [b.idx(0), heap], enter)
        return b.for_(0, size, [start, rows, heapify(b, heap, size, first)], unless_done)

    rows = b.blank([b.size(room), 3], np.int64)
    total, rows, _ = b.nest([batches, classes], [b.idx(0), rows, heap], one_class)
    return b.first(rows, total)

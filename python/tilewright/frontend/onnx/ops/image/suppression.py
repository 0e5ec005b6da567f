# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Non-maximum suppression for machines with thousands of threads: in rounds, each of which all boxes take part in.

A heap gives one box after the other, and each is compared with those kept before: nothing of it runs beside anything
else. Here a round takes the best box left in every class of every batch (one maximum over numbers that order scores
and positions at once), and then drops all boxes that overlap it too much. No box is sorted, and no matrix of all pairs
is stored; a class takes as many rounds as boxes of it are kept. Every few rounds the program looks if any are left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.frontend.builder.dims import Size, minimum
from tilewright.frontend.builder.dtypes import I64
from tilewright.frontend.builder.scalars import BOOL, INDEX, Scalar
from tilewright.frontend.builder.stacking import Element, Stack
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.ops.common.boxes import box_of, overlap
from tilewright.frontend.onnx.ops.common.prefix import owners, scan
from tilewright.frontend.onnx.registry import Builder

#: Rounds between two looks at whether boxes are left: each look waits for the device.
_ROUNDS = 32
#: A box's position, counted from the end, in the lower bits of its entry: of equal scores the first box is the largest.
_BITS = 31
_LAST = (1 << _BITS) - 1
_I32 = np.dtype(np.int32)


@dataclass(frozen=True)
class Rules:
    """The operator's inputs beside boxes and scores, and whether boxes are given by their centers."""

    most: Tensor
    share: Tensor | None
    score: Tensor | None
    centered: bool


def in_rounds(b: Builder, boxes: Tensor, scores: Tensor, rules: Rules) -> Tensor:
    """Rows (batch, class, box) of the boxes kept, as NonMaxSuppression gives them.

    Args:
        b: the builder.
        boxes: [batches, count, 4] of f32.
        scores: [batches, classes, count] of f32, of known sizes, none of which is 0.
        rules: what is kept; not known to be nothing.
    """
    most = _most(b, rules.most, scores.shape[2])
    stack = Stack(b, Element(I64, _dense(scores.shape[:2])), most, backward=False, padded=True)
    step = _Round(b, boxes, scores, rules, stack)
    left, kept = step.entries(), stack.buffer()
    if isinstance(most, int) and most <= _ROUNDS:
        left, kept = b.for_(0, most, [left, kept], step.run)
    else:
        kept = _until_none_is_left(b, step, left, kept, b.idx(most))
    found = stack.finished(kept, None)
    return _rows(b, found.with_ones((found.shape[0], *scores.shape[:2])))


def _dense(shape: Sequence[Size]) -> tuple[Size, ...]:
    """A shape as loops carry it: without the ones, which would be reshaped, and so copied, in each round."""
    return tuple(n for n in shape if n != 1)


def _most(b: Builder, given: Tensor, count: Size) -> Size:
    """How many boxes a class keeps at most."""
    if given.is_known:
        return minimum(max(int(given.numpy().reshape(-1)[0]), 0), count)
    m = b.math
    return b.size(m.maximum(m.minimum(m.cast(b.item(given), INDEX), b.idx(count)), 0))


def _until_none_is_left(b: Builder, step: _Round, left: Tensor, kept: Tensor, most: Scalar) -> Tensor:
    m = b.math

    def some(first: Scalar, _: Scalar, left: Tensor, kept: Tensor) -> list:
        last = m.minimum(first + _ROUNDS, most)
        left, kept = b.for_(first, last, [left, kept], step.run)
        best = b.item(b.reduce("max", left, range(left.rank), keepdims=False))
        return [last, best > 0, left, kept]

    def goes_on(first: Scalar, some_left: Scalar, *_: Tensor) -> Scalar:
        return m.logical_and(first < most, some_left)

    return b.while_([b.idx(0), m.scalar(1, BOOL), left, kept], goes_on, some)[3]


class _Round:
    """One round over all batches and classes.

    What is left are entries [batches, classes, count], without sizes of 1: 0 where a box is kept, dropped or does not
    count, else the score's bits in an order that integers have, above the box's position.
    """

    def __init__(self, b: Builder, boxes: Tensor, scores: Tensor, rules: Rules, stack: Stack) -> None:
        self.b, self.scores, self.rules, self.stack = b, scores, rules, stack
        batches, count, _ = boxes.shape
        corners = b.reshape(boxes.transpose([2, 0, 1]), [4, batches * count])
        self.corners = b.array(corners)
        self.all = b.reshape(self.corners, [4, batches, 1, count])
        self.places = b.positions(count)
        self.firsts = b.elementwise(lambda m, i: i * count, b.positions(batches)).unsqueeze([1])
        self.share = Tensor.known(np.float32(0)) if rules.share is None else b.reshape(rules.share, ())

    def entries(self) -> Tensor:
        """Those of all boxes whose score counts."""
        least = self.rules.score

        def entry(m, score, place, *least):
            bits = m.cast(m.bitcast(score, _I32), I64)
            bits = m.where(m.eq(score, 0.0), 0, bits)  # zeros of both signs are equal
            order = m.where(bits < 0, m.bit_xor(bits, 0x7FFFFFFF), bits) + 0x80000000
            order = m.where(m.is_nan(score), 0xFFFFFFFF, order)  # larger than all others
            found = order * (1 << _BITS) + (_LAST - place)
            return m.where(score > least[0], found, 0) if least else found

        more = [] if least is None else [self.b.reshape(least, ())]
        found = self.b.elementwise(entry, self.scores, self.places, *more, dtype=I64)
        return found.with_ones(_dense(found.shape))

    def run(self, number: Scalar, left: Tensor, kept: Tensor) -> list[Tensor]:
        """Keep the best entry of each class, and drop what overlaps its box."""
        b, rules, held = self.b, self.rules, left.shape
        left = left.with_ones(self.scores.shape)
        best = b.reduce("max", left, [2])
        flat = best.squeeze([2])
        rows = b.elementwise(lambda m, entry, first: _place(m, entry) + first, flat, self.firsts)
        chosen = b.gather(self.corners, rows, 1)  # of a class with nothing left: any box

        def remains(m, entry, best, place, share, *numbers):
            one, other = (box_of(m, four, rules.centered) for four in (numbers[:4], numbers[4:]))
            gone = m.logical_or(m.eq(_place(m, best), place), overlap(m, one, other) > share)
            return m.where(gone, 0, entry)

        sides = [_part(b, x, i) for x in (self.all, chosen.unsqueeze([3])) for i in range(4)]
        after = b.elementwise(remains, left, best, self.places, self.share, *sides, dtype=I64)
        taken = flat.with_ones(_dense(flat.shape))
        return [after.with_ones(held), self.stack.put(kept, taken, number, None)]


def _place(m, entry):
    """The position of an entry's box; beyond all of them where there is none."""
    return _LAST - m.bit_and(entry, _LAST)


def _part(b: Builder, x: Tensor, i: int) -> Tensor:
    """x[i]."""
    starts, sizes = [i, *[0] * (x.rank - 1)], [1, *x.shape[1:]]
    return b.slice(x, starts, sizes, [1] * x.rank).squeeze([0])


def _rows(b: Builder, kept: Tensor) -> Tensor:
    """The entries [rounds, batches, classes] that were kept, class by class, as rows (batch, class, box)."""
    most, batches, classes = kept.shape
    groups = batches * classes
    flat = b.reshape(kept.transpose([1, 2, 0]), [groups, most])
    ones = b.elementwise(lambda m, entry: m.cast(entry > 0, I64), flat, dtype=I64)
    counts = b.reduce("sum", ones, [1], keepdims=False)
    ends = scan(b, "sum", counts)
    begins = b.elementwise(lambda m, end, count: end - count, ends, counts)
    slots = b.positions(groups * most)
    group = owners(b, ends, slots)

    def place(m, slot, group, begin, most):
        return m.minimum(group, groups - 1) * most + (slot - begin)

    where = b.elementwise(place, slots, group, b.gather(begins, group, 0), b.size_tensor(most))
    entry = b.gather(b.reshape(flat, [groups * most]), where, 0)

    def number(m, column, group, entry):
        batch, kind = m.div(group, classes), m.rem(group, classes)
        return m.where(m.eq(column, 0), batch, m.where(m.eq(column, 1), kind, _place(m, entry)))

    rows = b.elementwise(number, b.positions(3), group.unsqueeze([1]), entry.unsqueeze([1]))
    total = b.reduce("max", ends, [0], keepdims=False)
    return b.first(rows, b.math.cast(b.item(total), INDEX))

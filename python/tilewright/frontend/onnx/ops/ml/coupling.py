# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Probabilities of classes from those of pairs of classes, as libsvm couples them.

Source: T.-F. Wu, C.-J. Lin, R. C. Weng, "Probability Estimates for Multi-class Classification by Pairwise Coupling",
JMLR 5 (2004), second method: p minimizes a quadratic form, found by going round its coordinates until p settles.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from tilewright.frontend.builder.dtypes import F32
from tilewright.frontend.builder.limits import check_copies
from tilewright.frontend.builder.scalars import BOOL, Scalar
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.registry import Builder

_ROUNDS = 100
_SETTLED = 0.005  # of the largest gradient, over the number of classes
_LEAST = 1e-7  # a pair is never sure


def coupled(b: Builder, scores: Tensor, slopes: Sequence[float], offsets: Sequence[float], classes: int) -> Tensor:
    """Probabilities [rows, classes] from scores [rows, pairs], whose probabilities are logistic in slope and offset."""
    check_copies(classes * classes, "pairs of classes")
    b.remark("probabilities of classes are found row by row, in scalar loops that end when they settle")
    given = [Tensor.known(np.asarray(v, np.float32)) for v in (slopes, offsets)]
    pairs = b.array(b.elementwise(_of_pair, scores, *given))
    result = b.full(0, [scores.shape[0], classes], F32)

    def row(at: list[Scalar], result: Tensor) -> list[Tensor]:
        found = _minimum(b, _form(b, pairs, at[0], classes))
        for i, p in enumerate(found):
            result = b.put(p, result, [at[0], i])
        return [result]

    return b.nest([scores.shape[0]], [result], row)[0]


def _of_pair(m, score, slope, offset):
    """1 - 1 / (1 + exp(-(slope * score + offset))), never quite 0 or 1."""
    x = score * slope + offset
    v = 1.0 / (m.exp(-m.absolute(x)) + 1.0)
    p = m.where(x < 0.0, v, 1.0 - v)
    return m.minimum(m.maximum(p, _LEAST), 1.0 - _LEAST)


def _form(b: Builder, pairs: Tensor, row: Scalar, classes: int) -> list[list[Scalar]]:
    """The matrix of the quadratic form: sums of squares, and negative products of a pair's two probabilities."""
    against: dict[tuple[int, int], Scalar] = {}
    for number, (i, j) in enumerate(itertools.combinations(range(classes), 2)):
        p = b.at(pairs, [row, number])
        against[i, j], against[j, i] = p, 1.0 - p
    form = [[b.math.scalar(0, F32)] * classes for _ in range(classes)]
    for i, j in itertools.product(range(classes), repeat=2):
        if i != j:
            form[i][i] = form[i][i] + against[j, i] * against[j, i]
            form[i][j] = -(against[j, i] * against[i, j])
    return form


def _minimum(b: Builder, form: list[list[Scalar]]) -> list[Scalar]:
    """The point of sum 1 where the form is least."""
    m, classes = b.math, len(form)

    def goes_on(count: Scalar, settled: Scalar, *_: Scalar) -> Scalar:
        return m.logical_and(count < _ROUNDS, m.logical_not(settled))

    def again(count: Scalar, _: Scalar, *p: Scalar) -> list[Scalar]:
        gradient = [_dot(row, p) for row in form]
        value = _dot(p, gradient)
        worst = m.absolute(gradient[0] - value)
        for g in gradient[1:]:
            worst = m.maximum(worst, m.absolute(g - value))
        settled = worst < _SETTLED / classes
        moved = _round(form, list(p), gradient, value)
        return [count + 1, settled, *(m.where(settled, old, new) for old, new in zip(p, moved, strict=True))]

    start = [m.scalar(1.0 / classes, F32)] * classes
    return b.while_([b.idx(0), m.scalar(0, BOOL), *start], goes_on, again)[2:]


def _round(form: list[list[Scalar]], p: list[Scalar], gradient: list[Scalar], value: Scalar) -> list[Scalar]:
    """Each coordinate in turn moved to its minimum, the others scaled so that the sum stays 1."""
    for i, row in enumerate(form):
        step = (value - gradient[i]) / row[i]
        p[i] = p[i] + step
        scale = step + 1.0
        value = (value + step * (step * row[i] + gradient[i] * 2.0)) / scale / scale
        gradient = [(g + step * q) / scale for g, q in zip(gradient, row, strict=True)]
        p = [x / scale for x in p]
    return p


def _dot(xs: Sequence[Scalar], ys: Sequence[Scalar]) -> Scalar:
    total = xs[0] * ys[0]
    for x, y in zip(xs[1:], ys[1:], strict=True):
        total = total + x * y
    return total

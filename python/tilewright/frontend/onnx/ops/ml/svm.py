# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Support vector machines of ai.onnx.ml."""

from __future__ import annotations

import itertools

import numpy as np

from tilewright.frontend.builder.dtypes import F32, I64
from tilewright.frontend.builder.emit import Space
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.ops.ml.coupling import coupled
from tilewright.frontend.onnx.ops.ml.encoders import (
    ML,
    feature_count,
    first_maximum,
    known_product,
    logistic,
    refuse_strings,
    rows,
    shifted,
    transformed,
)
from tilewright.frontend.onnx.registry import Builder, Node, op


def _kernel(b: Builder, node: Node, x: Tensor, vectors: np.ndarray) -> Tensor:
    """The kernel of each row with each support vector."""
    kind = node.attr("kernel_type", "LINEAR")
    gamma, offset, degree = [*(node.attr("kernel_params") or []), 0.0, 0.0, 3.0][:3]
    if kind == "RBF":
        space = Space([x.shape[0], len(vectors), x.shape[1]], frozenset([2]))
        inputs = [(x, [0, 2]), (Tensor.known(vectors), [1, 2])]
        far = b.generic(space, inputs, [0, 1], F32, lambda m, x, v, acc: acc + (x - v) * (x - v), 0.0)
        return b.elementwise(lambda m, d: m.exp(d * -gamma), far)
    products = known_product(b, x, vectors)
    if kind == "POLY":
        return b.elementwise(lambda m, p: m.power(p * gamma + offset, float(int(degree))), products)
    if kind == "SIGMOID":
        return b.elementwise(lambda m, p: m.tanh(p * gamma + offset), products)
    if kind != "LINEAR":
        node.wrong(f"kernel_type {kind} is not one of LINEAR, POLY, RBF, SIGMOID")
    return products


@op("SVMRegressor", domain=ML)
def svm_regressor(b: Builder, node: Node, x: Tensor) -> Tensor:
    """One target; with `one_class` its sign."""
    x, features = b.cast(rows(b, x), F32), feature_count(node, x)
    weights = np.array(node.attr("coefficients"), np.float32).reshape(1, -1)
    if node.attr("n_supports", 0):
        x = _kernel(b, node, x, np.array(node.attr("support_vectors"), np.float32).reshape(-1, features))
    score = shifted(b, known_product(b, x, weights), node.attr("rho")[:1])
    if node.attr("one_class", 0):
        return b.elementwise(lambda m, s: m.where(s > 0.0, m.scalar(1.0, F32), -1.0), score)
    return transformed(b, node, node.attr("post_transform", "NONE"), score)


def _pairs(weights: np.ndarray, counts: list[int]) -> np.ndarray:
    """A row for each pair of classes: the coefficients of the two classes' own support vectors."""
    starts = np.cumsum([0, *counts])
    result = []
    for i, j in itertools.combinations(range(len(counts)), 2):
        row = np.zeros(weights.shape[1], np.float32)
        row[starts[i] : starts[i + 1]] = weights[j - 1, starts[i] : starts[i + 1]]
        row[starts[j] : starts[j + 1]] = weights[i, starts[j] : starts[j + 1]]
        result.append(row)
    return np.array(result)


def _votes(b: Builder, scores: Tensor, classes: int) -> Tensor:
    """How many pairs each class wins."""
    pairs = list(itertools.combinations(range(classes), 2))
    wins, losses = np.zeros((2, classes, len(pairs)), np.float32)
    for number, (i, j) in enumerate(pairs):
        wins[i, number], losses[j, number] = 1, 1
    won = b.elementwise(lambda m, s: m.where(s > 0.0, m.scalar(1.0, F32), 0.0), scores)
    lost = b.elementwise(lambda m, w: 1.0 - w, won)
    return b.elementwise(lambda m, p, q: p + q, known_product(b, won, wins), known_product(b, lost, losses))


@op("SVMClassifier", domain=ML)
def svm_classifier(b: Builder, node: Node, x: Tensor) -> list[Tensor]:
    """The class that wins most pairs (or has the largest score, without support vectors), and the scores."""
    refuse_strings(node, "classlabels_strings")
    x, features = b.cast(rows(b, x), F32), feature_count(node, x)
    labels, counts = node.attr("classlabels_ints", [0]), node.attr("vectors_per_class", [])
    weights = np.array(node.attr("coefficients"), np.float32)
    kind, shift = node.attr("post_transform", "NONE"), node.attr("rho")
    if counts:
        vectors = np.array(node.attr("support_vectors"), np.float32).reshape(sum(counts), features)
        table = _pairs(weights.reshape(-1, sum(counts)), counts)
        scores = shifted(b, known_product(b, _kernel(b, node, x, vectors), table), shift)
        best = first_maximum(b, _votes(b, scores, len(labels)))
        if node.attr("prob_a"):
            slopes, offsets = (node.attr(name) or [] for name in ("prob_a", "prob_b"))
            if not len(slopes) == len(offsets) == len(table):
                node.wrong(f"{len(slopes)} prob_a and {len(offsets)} prob_b for {len(table)} pairs of classes")
            likely = transformed(b, node, kind, coupled(b, scores, slopes, offsets, len(labels)))
            return [b.gather(Tensor.known(labels, I64), best, 0), likely]
    else:
        scores = shifted(b, known_product(b, x, weights.reshape(len(labels), features)), shift[:1])
        best = first_maximum(b, scores)
    return [b.gather(Tensor.known(labels, I64), best, 0), _final(b, node, scores, kind)]


def _final(b: Builder, node: Node, scores: Tensor, kind: str) -> Tensor:
    """Scores after the transform; the only score of two classes comes with its negative."""
    if scores.shape[1] != 1:
        return transformed(b, node, kind, scores)
    if kind == "PROBIT":
        return transformed(b, node, kind, scores)
    negative = b.elementwise(lambda m, s: -s, scores)
    if kind == "LOGISTIC":
        scores, negative = b.elementwise(logistic, scores), b.elementwise(logistic, negative)
    return b.concat([negative, scores], 1)

# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""TfIdfVectorizer on integers: how often n-grams of a pool occur."""

from __future__ import annotations

import numpy as np

from tilewright.frontend.builder.dtypes import F32, I64
from tilewright.frontend.builder.scalars import BOOL, Scalar
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.ops.ml.encoders import refuse_strings
from tilewright.frontend.onnx.registry import Builder, Node, op


def _pools(node: Node) -> dict[int, dict[tuple[int, ...], int]]:
    """The column of each n-gram, by n; of equal ones the last counts."""
    pool, starts = node.attr("pool_int64s"), node.attr("ngram_counts")
    if not pool:
        node.wrong("there is no pool: the attribute pool_int64s is missing")
    starts, ends, indexes = list(starts), [*starts[1:], len(pool)], node.attr("ngram_indexes")
    if any(not 0 <= start <= end for start, end in zip(starts, ends, strict=True)) or min(indexes) < 0:
        node.wrong(f"ngram_counts {starts} or ngram_indexes are no places in a pool of {len(pool)}")
    total = sum((end - start) // n for n, (start, end) in enumerate(zip(starts, ends, strict=True), 1))
    if total != len(indexes):
        node.wrong(f"{len(indexes)} ngram_indexes for {total} n-grams")
    columns = iter(indexes)
    grams: dict[int, dict[tuple[int, ...], int]] = {}
    for n, (start, end) in enumerate(zip(starts, ends, strict=True), 1):
        found = {tuple(pool[i : i + n]): next(columns) for i in range(start, end - n + 1, n)}
        if found and node.attr("min_gram_length") <= n <= node.attr("max_gram_length"):
            grams[n] = found
    return grams


@op("TfIdfVectorizer", since=9)
def tf_idf_vectorizer(b: Builder, node: Node, x: Tensor) -> Tensor:
    """Occurrences, their items up to `max_skip_count` apart (equally), weighted by `mode`."""
    refuse_strings(node, "pool_strings")
    if x.rank not in (1, 2):
        node.wrong(f"the input {list(x.shape)} is neither a row nor a batch of rows")
    width = max(node.attr("ngram_indexes")) + 1
    rows = b.array(b.cast(x if x.rank == 2 else x.unsqueeze([0]), I64))
    counts = b.full(0, [rows.shape[0], width], F32)
    for n, found in _pools(node).items():
        skips = 1 if n == 1 else node.attr("max_skip_count") + 1
        counts = _count(b, rows, counts, n, found, skips)
    result = _weighted(b, node, counts)
    return result if x.rank == 2 else result.squeeze([0])


def _count(b: Builder, rows: Tensor, counts: Tensor, n: int, found: dict[tuple[int, ...], int], skips: int) -> Tensor:
    """`counts` with the occurrences of the pool's n-grams of one length."""
    m, length = b.math, b.idx(rows.shape[1])
    grams = b.array(Tensor.known(np.array(list(found), np.int64)))
    columns = b.array(Tensor.known(list(found.values()), I64))

    def gram(at: list[Scalar], counts: Tensor) -> list[Tensor]:
        row, number = at
        zero, one = m.scalar(0, F32), m.scalar(1, F32)

        def distance(skip: Scalar, total: Scalar) -> list[Scalar]:
            def place(start: Scalar, total: Scalar) -> list[Scalar]:
                same = m.scalar(1, BOOL)
                for j in range(n):
                    item = b.at(rows, [row, start + skip * j])
                    same = m.logical_and(same, m.eq(item, b.at(grams, [number, j])))
                return [total + m.where(same, one, zero)]

            return b.for_(0, length - skip * (n - 1), [total], place)

        (total,) = b.for_(1, skips + 1, [zero], distance)
        column = b.at(columns, [number])
        return [b.put(b.at(counts, [row, column]) + total, counts, [row, column])]

    return b.nest([rows.shape[0], len(found)], [counts], gram)[0]


def _weighted(b: Builder, node: Node, counts: Tensor) -> Tensor:
    mode, weights = node.attr("mode"), node.attr("weights")
    if mode not in ("TF", "IDF", "TFIDF"):
        node.wrong(f"mode {mode} is not one of TF, IDF, TFIDF")
    if mode == "IDF":
        counts = b.elementwise(lambda m, c: m.where(c > 0.0, 1.0, c), counts)
    if mode == "TF" or not weights:
        return counts
    scale = np.ones(int(counts.shape[1]), np.float32)
    scale[node.attr("ngram_indexes")] = weights
    return b.elementwise(lambda m, c, w: c * w, counts, Tensor.known(scale))

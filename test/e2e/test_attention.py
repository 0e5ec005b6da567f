# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention over long and odd sequences, with constant masks, additive ones and none: blocks of rows and of keys."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import tilewright as tw
from tilewright.demo.graph import GraphBuilder

#: heads, queries, keys, depth
SIZES = [(1, 80, 80, 64), (2, 197, 197, 32), (1, 2048, 2048, 64), (3, 33, 1000, 16), (2, 300, 1531, 24)]
LOWEST = float(np.finfo(np.float32).min)


def attention(sizes: tuple[int, ...], mask: np.ndarray | None = None, low: float = LOWEST) -> onnx.ModelProto:
    """softmax(q k^T / sqrt(depth)) v, with scores replaced by `low` (or, a mask of numbers, added to) if asked."""
    heads, queries, keys, depth = sizes
    g = GraphBuilder("attention")
    q = g.input("q", np.float32, [1, heads, queries, depth])
    k, v = (g.input(n, np.float32, [1, heads, keys, depth]) for n in "kv")
    scores = g.op("Mul", g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2])), g.f32(depth**-0.5))
    if mask is not None and mask.dtype == np.bool_:
        scores = g.op("Where", g.const(mask, np.bool_), scores, g.f32(low))
    elif mask is not None:
        scores = g.op("Add", scores, g.const(mask, np.float32))
    g.output(g.op("MatMul", g.op("Softmax", scores, axis=-1), v), "y", np.float32, [1, heads, queries, depth])
    return g.model()


def expected(inputs: dict[str, np.ndarray], mask: np.ndarray | None, low: float) -> np.ndarray:
    """The same in f64."""
    q, k, v = (inputs[n].astype(np.float64) for n in "qkv")
    scores = q @ k.swapaxes(-1, -2) * q.shape[-1] ** -0.5
    if mask is not None:
        scores = np.where(mask, scores, low) if mask.dtype == np.bool_ else scores + mask
    with np.errstate(invalid="ignore"):
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        return powers @ v / powers.sum(-1, keepdims=True)


def check(sizes: tuple[int, ...], mask: np.ndarray | None = None, low: float = LOWEST) -> None:
    """One and two threads: the result in f64, and equal bits."""
    heads, queries, keys, depth = sizes
    rng = np.random.default_rng(sum(sizes))
    shapes = {"q": queries, "k": keys, "v": keys}
    inputs = {n: rng.standard_normal((1, heads, rows, depth), np.float32) for n, rows in shapes.items()}
    model = attention(sizes, mask, low)
    one, two = (tw.compile(model, threads=threads)(**inputs)[0] for threads in (1, 2))
    np.testing.assert_allclose(one, expected(inputs, mask, low), rtol=2e-5, atol=2e-5)
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("sizes", SIZES, ids=lambda s: "x".join(map(str, s)))
def test_all_keys(sizes: tuple[int, ...]) -> None:
    """Every query meets every key."""
    check(sizes)

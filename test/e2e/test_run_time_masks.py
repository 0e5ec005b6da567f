# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention with masks that a run brings: blocks of keys that they mask are left out, and nothing else changes."""

from __future__ import annotations

import functools
import re

import numpy as np
import onnx
import pytest

import tilewright as tw
from tilewright.demo.graph import GraphBuilder

HEADS, DEPTH = 8, 64
LOWEST = float(np.finfo(np.float32).min)
#: queries, keys: whole blocks; a remainder of both; tasks that hold several rows of few
SIZES = [(512, 512), (700, 700), (33, 1000)]


def attention(kind: str, queries: int, keys: int, heads: int = 1) -> onnx.ModelProto:
    """softmax(mask(q k^T / sqrt(depth))) v; the mask is an input of `heads` heads.

    Args:
        kind: `where` chooses between scores and -inf, `low` and the lowest number, `add` adds, `lengths` adds a row of
            numbers that is computed of zeros and ones, as encoders have it.
        queries: rows of `q`.
        keys: rows of `k` and `v`.
        heads: of the mask.
    """
    g = GraphBuilder("attention")
    q = g.input("q", np.float32, [1, HEADS, queries, DEPTH])
    k, v = (g.input(n, np.float32, [1, HEADS, keys, DEPTH]) for n in "kv")
    choice = kind in ("where", "low")
    rows = 1 if kind == "lengths" else queries
    mask = g.input("mask", np.bool_ if choice else np.float32, [1, heads, rows, keys])
    scores = g.op("Mul", g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2])), g.f32(DEPTH**-0.5))
    if choice:
        scores = g.op("Where", mask, scores, g.f32(-np.inf if kind == "where" else LOWEST))
    elif kind == "lengths":
        scores = g.op("Add", scores, g.op("Mul", g.op("Sub", g.f32(1.0), mask), g.f32(LOWEST)))
    else:
        scores = g.op("Add", scores, mask)
    g.output(g.op("MatMul", g.op("Softmax", scores, axis=-1), v), "y", np.float32, [1, HEADS, queries, DEPTH])
    return g.model()


@functools.cache
def compiled(kind: str, queries: int, keys: int, heads: int = 1, target: str = "cpu", threads: int = 1) -> tw.Model:
    """The model, compiled."""
    return tw.compile(attention(kind, queries, keys, heads), target=target, threads=threads)


def mask_of(kind: str, live: np.ndarray) -> np.ndarray:
    """The input that leaves what `live` says."""
    if kind in ("where", "low"):
        return live
    if kind == "lengths":
        return live.astype(np.float32)
    return np.where(live, np.float32(0), np.float32(LOWEST if kind == "add" else -np.inf))


def blocks(rng: np.random.Generator, queries: int, keys: int, share: float, heads: int = 1) -> np.ndarray:
    """Blocks of 64x64, of which a share is live, and those of the diagonal are."""
    rows, columns = -(-queries // 64), -(-keys // 64)
    live = rng.random((1, heads, rows, columns)) < share
    live[:, :, np.arange(rows), np.arange(rows) % columns] = True
    return np.repeat(np.repeat(live, 64, 2), 64, 3)[:, :, :queries, :keys]


def inputs_of(rng: np.random.Generator, queries: int, keys: int) -> dict[str, np.ndarray]:
    """Queries, keys and values."""
    shapes = {"q": queries, "k": keys, "v": keys}
    return {n: rng.standard_normal((1, HEADS, rows, DEPTH), np.float32) for n, rows in shapes.items()}


def expected(inputs: dict[str, np.ndarray], live: np.ndarray, low: float) -> np.ndarray:
    """The same in f64."""
    q, k, v = (inputs[n].astype(np.float64) for n in "qkv")
    scores = np.where(live, q @ k.swapaxes(-1, -2) * DEPTH**-0.5, low)
    with np.errstate(invalid="ignore"):
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        return powers @ v / powers.sum(-1, keepdims=True)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["where", "low", "add", "infinite"])
@pytest.mark.parametrize("sizes", SIZES, ids=lambda s: "x".join(map(str, s)))
def test_blocks(kind: str, sizes: tuple[int, int]) -> None:
    rng = np.random.default_rng(sum(sizes))
    for share in (0.0, 0.2, 1.0):
        live, inputs = blocks(rng, *sizes, share), inputs_of(rng, *sizes)
        result = compiled(kind, *sizes)(**inputs, mask=mask_of(kind, live))[0]
        np.testing.assert_allclose(result, expected(inputs, live, -np.inf), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize(("kind", "low"), [("where", -np.inf), ("low", LOWEST), ("add", LOWEST), ("infinite", -np.inf)])
def test_rows_that_are_masked_see_all_keys(kind: str, low: float) -> None:
    """As they did: the mean of all values where the mask is a number, no number where it is infinite."""
    rng = np.random.default_rng(3)
    live, inputs = blocks(rng, 512, 512, 0.2), inputs_of(rng, 512, 512)
    live[:, :, 70:150] = False
    result = compiled(kind, 512, 512)(**inputs, mask=mask_of(kind, live))[0]
    np.testing.assert_allclose(result, expected(inputs, live, low), rtol=2e-5, atol=2e-5)
    assert np.isnan(result).any() == np.isinf(low)


@pytest.mark.parametrize("length", [0, 1, 64, 300, 512])
def test_lengths(length: int) -> None:
    """Keys behind the end of a sequence, for all rows alike."""
    rng = np.random.default_rng(length)
    live, inputs = np.broadcast_to(np.arange(512) < length, (1, 1, 1, 512)), inputs_of(rng, 512, 512)
    result = compiled("lengths", 512, 512)(**inputs, mask=mask_of("lengths", live))[0]
    np.testing.assert_allclose(result, expected(inputs, live, LOWEST), rtol=2e-5, atol=2e-5)


def test_single_elements() -> None:
    """A block in which one element of one row is live counts."""
    rng = np.random.default_rng(5)
    live, inputs = np.eye(512, dtype=bool)[None, None], inputs_of(rng, 512, 512)
    result = compiled("where", 512, 512)(**inputs, mask=live)[0]
    np.testing.assert_allclose(result, inputs["v"], rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("target", ["cpu", "cpu:x86-64-v3"])
@pytest.mark.parametrize("kind", ["where", "add"])
def test_masked_blocks_are_not_read(kind: str, target: str) -> None:
    """Zero times what is no number would show in the result."""
    rng = np.random.default_rng(7)
    inputs = inputs_of(rng, 512, 512)
    live = np.zeros((1, 1, 512, 512), bool)
    live[..., 128:256] = True
    whole = expected(inputs, live, -np.inf)
    inputs["v"][:, :, :128] = np.nan
    inputs["v"][:, :, 256:] = np.nan
    result = compiled(kind, 512, 512, target=target)(**inputs, mask=mask_of(kind, live))[0]
    np.testing.assert_allclose(result, whole, rtol=2e-5, atol=2e-5)


def test_a_mask_for_each_head() -> None:
    rng = np.random.default_rng(9)
    live, inputs = blocks(rng, 512, 512, 0.3, HEADS), inputs_of(rng, 512, 512)
    model = compiled("where", 512, 512, HEADS)
    result = model(**inputs, mask=live)[0]
    np.testing.assert_allclose(result, expected(inputs, live, -np.inf), rtol=2e-5, atol=2e-5)


def test_it_is_told() -> None:
    (remark,) = compiled("where", 512, 512).report_data()["remarks"]
    assert re.fullmatch("blocks of (64|128) steps .* mask of a run leaves nothing are left out", remark["message"])
    assert remark["location"] == "/Where"


def test_threads_change_no_bit() -> None:
    rng = np.random.default_rng(11)
    live, inputs = blocks(rng, 700, 700, 0.3), inputs_of(rng, 700, 700)
    one, two = (compiled("where", 700, 700, threads=t)(**inputs, mask=live)[0] for t in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_chains_in_several_kernels_have_no_flags() -> None:
    """Products so deep that their sums fill a task's memory do not run in one loop: nothing is computed in vain."""
    g = GraphBuilder("attention")
    q, k, v = (g.input(n, np.float32, [1, 2, 512, 1024]) for n in "qkv")
    mask = g.input("mask", np.bool_, [1, 1, 512, 512])
    scores = g.op("Where", mask, g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2])), g.f32(-np.inf))
    g.output(g.op("MatMul", g.op("Softmax", scores, axis=-1), v), "y", np.float32, [1, 2, 512, 1024])
    text = tw.compile(g.model(), stop_after="plan")
    assert "tile.skip" not in text and "xi8>" not in text


def test_layers_share_their_mask() -> None:
    g = GraphBuilder("layers")
    mask = g.input("mask", np.float32, [1, 1, 1, 512])
    x = g.input("x", np.float32, [1, HEADS, 512, DEPTH])
    for _ in range(2):
        scores = g.op("Add", g.op("MatMul", x, g.op("Transpose", x, perm=[0, 1, 3, 2])), mask)
        x = g.op("MatMul", g.op("Softmax", scores, axis=-1), x)
    g.output(x, "y", np.float32, [1, HEADS, 512, DEPTH])
    text = tw.compile(g.model(), stop_after="plan")
    assert text.count("tile.skip") == 2
    assert text.count("arith.cmpf ole") == 1

# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention over long and odd sequences, with constant masks, additive ones and none: blocks of rows and of keys."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import tilewright as tw
from tilewright import reference
from tilewright.compiler.driver import Compilation, lower
from tilewright.compiler.source import open_source
from tilewright.core.options import CompileOptions
from tilewright.demo.graph import GraphBuilder
from tilewright.devices import get
from tilewright.targets.registry import parse_target

#: heads, queries, keys, depth
SIZES = [
    (1, 80, 80, 64),
    (2, 197, 197, 32),
    (1, 2048, 2048, 64),
    (3, 33, 1000, 16),
    (2, 300, 1531, 24),
    (2, 70, 333, 512),
]
#: The same, for a query or a few at a time: keys are read as they lie.
DECODE = [(12, 1, 2048, 64), (9, 1, 77, 24), (8, 3, 130, 40), (2, 1, 300, 16)]
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


@pytest.mark.parametrize("sizes", SIZES + DECODE, ids=lambda s: "x".join(map(str, s)))
def test_all_keys(sizes: tuple[int, ...]) -> None:
    """Every query meets every key."""
    check(sizes)


@pytest.mark.parametrize("target", ["cpu", "cpu:znver5", "cpu:x86-64-v3"])
def test_keys_of_one_query_are_not_transposed(target: str) -> None:
    """One kernel, in which every tile of keys is as wide as they lie."""
    lanes = get(target).lanes(32)
    text = tw.compile(attention((12, 1, 512, 64)), target=target, stop_after="tile")
    assert text.count("tile.launch") == 1
    assert f"!tile.tile<{lanes}x{lanes}xf32>" not in text
    assert f"!tile.tile<8x{2 * lanes}xf32>" in text


def seen_by_cause(queries: int, keys: int) -> np.ndarray:
    """Each query sees the keys up to its own, the last ones being aligned."""
    return np.tri(queries, keys, keys - queries, dtype=np.bool_)


def window(queries: int, keys: int, width: int) -> np.ndarray:
    """Each query sees the keys around its own."""
    distance = np.arange(queries)[:, None] - np.arange(keys)
    return np.abs(distance) < width


def documents(queries: int, keys: int, size: int) -> np.ndarray:
    """Queries see the keys of their own document; those after the last document see none."""
    rows, columns = np.arange(queries)[:, None], np.arange(keys)
    return (rows // size == columns // size) & (columns < keys // size * size)


MASKS = {
    "causal": (SIZES[2], seen_by_cause(2048, 2048)),
    "causal-ragged": ((2, 300, 1531, 24), seen_by_cause(300, 1531)),
    "causal-short": ((2, 397, 397, 32), seen_by_cause(397, 397)),
    "window": ((1, 1000, 1000, 32), window(1000, 1000, 65)),
    "documents": ((2, 1100, 1100, 16), documents(1100, 1100, 300)),
    "holes": ((1, 700, 700, 16), np.random.default_rng(0).random((700, 700)) < 0.1),
    "columns": ((1, 700, 700, 16), np.arange(700)[None, :] < 300),
    "none": ((1, 600, 600, 16), np.zeros((600, 600), np.bool_)),
}


@pytest.mark.parametrize("name", MASKS)
def test_constant_masks(name: str) -> None:
    """Masked blocks are skipped, but for rows that see nothing at all: their scores are equal."""
    check(*MASKS[name])


@pytest.mark.parametrize("low", [-np.inf, LOWEST, -1e9])
def test_added_masks(low: float) -> None:
    """Numbers that are added; with -inf, the first blocks of a window hold rows without any finite score."""
    sizes = (1, 900, 900, 16)
    check(sizes, np.where(window(900, 900, 70), 0.0, low).astype(np.float32))


def test_rows_without_scores_are_nan() -> None:
    """As without blocks: exp(-inf - -inf)."""
    check((1, 640, 640, 16), documents(640, 640, 300), -np.inf)


@pytest.mark.parametrize("queries", [64, 520])
def test_operator(queries: int) -> None:
    """ONNX's own operator: masks are comparisons of positions."""
    rng = np.random.default_rng(1)
    g = GraphBuilder("attention", opset=23)
    shapes = {"q": (1, 4, queries, 16), "k": (1, 2, 520, 16), "v": (1, 2, 520, 16)}
    inputs = {n: rng.standard_normal(s, np.float32) for n, s in shapes.items()}
    q, k, v = (g.input(n, np.float32, list(s)) for n, s in shapes.items())
    g.output(g.op("Attention", q, k, v, is_causal=1), "y", np.float32, list(shapes["q"]))
    y = tw.compile(g.model(), threads=2)(**inputs)[0]
    wide = {n: np.repeat(a, 2, axis=1) if n != "q" else a for n, a in inputs.items()}
    mask = np.tri(queries, 520, dtype=np.bool_)
    np.testing.assert_allclose(y, expected(wide, mask, -np.inf), rtol=2e-5, atol=2e-5)


def test_what_cannot_be_rescaled_stays_apart() -> None:
    """Squares of exponentials are not linear in them: their sum is made of the whole row."""
    rng = np.random.default_rng(3)
    inputs = {n: rng.standard_normal((1, 4, 1200, 16), np.float32) for n in "qkv"}
    g = GraphBuilder("squares")
    q, k, v = (g.input(n, np.float32, [1, 4, 1200, 16]) for n in "qkv")
    scores = g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2]))
    powers = g.op("Exp", g.op("Sub", scores, g.op("ReduceMax", scores, axes=[-1])))
    g.output(g.op("MatMul", g.op("Mul", powers, powers), v), "y", np.float32, [1, 4, 1200, 16])
    y = tw.compile(g.model(), threads=2)(**inputs)[0]
    wide = {n: a.astype(np.float64) for n, a in inputs.items()}
    scores = wide["q"] @ wide["k"].swapaxes(-1, -2)
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    np.testing.assert_allclose(y, powers**2 @ wide["v"], rtol=1e-4, atol=1e-4)


def test_interpreter_runs_the_loop() -> None:
    """Phase `plan` puts the reductions into one loop, which the interpreter runs as it is."""
    sizes = (2, 384, 384, 16)
    rng = np.random.default_rng(2)
    inputs = {n: rng.standard_normal((1, 2, 384, 16), np.float32) for n in "qkv"}
    mask = seen_by_cause(384, 384)
    model = attention(sizes, mask)
    work = Compilation(open_source(model), parse_target("cpu"), CompileOptions(stop_after="plan"))
    text = lower(work)
    assert text is not None and "scf.for" in text and "tile.live" in text
    (y,) = reference.run(work.module, "main", list(inputs.values()), work.weights)
    np.testing.assert_allclose(y, expected(inputs, mask, LOWEST), rtol=2e-5, atol=2e-5)

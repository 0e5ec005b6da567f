# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Folds over blocks of keys that are one softmax, however a program writes them, and folds that only look like it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fractal_runs import values

import tilewright as tw
import tilewright.fractal as ft
from tilewright import reference
from tilewright.mlir import ir
from tilewright.passes import run_pipeline

PASSES = "builtin.module(tile-hoist-invariants,tile-join-softmax-blocks)"
#: Rows of queries, keys of a block, their size, that of values, blocks of queries and of keys.
SIZES = [(3, 7, 5, 6, 2, 3), (1, 1, 1, 1, 1, 1), (4, 1, 2, 1, 1, 5), (1, 16, 3, 5, 3, 2), (5, 3, 1, 2, 1, 1)]


def scores_of(q: Any, k: Any) -> Any:
    return q @ k.T


def quotient(state: Any, x: Any, v: Any) -> Any:
    """The output is that of all blocks so far; each block has its own maximum."""
    m, s, o = state
    top = ft.rowmax(x)
    e = ft.exp(x - top)
    n = ft.maximum(m, top)
    old, new = ft.exp(m - n) * s, ft.exp(top - n)
    both = old + new * ft.rowsum(e)
    return n, both, (o * old + new * (e @ v)) / both


def shares(state: Any, x: Any, v: Any) -> Any:
    """The parts are divided, not the sum; the larger maximum is that of the block or not."""
    m, s, o = state
    top = ft.rowmax(x)
    n = ft.maximum(top, m)
    e = ft.exp(x - n)
    old = s * ft.exp(m - n)
    both = ft.rowsum(e) + old
    return n, both, (e @ v) / both + (old / both) * o


def sums(state: Any, x: Any, v: Any) -> Any:
    """Nothing is divided."""
    m, s, o = state
    n = ft.maximum(m, ft.rowmax(x))
    e, f = ft.exp(x - n), ft.exp(m - n)
    return n, s * f + ft.rowsum(e), o * f + e @ v


def softer(state: Any, x: Any, v: Any) -> Any:
    """Differences are scaled, scores are not."""
    m, s, o = state
    n = ft.maximum(m, ft.rowmax(x))
    e, f = ft.exp((x - n) * 0.25), ft.exp(0.25 * m - 0.25 * n)
    return n, s * f + ft.rowsum(e), o * f + e @ v


def otherwise_scaled(state: Any, x: Any, v: Any) -> Any:
    """The old sum is scaled by another power than the new one."""
    m, s, o = state
    n = ft.maximum(m, ft.rowmax(x))
    e, f = ft.exp(x - n), ft.exp((m - n) * 2.0)
    return n, s * f + ft.rowsum(e), o * f + e @ v


def unscaled(state: Any, x: Any, v: Any) -> Any:
    """The old output is not scaled."""
    m, s, o = state
    n = ft.maximum(m, ft.rowmax(x))
    e = ft.exp(x - n)
    return n, s * ft.exp(m - n) + ft.rowsum(e), o + e @ v


def positive(state: Any, x: Any, v: Any) -> Any:
    """The output never falls below zero on the way."""
    n, s, o = quotient(state, x, v)
    return n, s, ft.maximum(o, ft.zeros(*o.shape))


def doubled(state: Any, x: Any, v: Any) -> Any:
    """A block counts twice."""
    m, s, o = state
    n = ft.maximum(m, ft.rowmax(x))
    e, f = ft.exp(x - n), ft.exp(m - n)
    return n, s * f + ft.rowsum(e), o * f + 2.0 * (e @ v)


def lowered(state: Any, x: Any, v: Any) -> Any:
    """The scores of a block are relative to their own maximum."""
    return sums(state, x - ft.rowmax(x), v)


INF = float("inf")
JOINED: dict[str, Callable] = {f.__name__: f for f in (quotient, shares, sums, softer)}
#: Steps, what states start at, and what the remark says.
LEFT: dict[str, tuple[Callable, tuple[float, float, float], str]] = {
    "otherwise_scaled": (otherwise_scaled, (-INF, 0.0, 0.0), "state 1 is neither"),
    "unscaled": (unscaled, (-INF, 0.0, 0.0), "state 2 is neither"),
    "positive": (positive, (-INF, 0.0, 0.0), "state 2 is neither"),
    "doubled": (doubled, (-INF, 0.0, 0.0), "state 2 is neither"),
    "lowered": (lowered, (-INF, 0.0, 0.0), "scores or weights are not made row by row"),
    "low": (quotient, (-1.0, 0.0, 0.0), "state 0 does not start at minus infinity"),
    "sink": (sums, (-INF, 1.0, 0.0), "state 1 does not start at zero"),
    "offset": (sums, (-INF, 0.0, 0.5), "state 2 does not start at zero"),
}


def program(
    step: Callable,
    sizes: tuple[int, ...],
    starts: tuple[float, ...] = (-INF, 0.0, 0.0),
    fold: Callable = ft.foldl,
    scores: Callable = scores_of,
) -> ft.Function:
    """Attention by a fold with this step."""
    rows, keys, depth, width = sizes[:4]

    @ft.function
    def attend(
        qs: ft.Array[1, (rows, depth)], ks: ft.Array[1, (keys, depth)], vs: ft.Array[1, (keys, width)]
    ) -> ft.Array[1, (rows, width)]:
        init = tuple(ft.full((rows, n), start) for n, start in zip((1, 1, width), starts, strict=True))

        def one(q: Any) -> Any:
            _, s, o = fold(lambda state, k, v: step(state, scores(q, k), v), init, ks, vs)
            return o if step in (quotient, shares, positive) else o / s

        return ft.map(one, qs)

    return attend


def arguments(sizes: tuple[int, ...], seed: int = 0) -> dict[str, np.ndarray]:
    rows, keys, depth, width, queries, blocks = sizes
    shapes = {"qs": (queries, rows, depth), "ks": (blocks, keys, depth), "vs": (blocks, keys, width)}
    return {name: 2 * values(*shape, seed=seed + i) for i, (name, shape) in enumerate(shapes.items())}


def softmax(given: dict[str, np.ndarray], scale: float = 1.0) -> np.ndarray:
    """In f64, over all keys at once."""
    q, k, v = (array.astype(np.float64) for array in given.values())
    x = scale * (q @ k.reshape(-1, k.shape[2]).T)
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return (e / e.sum(axis=-1, keepdims=True)) @ v.reshape(-1, v.shape[2])


def after_passes(function: ft.Function, given: dict[str, np.ndarray]) -> tuple[str, list[str], np.ndarray]:
    """The program after the pass: its text, what the pass remarks, and what the interpreter makes of it."""
    traced = function.trace({name: array.shape[:1] for name, array in given.items()})
    with ir.Context():
        module = ir.Module.parse(traced.module_text)
        done = run_pipeline(module.operation, PASSES)
        text = str(module)
        (output,) = reference.run(module, "main", [ft.Lists(array) for array in given.values()], traced.weights)
    return text, [d.message for d in done.diagnostics], np.asarray(output.flat)


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("name", JOINED)
def test_joined(name: str, sizes: tuple[int, ...]) -> None:
    given = arguments(sizes)
    text, remarks, output = after_passes(program(JOINED[name], sizes), given)
    assert "fractal.fold" not in text and not remarks
    np.testing.assert_allclose(output, softmax(given, 0.25 if name == "softer" else 1.0), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", LEFT)
def test_left_as_they_are(name: str) -> None:
    """With a reason, and the values that eager mode has."""
    step, starts, reason = LEFT[name]
    given = arguments(SIZES[0])
    function = program(step, SIZES[0], starts)
    text, remarks, output = after_passes(function, given)
    assert text.count("fractal.fold") == 1 and len(remarks) == 1 and reason in remarks[0]
    np.testing.assert_allclose(output, np.asarray(function(**given)), rtol=1e-5, atol=1e-6)


def test_published_inits() -> None:
    """(sum, largest score, output), as FractalTensor's example starts: it is no softmax, and none is made of it."""
    text, remarks, _ = after_passes(program(quotient, SIZES[0], (0.0, -INF, 0.0)), arguments(SIZES[0]))
    assert "fractal.fold" in text and "state 0 does not start" in remarks[0]


def test_no_blocks() -> None:
    """States are what they start as; nothing is joined, nor is that worth a remark."""
    given = arguments((3, 7, 5, 6, 2, 0))
    text, remarks, output = after_passes(program(quotient, SIZES[0]), given)
    assert "fractal.fold" in text and not remarks
    np.testing.assert_array_equal(output, np.zeros((2, 3, 6), np.float32))


def test_from_the_right() -> None:
    given = arguments(SIZES[0])
    text, _, output = after_passes(program(sums, SIZES[0], fold=ft.foldr), given)
    assert "fractal.fold" not in text
    np.testing.assert_allclose(output, softmax(given), rtol=1e-5, atol=1e-6)


def test_scores_of_several_steps() -> None:
    """What is done to scores in front of the maximum is done to all of them."""
    given = arguments(SIZES[0])
    text, _, output = after_passes(program(shares, SIZES[0], scores=lambda q, k: (q @ k.T) * 0.5), given)
    assert "fractal.fold" not in text
    np.testing.assert_allclose(output, softmax(given, 0.5), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("low", [-1e30, -INF])
def test_masks(low: float) -> None:
    """A list of masks goes along with the keys; a block that it masks adds nothing."""
    rows, keys, depth, width, queries, blocks = sizes = SIZES[0]
    given = arguments(sizes)
    mask = np.where(values(blocks, rows, keys, seed=7) > 0.3, np.float32(low), np.float32(0))
    mask[1] = low

    @ft.function
    def attend(
        qs: ft.Array[1, (rows, depth)],
        ks: ft.Array[1, (keys, depth)],
        vs: ft.Array[1, (keys, width)],
        masks: ft.Array[1, (rows, keys)],
    ) -> ft.Array[1, (rows, width)]:
        init = ft.full((rows, 1), -INF), ft.zeros(rows, 1), ft.zeros(rows, width)
        return ft.map(
            lambda q: ft.foldl(lambda s, k, v, mask: shares(s, q @ k.T + mask, v), init, ks, vs, masks)[2], qs
        )

    text, _, output = after_passes(attend, {**given, "masks": mask})
    assert "fractal.fold" not in text
    q, k, v = (array.astype(np.float64) for array in given.values())
    x = q @ k.reshape(-1, depth).T + mask.transpose(1, 0, 2).reshape(rows, -1)
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    expected = (e / e.sum(axis=-1, keepdims=True)) @ v.reshape(-1, width)
    np.testing.assert_allclose(output, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["quotient", "sums"])
@pytest.mark.parametrize(
    ("target", "sizes"),
    [("cpu", (64, 64, 64, 64, 4, 8)), ("cuda:sm_80", (16, 8, 16, 16, 2, 4)), ("cuda:sm_90a", (16, 8, 16, 16, 2, 4))],
)
def test_one_kernel(name: str, target: str, sizes: tuple[int, ...]) -> None:
    """Scores, their softmax, and the product with values; blocks of queries are rows of one matrix."""
    given = arguments(sizes)
    lengths = {key: array.shape[:1] for key, array in given.items()}
    model = tw.compile(program(JOINED[name], sizes), target, shapes=lengths, emulate=target != "cpu")
    assert len(model.kernels) == 1
    np.testing.assert_allclose(model(**given)[0], softmax(given), rtol=1e-4, atol=1e-5)

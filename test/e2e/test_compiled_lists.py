# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The six benchmark programs of nested lists, compiled, against loops over NumPy arrays in f64."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import fractal_oracles
import numpy as np
import pytest
from fractal_runs import values

import tilewright as tw
import tilewright.fractal as ft

#: Which parameters are weights; all, where there is no other sensible split.
WEIGHTS = {
    "stacked_lstm": ("ws", "us", "bs"),
    "dilated_lstm": ("ws", "us", "bs"),
    "grid_rnn": ("wx", "ux", "bx", "wy", "uy", "by"),
    "b2b_gemm": ("b", "c"),
    "attention": ("ksss", "vsss"),
    "bigbird": ("kss", "vss"),
}


def stacked(hidden: int, steps: int, batch: int, layers: int) -> tuple:
    """Leaf sizes and shapes of the arguments."""
    square = (layers, 4, hidden, hidden)
    return (hidden,), [(steps, batch, 1, hidden), square, square, (layers, 4, 1, hidden)]


def dilated(hidden: int, batch: int, steps: int, layers: int) -> tuple:
    """Likewise; the number of steps may be no multiple of the distances."""
    wide = (layers, hidden, 4 * hidden)
    return (hidden,), [(batch, steps, 1, hidden), wide, wide, (layers, 1, 4 * hidden)]


def grid(hidden: int, batch: int, rows: int, columns: int, layers: int) -> tuple:
    """Likewise."""
    weights = [(layers, hidden, hidden), (layers, 2 * hidden, hidden), (layers, 1, hidden)]
    return (hidden,), [(batch, rows, 1, hidden), (batch, columns, 1, hidden), *weights, *weights]


def gemm(blocks: Sequence[int], sizes: Sequence[int]) -> tuple:
    """Likewise; how many blocks, and of which sizes, along m, k, n and p."""
    (rows, inner, middle, columns), (m, k, n, p) = blocks, sizes
    return sizes, [(rows, inner, m, k), (middle, inner, k, n), (columns, middle, n, p)]


def attention(rows: int, dim: int, heads: tuple[int, int], queries: int, keys: int) -> tuple:
    """Likewise."""
    return (rows, dim), [(*heads, queries, rows, dim), *[(*heads, keys, rows, dim)] * 2]


def bigbird(rows: int, hidden: int, batch: int, blocks: int) -> tuple:
    """Likewise; at least four blocks."""
    return (rows, hidden), [(batch, blocks, rows, hidden)] * 3


#: For each program sizes, the smallest first: lengths of one, odd ones, ones that fill vectors; at last those of the
#: catalogue of FractalTensor's programs for tests.
CASES: dict[str, list[tuple]] = {
    "stacked_lstm": [
        stacked(4, 1, 1, 1),
        stacked(6, 5, 3, 2),
        stacked(16, 3, 1, 3),
        stacked(33, 2, 9, 1),
        stacked(16, 6, 3, 4),
    ],
    "dilated_lstm": [
        dilated(4, 1, 1, 1),
        dilated(4, 1, 2, 2),
        dilated(6, 2, 8, 3),
        dilated(16, 3, 4, 2),
        dilated(5, 2, 11, 4),
        dilated(8, 2, 12, 3),
    ],
    "grid_rnn": [
        grid(4, 1, 1, 1, 1),
        grid(6, 2, 3, 4, 2),
        grid(16, 1, 5, 1, 2),
        grid(5, 3, 1, 6, 3),
        grid(8, 2, 4, 5, 3),
    ],
    "b2b_gemm": [
        gemm((1, 1, 1, 1), (2, 3, 4, 5)),
        gemm((2, 3, 4, 5), (2, 3, 4, 5)),
        gemm((1, 4, 3, 1), (16, 8, 16, 17)),
        gemm((3, 1, 1, 2), (1, 1, 1, 1)),
        gemm((4, 1, 2, 1), (16, 16, 16, 16)),
    ],
    "attention": [
        attention(3, 4, (1, 1), 1, 1),
        attention(3, 4, (2, 2), 3, 5),
        attention(16, 8, (1, 3), 2, 2),
        attention(1, 17, (2, 1), 4, 1),
        attention(16, 16, (2, 2), 4, 4),
    ],
    "bigbird": [
        bigbird(2, 4, 1, 4),
        bigbird(3, 4, 2, 7),
        bigbird(16, 8, 1, 5),
        bigbird(1, 17, 3, 6),
        bigbird(16, 32, 1, 16),
    ],
}
ALL = [(name, case) for name, cases in CASES.items() for case in range(len(cases))]


class Prepared:
    """A program of some sizes, its arguments, and what it gives for them."""

    def __init__(self, name: str, case: int, seed: int = 0) -> None:
        sizes, shapes = CASES[name][case]
        self.name = name
        self.function: ft.Function = fractal_oracles.example(name).program(*sizes)
        arrays = [values(*shape, seed=seed + i) for i, shape in enumerate(shapes)]
        self.arguments = dict(zip(self.function.parameters, arrays, strict=True))
        found = getattr(fractal_oracles, name)(*(array.astype(np.float64) for array in arrays))
        self.expected = found if isinstance(found, tuple) else (found,)

    def lengths(self, names: Sequence[str] | Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
        """What a compilation is told of parameters."""
        depths = {name: self.function.parameters[name].depth for name in names}
        return {name: self.arguments[name].shape[:depth] for name, depth in depths.items()}

    def check(self, outputs: Sequence[Any], rtol: float = 1e-4) -> None:
        """Elements nearly, shapes exactly."""
        for found, expected in zip(outputs, self.expected, strict=True):
            assert found.shape == expected.shape and found.dtype == np.float32
            np.testing.assert_allclose(found, expected, rtol=rtol, atol=1e-6)


def with_weights(p: Prepared) -> tuple[ft.Function, dict[str, np.ndarray]]:
    """The function that captures its weights, and its other arguments."""
    weights = {name: p.arguments[name] for name in WEIGHTS[p.name]}
    others = {name: array for name, array in p.arguments.items() if name not in weights}

    def program(*arguments: Any) -> Any:
        return p.function(**dict(zip(others, arguments, strict=True)), **weights)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    program.__signature__ = inspect.Signature([inspect.Parameter(name, kind) for name in others])
    program.__annotations__ = {name: p.function.parameters[name] for name in others}
    return ft.function(program), others


@pytest.mark.parametrize(
    ("name", "case", "target"),
    [(*which, "cpu") for which in ALL] + [(name, case, "cpu:x86-64-v3") for name, case in ALL if case in (1, 3)],
)
def test_weights_as_arguments(name: str, case: int, target: str) -> None:
    """On one thread and on two, and again with other numbers: nothing stays from the call before."""
    p = Prepared(name, case)
    model = tw.compile(p.function, target, shapes=p.lengths(p.arguments), threads=2)
    assert [spec.name for spec in model.inputs] == list(p.arguments)
    first = [np.copy(array) for array in model(**p.arguments)]
    p.check(first)
    other = Prepared(name, case, seed=100)
    other.check(model(**other.arguments))
    model.threads = 1
    for one, two in zip(model(**p.arguments), first, strict=True):
        np.testing.assert_array_equal(one, two)


def test_blocks_are_one_product() -> None:
    """Sums of products of blocks are in registers, and blocks of A @ B in the task that multiplies them by C."""
    sizes, shapes = gemm((16, 3, 2, 2), (16, 8, 16, 17))
    function = fractal_oracles.example("b2b_gemm").program(*sizes)
    arrays = [values(*shape, seed=i) for i, shape in enumerate(shapes)]
    lengths = {name: array.shape[:2] for name, array in zip(function.parameters, arrays, strict=True)}
    model = tw.compile(function, shapes=lengths, threads=2)
    assert [kernel.launches for kernel in model.kernels] == [1]
    expected = fractal_oracles.b2b_gemm(*(array.astype(np.float64) for array in arrays))
    np.testing.assert_allclose(model(*arrays)[0], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("name", "case"), [(name, case) for name, case in ALL if case in (0, 2)])
def test_weights_as_constants(name: str, case: int) -> None:
    """What a closure captures is known when the program is compiled, and no argument."""
    p = Prepared(name, case)
    function, others = with_weights(p)
    model = tw.compile(function, "cpu", shapes=p.lengths(others), threads=2)
    assert [spec.name for spec in model.inputs] == list(others)
    p.check(model(*others.values()))


@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a"])
@pytest.mark.parametrize("name", CASES)
def test_on_the_emulator(name: str, target: str) -> None:
    """The smallest size with lengths of more than one. A recurrence is one launch, with what stands beside it."""
    p = Prepared(name, 1)
    model: Any = tw.compile(p.function, target, shapes=p.lengths(p.arguments), emulate=True)
    assert sum(kernel.launches for kernel in model.kernels) == 1 or name in ("b2b_gemm", "bigbird")
    assert model._loaded().is_recordable
    p.check(model(**p.arguments))


@pytest.mark.slow
@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a"])
@pytest.mark.parametrize("name", CASES)
def test_catalogue_on_the_emulator(name: str, target: str) -> None:
    p = Prepared(name, -1)
    p.check(tw.compile(p.function, target, shapes=p.lengths(p.arguments), emulate=True)(**p.arguments))


@pytest.mark.parametrize("name", CASES)
def test_constants_on_the_emulator(name: str) -> None:
    p = Prepared(name, 0)
    function, others = with_weights(p)
    p.check(tw.compile(function, "cuda:sm_90a", shapes=p.lengths(others), emulate=True)(*others.values()))


@pytest.mark.parametrize("name", CASES)
def test_reference(name: str) -> None:
    """The target that interprets what is traced."""
    p = Prepared(name, 1)
    model = tw.compile(p.function, "reference", shapes=p.lengths(p.arguments))
    p.check(model(**p.arguments))

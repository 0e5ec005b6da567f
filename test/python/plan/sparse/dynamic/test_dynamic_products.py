# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products whose left operand has zeros that a run shows, compiled, against NumPy: both branches, all shapes."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tilewright as tw

CPU, AVX2, SM80, SM90 = "cpu", "cpu:x86-64-v3", "cuda:sm_80", "cuda:sm_90a"
DTYPES = {"f32": np.float32, "f64": np.float64, "bf16": ml_dtypes.bfloat16, "f16": np.float16}


def program(
    m: int,
    k: int,
    n: int,
    unit: tuple[int, int],
    element: str,
    zero: bool,
    above: float | None,
    kernel: str = "condensed",
) -> str:
    """`x @ w + c` with x encoded; a negative m is open."""
    rows, wide = "?" if m < 0 else str(m), "f64" if element == "f64" else "f32"
    x, w, y = (f"tensor<{a}x{b}x{e}>" for a, b, e in ((rows, k, element), (k, n, element), (rows, n, wide)))
    encoded = f"tensor<{rows}x{k}x{element}, #sparse_tile.tesa<dynamic<{list(unit)}>>>"
    more = "" if above is None else f", tile.sparsity = {{dense_above = {above} : f64}}"
    start = f"""%z = arith.constant 0.0 : {wide}
      %e = tensor.empty({"%m" if m < 0 else ""}) : {y}
      %c = linalg.fill ins(%z : {wide}) outs(%e : {y}) -> {y}"""
    return f"""func.func @main(%x: {x}, %w: {w}, %i: {y}) -> {y} {{
      %d = arith.constant 0 : index
      %m = tensor.dim %x, %d : {x}
      {start}
      %p = sparse_tile.pack %x : {x} to {encoded}
      %y = sparse_tile.matmul %p, %w, {"%c" if zero else "%i"} {{kernel = "{kernel}"{more}}} : {encoded}, {w}, {y}
      return %y : {y}
    }}"""


def pruned(rng: np.random.Generator, shape: tuple[int, int], unit: tuple[int, int], live: float) -> np.ndarray:
    grid = [-(-size // step) for size, step in zip(shape, unit, strict=True)]
    mask = np.kron(rng.random(grid) < live, np.ones(unit, bool))[: shape[0], : shape[1]]
    return rng.integers(1, 9, shape) * rng.choice([-1, 1], shape) * mask


CASES = [
    (37, 70, 50, (32, 1), "f32", True, CPU),
    (37, 70, 50, (32, 1), "f32", False, AVX2),
    (64, 200, 130, (32, 64), "bf16", True, CPU),
    (37, 70, 50, (1, 70), "f32", True, CPU),
    (37, 70, 50, (1, 70), "f16", False, AVX2),
    (37, 200, 50, (1, 64), "f32", False, CPU),
    (37, 200, 50, (1, 64), "f32", True, AVX2),
    (21, 40, 25, (1, 40), "f64", True, CPU),
    (1, 33, 17, (1, 1), "f32", False, CPU),
    (37, 70, 50, (32, 1), "f32", True, SM80),
    (37, 64, 72, (1, 64), "f16", False, SM90),
    (33, 40, 64, (1, 40), "f32", True, SM80),
    (40, 96, 64, (32, 64), "bf16", True, SM80),
    (-1, 40, 30, (8, 1), "f32", True, CPU),
    (-1, 40, 30, (1, 20), "f32", False, CPU),
]


@pytest.mark.parametrize(("m", "k", "n", "unit", "element", "zero", "target"), CASES)
def test_products(m: int, k: int, n: int, unit: tuple[int, int], element: str, zero: bool, target: str) -> None:
    """All dead, some live, all live; the threshold as the cost model has it, and none: exact for small integers."""
    rng, dtype = np.random.default_rng(4), DTYPES[element]
    wide = np.float64 if element == "f64" else np.float32
    for above in (None, 1.0):
        gpu = target.startswith("cuda")
        text = program(m, k, n, unit, element, zero, above, "gpu_condensed" if gpu else "condensed")
        model = tw.compile(text, target=target, **({"emulate": True} if gpu else {}))
        for live in (0.0, 0.3, 1.0):
            rows = int(rng.integers(1, 40)) if m < 0 else m
            x = pruned(rng, (rows, k), unit, live)
            w, c = rng.integers(-4, 5, (k, n)), rng.integers(-4, 5, (rows, n))
            result = model(x.astype(dtype), w.astype(dtype), c.astype(wide))
            (y,) = result if isinstance(result, list | tuple) else (result,)
            np.testing.assert_array_equal(y, x @ w + (0 if zero else c))


@pytest.mark.parametrize("unit", [(8, 1), (1, 40)])
def test_numbers_that_are_none_are_live(unit: tuple[int, int]) -> None:
    """NaN and infinities are found by the index: they reach the result."""
    model = tw.compile(program(16, 40, 24, unit, "f32", True, 1.0))
    x, w = np.zeros((16, 40), np.float32), np.ones((40, 24), np.float32)
    x[3, 7], x[9, 39], x[15, 0] = np.nan, np.inf, -0.0
    result = model(x, w, np.zeros((16, 24), np.float32))
    (y,) = result if isinstance(result, list | tuple) else (result,)
    expected = np.zeros((16, 24), np.float32)
    expected[3], expected[9] = np.nan, np.inf
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize(("m", "unit", "below", "over"), [(64, (8, 1), 0.5, 0.9), (1, (1, 1), 0.3, 0.6)])
def test_the_run_decides(m: int, unit: tuple[int, int], below: float, over: float) -> None:
    """By the share of live columns; with one row the dense product is the better one earlier."""
    model = tw.compile(program(m, 200, 48, unit, "f32", True, None))
    w, c = np.ones((200, 48), np.float32), np.zeros((m, 48), np.float32)
    for share, sparse in ((below, True), (over, False), (0.0, True)):
        x = np.zeros((m, 200), np.float32)
        x[:, : int(200 * share)] = 1
        ran = {name for name, _, _ in model.profile(x, w, c)}
        assert any(name.startswith("product_of_live_columns") for name in ran) == sparse


def test_dead_rows_are_left_out_first() -> None:
    """Zeros that come in single elements: rows without any other are not multiplied, and neighbours do not matter."""
    rng = np.random.default_rng(7)
    model = tw.compile(program(96, 200, 48, (8, 1), "f32", True, None))
    w, c = rng.integers(-4, 5, (200, 48)).astype(np.float32), np.zeros((96, 48), np.float32)
    for share, listed in ((0.0, True), (0.3, True), (1.0, False)):
        x = np.where(rng.random((96, 1)) < share, rng.integers(1, 5, (96, 200)), 0).astype(np.float32)
        ran = {name for name, _, _ in model.profile(x, w, c)}
        assert ("gather_slices" in ran) == listed
        assert not any(name.startswith("product_of_live_columns") for name in ran) or share == 0.0
        result = model(x, w, c)
        (y,) = result if isinstance(result, list | tuple) else (result,)
        np.testing.assert_array_equal(y, x @ w)


@pytest.mark.parametrize("target", [CPU, AVX2, SM80])
def test_shares_that_are_given_hold_for_whole_rows(target: str) -> None:
    """Zeros that come in whole rows: `dense_above` is a share of rows, and a remark says so."""
    gpu = target.startswith("cuda")
    text = program(64, 40, 48, (1, 40), "f32", True, 0.25, "gpu_condensed" if gpu else "condensed")
    model = tw.compile(text, target=target, **({"emulate": True} if gpu else {}))
    told = [remark["message"] for remark in model.report_data()["remarks"]]
    assert any("above 0.25 of live rows (dense_above)" in message for message in told)
    rng = np.random.default_rng(8)
    w, c = rng.integers(-4, 5, (40, 48)).astype(np.float32), np.zeros((64, 48), np.float32)
    for live, sparse in ((16, True), (17, False)):
        x = np.zeros((64, 40), np.float32)
        x[:live] = rng.integers(1, 5, (live, 40))
        ran = {name for name, _, _ in model.profile(x, w, c)} if not gpu else set()
        assert gpu or ("gather_slices" in ran) == sparse
        result = model(x, w, c)
        (y,) = result if isinstance(result, list | tuple) else (result,)
        np.testing.assert_array_equal(y, x @ w)

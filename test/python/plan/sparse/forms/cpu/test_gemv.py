# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The family `gemv` against NumPy: whole numbers, so that every sum is exact."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from listed_products import product, windows

import tilewright as tw
from tilewright.core.errors import UserError

DTYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": ml_dtypes.bfloat16}


def check(
    shape: tuple[int, int, int], n: int, m: int, target: str, kinds: tuple[str, str] = ("f32", "f32"), most: int = 7
) -> None:
    """Compile and run `W @ x` and `x @ W^T + c`, W [rows, depth], x [depth, columns]."""
    rows, depth, columns = shape
    rng = np.random.default_rng(rows)
    given, result = (DTYPES[kind] for kind in kinds)
    w = np.clip(windows(rows, depth, n, m, rng), -most, most)
    x = rng.integers(-2, 3, (depth, columns)).astype(given)
    c = rng.integers(-4, 5, (rows, columns)).astype(result)
    for left in (True, False):
        held = np.ascontiguousarray(w if left else w.T).astype(given)
        encoding = f"nm<{n} : {m}, axis = {int(left)}>"
        text = product(held.shape, columns, encoding, left=left, kinds=kinds, adds=not left, kernel="gemv")
        inputs = [x] if left else [np.ascontiguousarray(x.T), np.ascontiguousarray(c.T)]
        (y,) = tw.compile(text, target=target, weights={"w": held})(*inputs)
        expected = w.astype(np.float64) @ x.astype(np.float64)
        expected = expected if left else (expected + c.astype(np.float64)).T
        np.testing.assert_array_equal(np.asarray(y).astype(np.float64), expected)


@pytest.mark.parametrize("target", ["cpu", "cpu:x86-64-v3"])
@pytest.mark.parametrize(
    ("shape", "n", "m"), [((33, 70, 1), 2, 4), ((1, 3, 1), 2, 4), ((40, 96, 4), 8, 32), ((20, 301, 3), 5, 200)]
)
def test_windows(shape: tuple[int, int, int], n: int, m: int, target: str) -> None:
    """Ragged rows and windows, one row, several columns, positions of 16 bits."""
    check(shape, n, m, target)


@pytest.mark.parametrize("target", ["cpu", "cpu:x86-64-v3"])
@pytest.mark.parametrize(("n", "m"), [(1, 1), (1, 2), (2, 3), (1, 4), (3, 4), (4, 4)])
def test_positions_of_two_bits(n: int, m: int, target: str) -> None:
    """Windows of up to four, as many positions in a word as it holds, the last word not full."""
    check((37, 61, 3), n, m, target)


@pytest.mark.parametrize(("pattern", "held"), [("2 : 4", "4x2x16xi32"), ("2 : 8", "4x16x16xi8")])
def test_words_of_positions(pattern: str, held: str) -> None:
    """Sixteen positions of 2:4 share a word; those in longer windows have a byte each."""
    text = product((64, 64), 1, f"nm<{pattern}, axis = 1>", kernel="gemv")
    planned = tw.compile(text, target="cpu:znver5", weights={"w": np.zeros((64, 64), np.float32)}, stop_after="plan")
    assert f"memref<{held}>" in planned


def test_interpreted() -> None:
    """The reference interpreter runs the kernel as it stands."""
    check((9, 22, 2), 2, 4, "reference")


@pytest.mark.parametrize("kinds", [("f64", "f64"), ("f16", "f32"), ("bf16", "bf16")])
def test_types(kinds: tuple[str, str]) -> None:
    """Small floats stay small in memory, and are summed in f32."""
    check((19, 36, 2), 2, 4, "cpu", kinds, most=2)


def test_many_columns_are_refused() -> None:
    """Lanes would be better filled with columns."""
    text = product((8, 8), 5, "nm<2 : 4, axis = 1>", kernel="gemv")
    with pytest.raises(UserError, match="1 to 4 columns"):
        tw.compile(text, target="cpu", weights={"w": np.zeros((8, 8), np.float32)})

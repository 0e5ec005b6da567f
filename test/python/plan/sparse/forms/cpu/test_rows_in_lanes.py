# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The family `rows_in_lanes` against NumPy: whole numbers, so that every sum is exact."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from listed_products import product, scattered, windows

import tilewright as tw
from tilewright.core.errors import UserError

DTYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
TARGETS = ("cpu", "cpu:x86-64-v3")


def check(w: np.ndarray, columns: int, encoding: str, target: str, **options: object) -> None:
    """Compile and run `W @ x` and `x @ W^T`, without and with a sum; `AXIS` in the encoding is that of the depth."""
    rng = np.random.default_rng(columns)
    kinds = options.pop("kinds", ("f32", "f32"))
    open_size = options.pop("open_size", False)
    given, result = (DTYPES[kind] for kind in kinds)
    x = rng.integers(-4, 5, (w.shape[1], columns)).astype(given)
    c = rng.integers(-4, 5, (w.shape[0], columns)).astype(result)
    expected = w.astype(np.float64) @ x.astype(np.float64)
    for left, adds in ((True, False), (False, True)):
        held = np.ascontiguousarray(w if left else w.T).astype(given)
        text = product(
            held.shape, -1 if open_size else columns, encoding.replace("AXIS", str(int(left))),
            left=left, kinds=kinds, adds=adds, kernel="rows_in_lanes",
        )  # fmt: skip
        model = tw.compile(text, target=target, weights={"w": held})
        inputs = [np.ascontiguousarray(one if left else one.T) for one in ([x, c] if adds else [x])]
        (y,) = model(*inputs)
        total = expected + c.astype(np.float64) if adds else expected
        np.testing.assert_array_equal(np.asarray(y).astype(np.float64), total if left else total.T)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("rows", "depth", "columns", "n", "m"),
    [
        (33, 70, 45, 2, 4),
        (1, 4, 1, 1, 4),
        (5, 3, 7, 2, 4),
        (50, 257, 130, 3, 32),
        (20, 300, 20, 5, 200),
        (128, 256, 64, 2, 8),
    ],
)
def test_windows(rows: int, depth: int, columns: int, n: int, m: int, target: str) -> None:
    """N:M: ragged windows, blocks and lanes; one row, one column, a depth below a window, 16 bits; all of it whole."""
    check(windows(rows, depth, n, m, np.random.default_rng(0)), columns, f"nm<{n} : {m}, axis = AXIS>", target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("rows", "depth", "columns", "density"),
    [(33, 70, 45, 0.3), (7, 9, 1, 0.5), (4, 8, 5, 0.0), (50, 257, 130, 0.3), (40, 300, 50, 0.05)],
)
def test_unstructured(rows: int, depth: int, columns: int, density: float, target: str) -> None:
    """Any kept elements: rows without one, and none at all; lists of ragged blocks, and over the whole depth."""
    check(scattered(rows, depth, density, np.random.default_rng(0)), columns, "mask", target)


@pytest.mark.parametrize("encoding", ["nm<2 : 4, axis = AXIS>", "mask"])
def test_interpreted(encoding: str) -> None:
    """The reference interpreter runs the kernel as it stands."""
    check(windows(9, 22, 2, 4, np.random.default_rng(3)), 18, encoding, "reference")


@pytest.mark.parametrize("kinds", [("f64", "f64"), ("f16", "f32"), ("bf16", "bf16"), ("f32", "f64")])
@pytest.mark.parametrize("encoding", ["nm<2 : 4, axis = AXIS>", "mask"])
def test_types(kinds: tuple[str, str], encoding: str) -> None:
    """Small floats are summed in f32 and rounded once."""
    w = np.clip(windows(17, 36, 2, 4, np.random.default_rng(1)), -2, 2)
    check(w, 19, encoding, "cpu", kinds=kinds)


@pytest.mark.parametrize("encoding", ["nm<2 : 4, axis = AXIS>", "mask"])
def test_open_columns(encoding: str) -> None:
    """Sizes that a run brings."""
    check(windows(17, 36, 2, 4, np.random.default_rng(1)), 40, encoding, "cpu", open_size=True)


@pytest.mark.parametrize("encoding", ["nm<2 : 4, axis = AXIS>", "mask"])
def test_many_blocks(encoding: str) -> None:
    """Sums go through memory between blocks, and blocks through panels."""
    check(windows(70, 4100, 2, 4, np.random.default_rng(2)), 150, encoding, "cpu")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("rows", "depth", "columns", "n", "m"), [(149, 200, 130, 3, 4), (2, 515, 70, 7, 8), (70, 520, 67, 2, 4)]
)
def test_pairs_of_rows(rows: int, depth: int, columns: int, n: int, m: int, target: str) -> None:
    """Rows that keep much in common are summed two at a time: an odd number, several tasks, windows behind the end."""
    check(windows(rows, depth, n, m, np.random.default_rng(0)), columns, f"nm<{n} : {m}, axis = AXIS>", target)


@pytest.mark.parametrize("kinds", [("f64", "f64"), ("bf16", "bf16")])
def test_types_of_pairs(kinds: tuple[str, str]) -> None:
    """Sums of other types, with columns that a run brings."""
    w = np.clip(windows(17, 260, 3, 4, np.random.default_rng(1)), -1, 1)
    check(w, 70, "nm<3 : 4, axis = AXIS>", "cpu:x86-64-v3", kinds=kinds, open_size=True)


def test_pairs_are_interpreted() -> None:
    """The reference interpreter runs the kernel of two rows as it stands, and there is one."""
    w = windows(5, 210, 3, 4, np.random.default_rng(3))
    check(w, 66, "nm<3 : 4, axis = AXIS>", "reference")
    text = product((5, 210), 66, "nm<3 : 4, axis = 1>", kernel="rows_in_lanes")
    for target in TARGETS:
        assert "xi16>" in str(tw.compile(text, target=target, weights={"w": w}, stop_after="plan"))


@pytest.mark.parametrize("kinds", [("f64", "f64"), ("f16", "f32")])
def test_blocks_of_any_length(kinds: tuple[str, str]) -> None:
    """Unstructured lists in blocks, of other element types; a block of a row may keep nothing."""
    w = np.clip(scattered(9, 400, 0.2, np.random.default_rng(5)), -2, 2)
    w[3], w[4, 96:] = 0, 0
    check(w, 19, "mask", "cpu", kinds=kinds, open_size=True)


def test_numbers_behind_the_pattern_do_not_matter() -> None:
    """Infinities in rows of x that no kept element meets stay there."""
    w = np.zeros((3, 70), np.float32)
    w[:, 5] = 2
    x = np.full((70, 9), np.inf, np.float32)
    x[5] = 3
    text = product((3, 70), 9, "mask", kernel="rows_in_lanes")
    (y,) = tw.compile(text, target="cpu", weights={"w": w})(x)
    np.testing.assert_array_equal(y, np.full((3, 9), 6, np.float32))


@pytest.mark.parametrize(
    ("encoding", "why"),
    [
        ("block<[3, 4]>", "blocks are no multiple of"),
        ("nm<2 : 4, axis = 0>", "the windows do not lie along the sum"),
        ("nm<2 : 4, axis = 1, unit = [2, 1]>", "units are blocks"),
    ],
)
def test_what_it_refuses(encoding: str, why: str) -> None:
    """A family that is asked for says why it has no kernel."""
    with pytest.raises(UserError, match=why):
        tw.compile(
            product((8, 8), 5, encoding, kernel="rows_in_lanes"), target="cpu", weights={"w": np.zeros((8, 8), "f4")}
        )

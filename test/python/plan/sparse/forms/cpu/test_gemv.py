# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The family `gemv` against NumPy: whole numbers, so that every sum is exact."""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
from listed_products import product, windows

import tilewright as tw
from tilewright import devices
from tilewright.core import config
from tilewright.core.errors import UserError
from tilewright.devices.x86 import known_rates
from tilewright.plan.cost import sparse
from tilewright.plan.sparse.forms.cpu.gemv_kernel import GemvKernel, gemv_text

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


@pytest.mark.parametrize(
    ("target", "depth", "columns", "pattern", "held"),
    [
        ("cpu:x86-64-v3", 3325, 1, "2 : 4", ("8x1696x8xf32", "8x106x8xi32")),
        ("cpu:znver5", 1664, 1, "2 : 4", ("4x848x16xf32", "4x53x16xi32")),
        ("cpu:znver5", 3325, 1, "8 : 32", ("4x832x16xf32", "4x832x16xi8")),
        ("cpu:znver5", 1632, 1, "2 : 4", ("4x816x16xf32", "4x51x16xi32")),
        ("cpu:znver5", 1536, 1, "2 : 4", ("4x768x16xf32", "4x48x16xi32")),
        ("cpu:znver5", 1664, 4, "2 : 4", ("4x832x16xf32", "4x52x16xi32")),
    ],
)
def test_rows_apart(target: str, depth: int, columns: int, pattern: str, held: tuple[str, str]) -> None:
    """Registers of rows are moved apart where they are whole pages, long, side by side, not gathered."""
    text = product((61, depth), columns, f"nm<{pattern}, axis = 1>", kernel="gemv")
    w = np.zeros((61, depth), np.float32)
    planned = tw.compile(text, target=target, weights={"w": w}, stop_after="plan")
    assert all(f"memref<{kind}>" in planned for kind in held)


@pytest.mark.parametrize("target", ["cpu", "cpu:x86-64-v3"])
@pytest.mark.parametrize(("depth", "n", "m"), [(3325, 2, 4), (6653, 1, 4)])
def test_apart_or_not(depth: int, n: int, m: int, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Zeros between registers of rows change no bit of a result, ragged ones included."""
    rng = np.random.default_rng(depth)
    w = (windows(61, depth, n, m, rng) * rng.random((61, depth))).astype(np.float32)
    x = rng.standard_normal((depth, 1)).astype(np.float32)
    text = product(w.shape, 1, f"nm<{n} : {m}, axis = 1>", kernel="gemv")

    def result() -> np.ndarray:
        with config.cache.override(False):
            return np.asarray(tw.compile(text, target=target, weights={"w": w})(x)[0])

    apart = result()
    monkeypatch.setattr(sparse, "_APART", 0)
    np.testing.assert_array_equal(apart, result())
    np.testing.assert_allclose(apart, w.astype(np.float64) @ x, rtol=1e-4, atol=1e-3)


def test_the_law_counts_what_lies_between() -> None:
    """It is under 2 % of the bytes, and none where rows are short, or no whole pages."""
    assert sparse.apart(1 << 17) == 1024 and sparse.apart((1 << 17) + 64) == 0
    assert sparse.apart(48 << 10) == 0 and sparse.apart(0) == 0
    assert sparse.apart(1 << 17, 960) == 1920 and sparse.apart(64 << 10, 960) == 0


@pytest.mark.parametrize(("target", "streams"), [("cpu:x86-64-v3", 4), ("cpu:x86-64-v2", 2)])
def test_rows_side_by_side(target: str, streams: int) -> None:
    """Four registers of rows where a window is a table in one register; two where its elements take registers."""
    text = product((256, 64), 1, "nm<2 : 4, axis = 1>", kernel="gemv")
    planned = str(tw.compile(text, target=target, weights={"w": np.zeros((256, 64), np.float32)}, stop_after="plan"))
    sums = next(line for line in planned.splitlines() if "iter_args" in line).partition("->")[2]
    assert sums.count("!tile.tile") == streams
    assert planned.count("memref.prefetch") == 16 * streams


@pytest.mark.parametrize("target", ["cpu:znver3", "cpu:amd-zen4", "cpu:amd-zen5"])
def test_all_of_amd_look_ahead_by_themselves(target: str) -> None:
    """Named CPUs like this one: code for another machine is that which it would make itself."""
    assert devices.get(target).rate("sparse.ahead") == 0 and devices.get("cpu:icelake-server").rate("sparse.ahead") > 0


def test_amd_looks_ahead_by_itself() -> None:
    """Where the device says so, nothing is asked for ahead."""
    assert dict(known_rates(["avx512f", "clzero"])) == {"sparse.ahead": 0.0} and not known_rates(["avx2"])
    assert dict(known_rates(["avx2", "clzero"]))["sparse.ahead"] == 0
    k = GemvKernel(
        rows=64,
        depth=64,
        columns=1,
        lanes=8,
        chunk=4,
        streams=4,
        n=2,
        m=4,
        held="f32",
        size=4,
        element="f32",
        given="f32",
        result="f32",
        across=False,
        adds=False,
        tabled=True,
        ahead=0,
    )
    assert "prefetch" not in gemv_text(k) and "prefetch" in gemv_text(replace(k, ahead=128))


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
